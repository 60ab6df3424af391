"""Read the error answers of servers: what each complains of, and how long it asks to wait.

The shapes and words are those of public documents and threads. The same answer may come as the head
of a response, as the JSON of a successful one, or as a chunk of a stream.
"""

import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple

_MAX_WORDS = 4_096  # characters of what an answer tells besides its message
_WORDS = ("param", "code", "type", "status", "error_code", "limit_source")
_NESTED = ("details", "detail", "metadata")
_MAX_DEPTH = 6
_SIGNS = ("estimated_time", "retry_after")
_CODE = re.compile(r"[45][0-9]{2}")
_STATUSES = {  # of errors that have a name and no number
    429: "rate_?limit|resource_?exhausted|quota|too_many",
    529: "overloaded",
    503: "unavailable",
    500: "server_error|internal|api_error",
    404: "not_?found",
    400: "invalid_request|bad_?request|context|invalid_argument",
}
_CREDIT = re.compile(
    r"insufficient_quota|credit_balance_exhausted|spend_limit|billing_error|usage limits"
    r"|credit balance is too low|insufficient (?:balance|credit|funds)|(?:no|out of) credits?\b",
    re.IGNORECASE,
)
_PERHAPS_CREDIT = re.compile(r"billing|current quota", re.IGNORECASE)  # unless waiting helps
_DAILY = re.compile(r"per.?day|\bdaily\b|\b[RT]PD\b|\blimit: ?0(?![.\d])", re.IGNORECASE)
_SLIDING = re.compile(r"\b[RT]PD\b.{0,99}try again in [\d.]+m?s", re.IGNORECASE)  # a day's window
_LOADING = re.compile(
    r"^(?!.*(?:fail|unable|could not|cannot|can't|timed out|error|exception|memory)).*"
    r"\b(?:loading|warming up)\b",
    re.IGNORECASE | re.DOTALL,
)
_MAY_LOAD = frozenset({0, 409, 425, 429, 500, 503})
_PROMPT_TOO_LONG = re.compile(
    r"(?:prompt|input) (?:is )?too long|(?:prompt|input) (?:token count|length)(?! and| or)"
    r"|input exceeds|tokens, too large for|request exceeds the maximum|max_tokens must be at least"
    r"|exceeds? the available context|exceed_context_size|tokens to keep from the initial"
    r"|trying to keep the first",
    re.IGNORECASE,
)
TOO_LONG = re.compile(
    r"context.{0,3}(?:length|size|window|limit)|too many tokens(?!, please wait)|model token limit"
    r"|request too large.{0,200}tokens|tokens \+ `?max_|length of the messages",
    re.IGNORECASE | re.DOTALL,
)
_SYSTEM_ROLE = re.compile(
    r"\b(?:system|developer)\W{1,3}(?:role|message|prompt|instruction)s?\b[^.]{0,30}"
    r"(?:not|n't|un)(?: be)? ?(?:support|enabled|allowed|permitted)"
    r"|\brole\W{1,3}system\W{1,3}(?:is )?(?:not|un)|\b(?:unexpected|unknown|invalid|unsupported)"
    r"(?: message)? role"
    r"|(?:not|n't) (?:support|allow|accept)[^.]{0,30}\bsystem (?:role|message|prompt|instr)"
    r"|only user\b.{0,9}\b(?:assistant|model) roles|roles must alternate"
    r"|first message must[^.]{0,30}\buser"
    r"|messages.{1,12}0.{1,9}role",
    re.IGNORECASE,
)
_AMOUNT = (
    r"(?<!\d)(\d{1,15}(?:\.\d{1,15})?)\s*"
    r"(milliseconds?|ms|[smhd]|secs?|seconds?|mins?|minutes?|hours?|days?)(?![a-z])"
)
_SECONDS = {"ms": 0.001, "mil": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_AGAIN = re.compile(
    rf"(?:again|retry\w*|wait|resets?)\b[^.\d\n]{{0,40}}((?:{_AMOUNT}\s*)+)"
    r"|(?:retry_after|estimated_time)\b\W{1,4}(\d+(?:\.\d+)?)",
    re.IGNORECASE,
)
_NUMBER = r"\D{0,3}(\d{1,3}(?:,\d{3}){1,3}|\d{1,9})(?!,?\d)"
_AFFORDABLE = re.compile(rf"\bafford(?: only| up to)?{_NUMBER}", re.IGNORECASE)
_WINDOW = re.compile(
    rf"(?:context (?:length|window|size)[^.\d]{{0,40}}|tokens per min[^.]{{0,40}}limit){_NUMBER}",
    re.I,
)
_SUM = re.compile(r"(\d{1,9}) \+ \d{1,9} > (\d{1,9})")
_REQUESTED = re.compile(rf"requested(?: about| up to)?{_NUMBER}", re.IGNORECASE)
_PROMPT = re.compile(
    rf"(?:given|(?:messages|prompt|request|input)s? (?:hold|has|have|resulted in|contains?|is)"
    rf"(?: at least)?){_NUMBER}"
    rf"|(?<![\d.,]){_NUMBER}(?:\W{{1,2}}(?:inputs?|prompt)\W{{1,2}}tokens"
    r"|(?: tokens)? (?:in|of|from) (?:the |your )?(?:messages|prompt|text input|input))",
    re.IGNORECASE,
)
_CAP = re.compile(
    r"(?:at most|up to|no more than|(?:less|lower|fewer) than(?: or equal to)?|not exceed|<=?|>"
    r"|\u2264|maximum(?:[^.\d]{0,60}\b(?:is|of)|(?: (?:value|allowed|number|output|completion"
    rf"|tokens))+)|limit (?:of|is)|\[\d+,|inclusive\) to|between \d+ and){_NUMBER}"
    r"(?P<exclusive> \(exclusive\))?",
    re.IGNORECASE,
)
_RESETS = ("x-ratelimit-reset-requests", "x-ratelimit-reset-tokens", "x-ratelimit-reset")
_EPOCH = 10**9  # a larger number of seconds is a date

Kind = Literal["loading", "credit", "daily", "long", ""]


class Refusal(NamedTuple):
    """An error answer of a server.

    Attributes:
        status: the HTTP status; within a reply, the error's code, or 0 without one.
        complaint: its message, the request field it names, its error code and details.
        message: its message alone.
        headers: the answer's headers.
    """

    status: int
    complaint: str
    message: str
    headers: Mapping[str, str]

    @property
    def kind(self) -> Kind:
        """What it is about, where its words tell that better than its status."""
        if self.status == 401:
            return ""
        if self.status in _MAY_LOAD and _LOADING.match(self.message):
            return "loading"
        limited = self.status in (402, 403, 429)
        # The details of other errors may repeat the request.
        words = self.complaint if limited else self.message
        if _CREDIT.search(words) and (limited or self.status == 400):
            return "credit"
        if limited and _DAILY.search(self.complaint) and not _SLIDING.search(self.complaint):
            return "daily"
        if self.status != 403 and (TOO_LONG.search(words) or _PROMPT_TOO_LONG.search(words)):
            return "long"
        is_credit = self.status == 402 or (
            self.status == 429 and _PERHAPS_CREDIT.search(self.complaint)
        )
        return "credit" if is_credit and self.delay is None else ""

    @property
    def delay(self) -> float | None:
        """How many seconds it asks to wait, in a header or in its words; None if it doesn't."""
        get = self.headers.get
        for value in (get("retry-after-ms", "") + "ms", get("retry-after", "")):
            if (seconds := _seconds(value.strip())) is not None:
                return seconds
        if match := _AGAIN.search(self.complaint):
            return _seconds(match[1] or match.groups()[-1])
        resets = {name: _seconds(get(name, "")) for name in _RESETS}
        used_up = [name for name in resets if get(name.replace("reset", "remaining")) == "0"]
        waits = [wait for name in used_up or resets if (wait := resets[name]) is not None]
        return (max if used_up else min)(waits, default=None) if self.status == 429 else None

    @property
    def is_short_of_credit(self) -> bool:
        """Whether the account has credit left, enough for fewer tokens."""
        return bool(_AFFORDABLE.search(self.complaint))

    @property
    def refuses_system(self) -> bool:
        """Whether it is about the role of the system's message, as many chat templates' are."""
        return self.status != 401 and bool(_SYSTEM_ROLE.search(self.complaint))

    def room(self, limit: int) -> tuple[int | None, bool]:
        """Return how many of `limit` tokens of a reply it allows, and whether for every prompt.

        That is 0 where the prompt alone is too long; None where it doesn't tell.
        """
        words = self.complaint
        if (affordable := _number(_AFFORDABLE, words)) is not None:
            return affordable, False
        if _PROMPT_TOO_LONG.search(words):
            return 0, False
        if terms := _SUM.search(words):
            return max(0, int(terms[2]) - int(terms[1])), False
        prompt, window = _number(_PROMPT, words), _number(_WINDOW, words)
        if window is None and (cap := _number(_CAP, words)) is not None:
            return max(0, cap - (prompt or 0)), prompt is None
        if prompt is None:
            requested = _number(_REQUESTED, words)
            prompt = requested - limit if requested and requested > limit else None
        if window is None or prompt is None:
            return None, self.kind != "long"
        return max(0, window - prompt), False


def read_refusal(body: object, status: int, headers: Mapping[str, str]) -> Refusal:
    """Return an error answer in one shape, whatever the server's own shape is.

    Args:
        body: the decoded JSON, or text that is not JSON: ``[{"error": {…}}]``, ``{"error": {…}}``,
            or the message itself.
        status: the HTTP status; 0 for an error within a reply, whose code is used instead.
        headers: the answer's headers.
    """
    if isinstance(body, list) and body:
        body = body[0]
    outer = body if isinstance(body, dict) else {}
    inner = outer.get("error")
    fields: dict[str, Any] = inner if isinstance(inner, dict) else outer or {"message": body}
    words = [_word(fields.get(name)) for name in _WORDS]
    if not status:
        code = next(filter(_CODE.fullmatch, words), "0")
        named = (n for n, names in _STATUSES.items() if re.search(names, " ".join(words), re.I))
        status = int(code) or next(named, 0)
    metadata: Any = fields.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    message = fields.get("message") or fields.get("detail") or fields.get("error") or ""
    text = _message(metadata.get("raw")) or _message(message) or _dump(message)
    text = text[:_MAX_WORDS]
    nested = [_dump(_without_input(fields[name])) for name in _NESTED if fields.get(name)]
    if text != message:
        nested.append(_dump(_without_input(message)))
    upstream = metadata.get("headers")
    if isinstance(upstream, dict):
        headers = {**{k.lower(): str(v) for k, v in upstream.items()}, **headers}
    nested += [f"{name}: {_word(outer.get(name))}" for name in _SIGNS if outer.get(name)]
    details = " ".join([*words, *nested])
    return Refusal(status, f"{text} {details[:_MAX_WORDS]}".strip(), text, headers)


def find_error(chunk: object, event: str | None = None) -> object:
    """Return the error in a chunk or in a whole reply, if there is one."""
    if isinstance(chunk, list):
        chunk = chunk[0] if chunk else None
    if not isinstance(chunk, dict):
        return None
    named = "error" in (event, chunk.get("object"), chunk.get("type"))
    coded = "message" in chunk and _CODE.fullmatch(_word(chunk.get("code")))
    if chunk.get("error") or named or coded:
        return chunk
    choices = chunk.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) and first.get("error") else None


def _message(value: object, depth: int = 0) -> str:
    """Return the first message within a value, which may be JSON in a text."""
    if depth > _MAX_DEPTH:
        return ""
    if isinstance(value, str):
        try:
            is_json = value.lstrip().startswith(("{", "["))
            return _message(json.loads(value), depth + 1) or value if is_json else value
        except (ValueError, RecursionError):
            return value
    parts = value[:3] if isinstance(value, list) else []
    if isinstance(value, dict):
        parts = [value.get(name) for name in ("error", "message", "msg", "detail")]
    return next(filter(None, (_message(part, depth + 1) for part in parts)), "")


def _without_input(details: object) -> object:
    if isinstance(details, list):
        return [_without_input(detail) for detail in details if not isinstance(detail, list)]
    if isinstance(details, dict):
        return {name: value for name, value in details.items() if name != "input"}
    return details


def _dump(value: object) -> str:
    try:
        return value if isinstance(value, str) else json.dumps(value)
    except RecursionError:
        return ""


def _word(value: object) -> str:
    """Return a field that should be a word; a server may send anything else instead."""
    return str(value) if value and isinstance(value, str | int | float) else ""


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    if match := pattern.search(text):
        number = next(group for group in match.groups() if group)
        return int(number.replace(",", "")) - bool(match.groupdict().get("exclusive"))
    return None


def _seconds(text: str) -> float | None:
    """Return the seconds in ``1m2.5s``, ``20``, a date or a time since 1970; None for none."""
    if re.fullmatch(r"-?\d{1,15}(?:\.\d+)?", text):
        seconds = float(text)
        seconds /= 1_000 if seconds > 1_000 * _EPOCH else 1
        return max(0.0, seconds - time.time() if seconds > _EPOCH else seconds)
    if amounts := re.findall(_AMOUNT, text, re.IGNORECASE):
        units = [(float(n), u.lower()) for n, u in amounts]
        return sum(n * _SECONDS.get(u[:3], _SECONDS[u[0]]) for n, u in units)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError, TypeError):
        return None
