# ruff: noqa: RUF001
"""Read the named fields of a reply: JSON, tool calls, tags, labels, headings, lists and tables."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

# What models call a field, by its role, the best name first.
_ROLES = {
    "thoughts": "thoughts|thought|thinking|reasoning|analysis|plan|reflection|explanation|rationale"
    "|notes|gedanken|überlegung|überlegungen|pensées|réflexion|raisonnement|pensamientos"
    "|razonamiento|pensamentos|raciocínio|思考|思路|想法|分析|考え|мысли|размышления|рассуждения",
    "response": "response|solution|answer|code|output|text|result|implementation|antwort|lösung"
    "|réponse|respuesta|solución|resposta|solução|código|回答|答案|回复|代码|解答|応答|コード|ответ"
    "|решение|код",
    "verdict": "evaluation|verdict|status|outcome|decision|judgement|judgment|urteil|ergebnis"
    "|bewertung|évaluation|évaluation finale|veredicto|evaluación|avaliação|veredito|评价|评估|结论"
    "|判定|評価|結論|оценка|вердикт",
    "feedback": "feedback|suggestions|actions|improvements|issues|problems|weaknesses|comments"
    "|comment|critique|reasons|reason|reasoning|explanation|rückmeldung|anmerkungen|commentaires"
    "|remarques|comentarios|retroalimentación|comentários|反馈|建议|意见|フィードバック|отзыв"
    "|замечания",
    "findings": "findings|weaknesses|issues|problems|flaws|faults|defects|gaps|concerns|remarks"
    "|shortcomings|errors|mistakes|bugs|improvements|schwächen|mängel|probleme|befunde|fehler"
    "|lücken|faiblesses|problèmes|défauts|lacunes|debilidades|problemas|fallos|defectos|fraquezas"
    "|falhas|问题|缺点|弱点|不足|缺陷|問題点|問題|欠点|指摘|недостатки|проблемы|слабости|ошибки",
    "questions": "questions|fragen|preguntas|perguntas|疑问|提问|質問|вопросы",
    "unsourced": "unsourced|unsourced facts|in no source|not in the sources|ohne quelle|sans source"
    "|sin fuente|sem fonte|无来源|出典なし|без источника",
    "ready": "ready|done|acceptable|approved|bereit|fertig|prêt|listo|lista|pronto|pronta|就绪|完成"
    "|準備完了|完了|готово|готов",
    "not ready": "not ready|not yet ready|not done|not acceptable|not approved"
    "|nicht fertig|nicht bereit|pas prêt|no está listo|no listo|não pronto"
    "|não está pronto|未就绪|未完成|未完了|не готово|не готов",
    "fixed": "fixed|resolved|mended|behoben|erledigt|corrigé|corrigés|résolu|résolus|corregido"
    "|corregidos|resuelto|resueltos|corrigido|corrigidos|已修复|已解决|修正済み|解決済み|исправлено",
    "upheld": "upheld|aufrechterhalten|maintenu|maintenus|mantenido|mantenidos|mantido|mantidos"
    "|坚持|維持|поддержано",
    "because": "because|why|reason|reasons|rationale|justification|begründung|raison|motivo|原因"
    "|理由|причина",
    "tests": "tests|expectations",
    "praise": "strengths|positives|pros|praise|stärken|points forts|forces|fortalezas|pontos fortes"
    "|优点|长所|長所|достоинства|summary|notes|thoughts|analysis",
    "problem": "problem|issue|weakness|description|finding|flaw|gap|defect|concern|error|bug"
    "|explanation|details?|what|title|summary|schwäche|mangel|problème|faiblesse|défaut|problema"
    "|debilidad|fraqueza|问题|弱点|缺点|描述|問題|内容|проблема|недостаток|описание",
    "place": "place|quote|where|location|line|passage|excerpt|stelle|zitat|ort|lieu|endroit"
    "|citation|passage|lugar|cita|ubicación|trecho|citação|位置|引用|原文|場所|箇所|место|цитата",
    "demand": "task|demand|requirement|forderung|anforderung|exigence|requisito|要求|требование",
    "fix": "fix|suggestion|suggested fix|remedy|recommendation|improvement|solution|proposed fix"
    "|how to fix|lösung|vorschlag|behebung|verbesserung|correction|corrección|solución|sugerencia"
    "|sugestão|correção|修复|修改|建议|修正|改善|提案|исправление|предложение",
    "severity": "severity|priority|level|impact|schwere|schweregrad|gravité|gravedad|gravidade"
    "|严重性|严重程度|重要度|深刻度|серьёзность|серьезность",
    "blocks": "blocks|blocking",
    "criterion": "criterion|category|aspect|dimension|kriterium|kategorie|critère|criterio|critério"
    "|类别|标准|基準|критерий",
}
NAMES = {role: tuple(names.split("|")) for role, names in _ROLES.items()}
ITEM = re.compile(
    r"^(?P<indent>\s*)(?:(?:[-*+•▪–]|\(?\d+[.):])\s+|[☐☑□✓]\s*|\(?\d+[、）．]\s*)"
    r"(?:\[[ xX]?\]\s*)?(?P<item>\S.*)$"
)
LABEL = re.compile(
    r"^[\s#*_>-]*(?:\d+[.)]\s+)?(?P<name>[^\W\d][^\n:：|.!?？。]{0,48}?)[\s*_]*(?:\([^)\n]*\))?"
    r"(?P<mark>[:：?？.!。]|\s[-–—](?=\s)|$)[*_]*\s*(?P<rest>.*)$"
)
_CALL = ("arguments", "parameters", "args", "function", "tool_calls", "function_call", "properties")
_BESIDE_CALL = {*_CALL, "name", "type", "id", "tool", "index", "role", "title", "description"}


def plain_name(name: object) -> str:
    """Return a field's name in lower case, with spaces and without marks."""
    return re.sub(r"[\s_*#`>-]+", " ", str(name).lower()).strip()


@lru_cache(maxsize=2_048)
def role(name: str, *roles: str) -> str:
    """Return the role in a field's name: the name is it, or ends or begins with it."""
    whole = re.sub(r"\W*\d*\W*$", "", plain_name(name))
    words = whole.split()
    pairs = (" ".join(words[:2]), " ".join(words[-2:]))
    for one in dict.fromkeys((whole, *pairs, *words[-1:], *words[:1])):
        if found := next((role for role in roles if one in NAMES[role]), ""):
            return found
    return ""


def by_role(fields: Mapping[str, Any], *roles: str) -> dict[str, Any]:
    """Return fields by their roles, those that have none by their own names."""
    named = dict[str, Any]()
    for name, value in fields.items():
        named.setdefault(role(str(name), *roles) or plain_name(name).replace(" ", "_"), value)
    return named


def as_text(value: Any) -> str:
    """Return a field's value as text, lists and objects line by line."""
    if isinstance(value, dict):
        return "\n".join(f"{name}: {as_text(one)}" for name, one in value.items())
    if isinstance(value, list):
        parts = (map(str, one.values()) if isinstance(one, dict) else [str(one)] for one in value)
        return "\n".join(": ".join(part) for part in parts)
    return str(value or "")


# JSON

_OBJECT = re.compile(r"\{(?=\s*[\"'“}\w])")
_OBJECTS, _IN_VAIN = 160, 4  # that are tried, at most; times that a reply is read in vain


def json_objects(reply: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield where JSON objects start in a reply, and those; of a tool call its arguments.

    Python's quotes, raw line breaks, quotes that are not escaped, commas that are missing or one
    too many, comments, and an end that is missing are forgiven.
    """
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_object)
    left, end = _IN_VAIN * len(reply), 0
    while left >= 0 and (found := _OBJECT.search(reply, end)):
        start, end = found.start(), found.end()
        left -= _IN_VAIN * len(reply) // _OBJECTS
        try:
            value, stop = decoder.raw_decode(reply, start)
        except json.JSONDecodeError as error:
            value, stop, sure = _read_loosely(reply, start)
            left -= error.pos - start + 2 * (stop - start)
            alone = not reply[:start].rpartition("\n")[2].strip(" \t>`")
            if not isinstance(value, dict) or not (sure or (value and alone)):
                continue
        except RecursionError:  # nothing of ours is that deep
            return
        end = stop
        yield start, _arguments(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; a name with two different values has none."""
    fields = dict(pairs)
    return fields | {name: None for name, value in pairs if value not in (fields[name],)}


def _arguments(fields: dict[str, Any]) -> dict[str, Any]:
    for _ in range(4):
        inner = next((fields[name] for name in _CALL if name in fields), None)
        if isinstance(inner, str) and "{" in inner:
            inner = next((one for _, one in json_objects(inner)), None)
        inner = inner[0] if isinstance(inner, list) and inner else inner
        if not isinstance(inner, dict) or not fields.keys() <= _BESIDE_CALL:
            return fields
        fields = inner
    return fields


_DEPTH, _MARKS = 40, 2_000  # of nested objects; quotes of a string that may end it
_COMMENT = r"(?:(?://|#)[^\n]*+|/\*.{0,1000}?\*/)"
_TOKEN = re.compile(
    rf"(?:[\s,]|{_COMMENT}|\.\.\.|…)*+"
    r"(?:(?P<open>[{\[])|(?P<close>[}\]])"
    r"|(?P<long>\"{3}|'{3})|(?P<quote>[\"'“])|(?P<word>[\w.+-]+))",
    re.DOTALL,
)
_COLON = re.compile(r"\s*:")
# What follows the quote that ends a value, other than one inside of it.
_GAP = rf"(?:\s|{_COMMENT})*"
_KEY = r"(?:[\"'“][^\"'”\n]{1,40}[\"'”]|\w{1,40})\s*:"
_AFTER = {
    "key": _COLON,
    "dict": re.compile(
        rf"{_GAP}(?:\Z|,?{_GAP}\}}\s*(?:[,\]}}`<{{]|\n|\Z)|(?:,{_GAP}|\n\s*){_KEY})", re.DOTALL
    ),
    "list": re.compile(rf"{_GAP}(?:\Z|,?{_GAP}\]|(?:,{_GAP}|\n\s*)[\"'“{{\[\]])", re.DOTALL),
}
_CLOSING = {"“": "”", '"': '"', "'": "'"}
_VALUES = {"true": True, "false": False, "null": None, "none": None}


def _read_loosely(text: str, start: int) -> tuple[Any, int, bool]:
    """Return a broken object, where it ends, and True if it surely is one; None for none."""
    stack, whole, key, place, bare = list[Any](), None, None, start, False
    value: Any
    top: Any
    while match := _TOKEN.match(text, place):
        place, value, top = match.end(), None, stack[-1] if stack else None
        if key is not None and "," in match[0][: match.start(match.lastgroup or 0) - match.start()]:
            top[key], key = None, None  # its value is missing
        if match["close"]:
            stack.pop()
            key = None
            if not stack:
                return whole, place, not bare
            continue
        if match["open"]:
            value = {} if match["open"] == "{" else []
        elif match["word"] and not (isinstance(top, dict) and key is None):
            value = _scalar(match["word"])
            if value is _scalar:
                return None, place, False
        else:
            kind = "list" if isinstance(top, list) else "dict" if key is not None else "key"
            value, place = _string(text, match, kind)
        if isinstance(top, dict) and key is None:
            colon = _COLON.match(text, place)
            if not (isinstance(value, str) and colon):
                return None, place, False
            key, place, bare = value, colon.end(), bare or bool(match["word"])
            continue
        if isinstance(top, dict):
            top[key] = value
            key = None
        elif top is not None:
            top.append(value)
        if match["open"]:
            whole = value if whole is None else whole
            stack.append(value)
            if len(stack) > _DEPTH:
                return None, place, False
    return (whole if not text[place:].strip("`>, \n") else None), place, False


def _scalar(word: str) -> Any:
    try:
        return _VALUES[word.lower()] if word.lower() in _VALUES else json.loads(word)
    except ValueError:
        return _scalar  # no value at all


def _string(text: str, match: re.Match[str], kind: str) -> tuple[str, int]:
    """Return a string's value and where it ends."""
    if match["word"]:
        return match["word"], match.end()
    start = match.end()
    if match["long"]:
        end = text.find(match["long"], start)
        return text[start : len(text) if end < 0 else end], len(text) if end < 0 else end + 3
    close = _CLOSING[match["quote"]]
    end = stop = len(text)
    marks = re.compile(rf"\\.|{close}", re.DOTALL).finditer(text, start)
    for mark in islice(marks, 2 if kind == "key" else _MARKS):
        if mark[0] == close and _AFTER[kind].match(text, mark.end()):
            end, stop = mark.span()
            break
    body = text[start:end].rstrip("`\n") if end == stop else text[start:end]
    escaped = _BARE.sub(lambda found: found[0] if len(found[0]) > 1 else f"\\{found[0]}", body)
    try:
        return json.loads(f'"{escaped}"', strict=False), stop
    except ValueError:
        return body, stop


_BARE = re.compile(r"\\(?:[\"\\/bfnrt]|u[\da-fA-F]{4})|[\\\"]")


# Tags, labels and headings


@lru_cache(maxsize=64)
def _patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    choice = "|".join(name.replace(" ", "[ _-]") for name in sorted(names, key=len, reverse=True))
    marks = r"[^\S\n]*(?P<marks>(?:#{1,6}[^\S\n]+|\d+[.)][^\S\n]+|[*_])*)"
    ends = r"(?:\([^)\n]*\))?(?:(?P<colon>[^\S\n]?[:：]|[^\S\n][-–—](?=\s))[*_]*[^\S\n]*|$)"
    label = rf"^{marks}(?P<name>{choice})[*_]*[^\S\n]*{ends}"
    return (
        re.compile(rf"<(?P<end>/?)(?P<name>{choice})>", re.IGNORECASE),
        re.compile(label, re.IGNORECASE | re.MULTILINE),
    )


def labelled(reply: str, names: Iterable[str]) -> tuple[str, list[tuple[str, str]]]:
    """Return what stands before the named parts of a reply, and those, each with its name.

    Names are in lower case and count in any case: as a tag ``<name>``; else as a label ``Name:`` or
    a heading ``## Name`` at the start of a line.
    """
    in_tags, as_label = _patterns(tuple(names))
    tags = [*in_tags.finditer(reply)]
    closed = {tag["name"].lower(): tag.start() for tag in tags if tag["end"]}  # the last of each
    found, texts = list[re.Match[str]](), list[str]()
    for tag in tags:
        name, opened = tag["name"].lower(), len(found) > len(texts)
        if opened and tag["end"] and name == found[-1]["name"].lower():
            texts.append(reply[found[-1].end() : tag.start()])
        elif not opened and not tag["end"] and closed.get(name, 0) > tag.start():
            found.append(tag)
    if not found:
        lines = (as_label.match(reply, line.start()) for line in re.finditer(r"[^\n]+", reply))
        found = [match for match in lines if match and (match["colon"] or match["marks"])]
        starts = [*(match.start() for match in found[1:]), len(reply)][: len(found)]
        texts = [reply[match.end() : end] for match, end in zip(found, starts, strict=True)]
    before = reply[: found[0].start()].strip() if found else reply
    called = (re.sub(r"[_-]", " ", match["name"].lower()) for match in found)
    return before, list(zip(called, map(str.strip, texts), strict=True))
