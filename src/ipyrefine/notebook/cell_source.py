"""Read a cell once: as a task or a draft, with what stays above it; and other cells."""

import ast
import hashlib
import json
import os
import re
import stat
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from ipyrefine.checks import variable_of
from ipyrefine.core.languages import code_language, is_python, pygments_name, read_fence
from ipyrefine.core.model import Material, count
from ipyrefine.core.syntax import ERRORS, FUNCTION, parse, tree_of, try_parse, unparse
from ipyrefine.errors import UsageError
from ipyrefine.kernel.magics import has_python_beside_magics
from ipyrefine.kernel.names import (
    names_behind,
    names_defined,
    names_in_code,
    names_in_draft,
    names_in_prose,
    without_names,
)
from ipyrefine.kernel.redaction import redact, secret_values
from ipyrefine.notebook.cell_target import (
    Origin,
    button_press,
    source_cell_id,
    source_cell_text,
)
from ipyrefine.profiles import Profile
from ipyrefine.sandbox.programs.reading import class_dict

_MAGIC = re.compile(r"\s*%%(?P<name>\w+)(?P<arguments>[^\n]*)(?:\n|\Z)")
_STUB = """\
Write what is missing in this code, as it says itself. Keep its names, parameters and docstrings.

```python
{}
```"""
# As a sentence begins: a capital and a second word, or three words.
_WORDS = re.compile(
    r"[A-Z][a-z'-]*,? [\w'`\"(]|[A-Za-z][\w'-]*(?:,? [\w'`\"(-]+){2,}|[¿¡]|[^\W\d_a-zA-Z]"
)
_CODE_START = re.compile(
    r"\s*(?:(?:def|class|from|import|return|if|elif|else|for|while|with|try|except|async|await|"
    r"lambda|assert|raise|del|global|yield|print)\b|[@%!)\]}]|[\w.\[\]'\"]+\s*(?:[-+*/|&]?=|\())"
)
_DEFINES = re.compile(r"(?:#.*\n)*(?:@|(?:async )?def\b|class\b|import\b|from\b)")
_ASKS = re.compile(r"^\s*[¿¡]?[^\W\d]\w* \w.*\?\s*$", re.MULTILINE)
_LOOKED_AT = 100  # cells, for those that used a name
LEFT_BY_US = ("refined", "refined_run")
_SOURCE = 1_000  # characters of the source of a cell above
_TOTAL = 2_000  # characters of all cells; the nearest ones count first
_RULES = 12_000  # characters of standing wishes
_EXAMPLE = ast.Compare | ast.Assert
_GAP = re.compile(r"\n[^\S\n]*\n")
_ABSTRACT = re.compile(r"\b(?:ABC|Protocol)\b")
_RAISES = re.compile(r'(?:""".*"""\s*)?raise NotImplementedError\b.*', re.DOTALL)
_EMPTY = re.compile(rf'""".*"""(?:\s*(?:pass|\.\.\.))*|{_RAISES.pattern}', re.DOTALL)


class CellSource(NamedTuple):
    """What a cell means to a run.

    Attributes:
        text: the task, or the draft.
        is_draft: which of them it is.
        head: what stays above the refined text in the cell: its magic's line, or its comments.
        language: the language of its code, as pygments names it; None where only the text can say.
        origin: the cell that the text goes back to; None where that is not named.
        wish: what the cell itself says that its code should become; empty for nothing.
    """

    text: str
    is_draft: bool
    head: str = ""
    language: str | None = None
    origin: Origin | None = None
    wish: str = ""

    @property
    def code(self) -> str:
        """The Python of a draft; empty for a task, and for another language."""
        if not self.is_draft or self.language not in (None, "python"):
            return ""
        fenced = read_fence(self.text)
        return self.text if fenced is None else fenced.text * (fenced.tag == "python")

    @property
    def warnings(self) -> list[str]:
        """A sentence on the cell magic that stays above a draft, if there is one."""
        magic = self.head.strip()
        is_magic = self.is_draft and magic.startswith("%%")
        return [f"Kept as it is, and never run by checks: {magic}"] if is_magic else []


def read_source(args: Namespace, body: str, shell: Any) -> CellSource:
    """Read the body of a `%%refine` cell.

    Raises:
        UsageError: it is empty.
    """
    if not body.strip():
        raise UsageError("The cell is empty. Write a task or code below its first line.")
    looks = args.draft and args.max_revisions == 0
    if (args.cell or looks) and args.profile in (None, "code"):
        source = read_code_cell(body, shell)
        unnamed = source.head.lstrip().startswith("%%") and not source.language
        in_words = unnamed and source.text.strip() and is_words(source.text, shell)
        if in_words or source.language in ("markdown", "text"):
            args.profile, source = args.profile or "prose", source._replace(language=None)
        if args.draft and not source.is_draft:
            source = (looks and _instructed(body)) or CellSource(body, True)
            args.profile = args.profile or ("prose" if looks and not source.wish else None)
        if looks and not args.profile and not is_python(body):  # what looks like words is not
            args.profile = "code"
        source = source._replace(is_draft=source.is_draft and not args.task)
    else:
        # To IPython a question above code is a line that asks for help.
        ipython = has_python_beside_magics(body) and not (_ASKS.match(body) and _instructed(body))
        is_code = ipython or is_python(body) or read_fence(body) is not None
        source = CellSource(body, args.draft or (not args.task and is_code))
        if not (args.draft or args.task or is_code) and args.profile in (None, "code"):
            source = _instructed(body, unfinished=args.coach) or source
            args.profile = args.profile or ("code" if args.coach else None)
    if source.is_draft and not args.draft and _is_stub(source.code):
        source = source._replace(text=_STUB.format(source.code.strip("\n")), is_draft=False)
    text, language = source.text.strip(), args.language or source.language
    if source.is_draft:
        text = source.text.rstrip("\n") if args.lines else source.text.strip("\n")
        language = language or ("python" if has_python_beside_magics(text) else None)
    origin = Origin(args.cell, body, source.head) if args.cell else None
    return source._replace(text=text, language=language, origin=origin)


def _instructed(cell: str, *, unfinished: bool = False) -> CellSource | None:
    """Return code with the instruction above it; None where a cell does not hold these two.

    The code is all that follows a blank line, and more than expressions, which may be examples.
    With `unfinished`, it may be a definition or an import that does not parse.
    """
    for gap in _GAP.finditer(cell):
        wish, code = cell[: gap.start()].strip(), cell[gap.end() :]
        broken = unfinished and try_parse(code) is None and _DEFINES.match(code)
        body = tree_of(code).body
        # An example of what to write is no code to change.
        is_example = body and isinstance(getattr(body[0], "value", body[0]), _EXAMPLE)
        defines = not is_example and not all(isinstance(one, ast.Expr | ast.Assert) for one in body)
        if wish and (broken or (defines and not _is_stub(code))):
            return CellSource(code, True, wish=wish)
    return None


def _is_stub(code: str) -> bool:
    """Return True if code waits for its functions to be written: none of them has a body yet."""
    body = tree_of(code).body
    owned = [one for owner in body if isinstance(owner, ast.ClassDef) for one in owner.body]
    written = [o for o in (*body, *owned) if isinstance(o, FUNCTION) and not o.decorator_list]
    bodies = [unparse(ast.Module(one.body, [])) for one in written]
    empty = not _ABSTRACT.search(code) and bool(bodies) and all(map(_EMPTY.fullmatch, bodies))
    return empty or (not owned and any(map(_RAISES.fullmatch, bodies)))


def read_code_cell(source: str, shell: Any) -> CellSource:
    """Read a code cell: comments and words are a task, everything else is a draft.

    The line of a cell magic stays above it.
    """
    if magic := _MAGIC.match(source):
        body = source[magic.end() :]
        return CellSource(body, True, magic[0], _language(magic, body))
    lines = [line.strip() for line in source.strip().splitlines()]
    if all(line.startswith("#") for line in lines if line):
        task = "\n".join(line.lstrip("#").removeprefix(" ") for line in lines).strip()
        if task:
            return CellSource(task, False, f"{source.rstrip()}\n\n")
    if is_words(source, shell):
        return CellSource(source.strip(), False)
    return CellSource(source, True)


def _language(magic: re.Match[str], body: str) -> str | None:
    """Return the language of a magic's body, as pygments names it; None for Python and for words.

    The magic says it, or the file or program that it names, or the body.
    """
    from pygments.lexers import find_lexer_class_for_filename, get_all_lexers  # type: ignore[import-untyped]

    known = {alias for _, aliases, *_ in get_all_lexers() for alias in aliases}
    last = magic["arguments"].split(" ")[-1].strip()
    names = [magic["name"], last * (magic["name"] == "script")]
    names += getattr(find_lexer_class_for_filename(last), "aliases", [])[:1]
    name = next((one for one in map(pygments_name, names) if one in known), code_language(body))
    return None if name == "python" else name


def is_words(source: str, shell: Any) -> bool:
    """Return True if a cell is a request in words rather than code, which may be broken code."""
    try:
        # To IPython a sentence that asks is one for help.
        body = parse(source if _ASKS.search(source) else shell.transform_cell(source)).body
    except ERRORS:
        first = next(line for line in source.splitlines() if line.strip())
        return bool(_WORDS.match(first.strip())) and not _CODE_START.match(first)
    match body:
        case [ast.Expr(ast.Name(name))] if not name.isascii() and name not in shell.user_ns:
            return True  # a sentence without spaces
    values = [getattr(n.value, "value", None) if isinstance(n, ast.Expr) else None for n in body]
    return all(isinstance(value, str) for value in values)


def exact_body(body: str) -> str:
    """Return a cell's body as its editor shows it, to which IPython has added a line end."""
    body = body.replace("\r\n", "\n")
    _, _, held = (source_cell_text() or "").lstrip("\n").partition("\n")
    return held if held.rstrip("\n") == body.rstrip("\n") else body


class CellKey(NamedTuple):
    """What a cell is recognised by when it runs again.

    Attributes:
        cell: its id, with its task and options; empty where the front-end does not name it.
        task: its task and options alone.
    """

    cell: str = ""
    task: str = ""


def cell_key(words: Sequence[str], body: str = "") -> CellKey:
    """Return the key of the running cell."""

    def digest(*parts: Any) -> str:
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    cell_id, asked = source_cell_id(), ([word for word in words if word != "--again"], body)
    return CellKey(digest(cell_id, button_press(), *asked) if cell_id else "", digest(*asked))


def visible_names(shell: Any) -> dict[str, Any]:
    """Return the user's variables, without those that IPython put there."""
    hidden, missing = getattr(shell, "user_ns_hidden", {}), object()
    return {
        n: v for n, v in shell.user_ns.items() if hidden.get(n, missing) is not v and type(n) is str
    }


def request_of(args: Namespace, source: CellSource) -> str:
    """Return what a cell asks for, in words."""
    words = (args.goal if source.is_draft else source.text, source.wish, args.change)
    return "\n\n".join(filter(None, words))


def names_of_judges(shell: Any, args: Namespace, source: CellSource) -> set[str]:
    """Return the names of what judges a run, and of what that is made of: no model may see it.

    A name given by ``-v`` is none of them, nor is one that the cell uses, unless an option is it.
    """
    space = visible_names(shell)
    named = (args.prompts, args.profile, args.judge)
    options = [n for n in named if isinstance(space.get(n), Mapping | Profile | FunctionType)]
    asked = {*names_in_draft(source.code), *names_in_prose(request_of(args, source)), *args.var}
    roots = {*options, *map(variable_of, args.check)}.difference(args.var)
    return names_behind(roots, space, shell.history_manager.input_hist_raw[:-1], asked)


# Other cells


def latest_names(
    shell: Any, most: int, own: Sequence[str], hidden: Set[str]
) -> list[tuple[str, ...]]:
    """Return what the latest cells used or defined of the notebook's own, the last one first.

    What a cell reads comes before what only it defines. Not among them is the cell at hand, whose
    sources are `own`, nor what concerns hidden names, nor what is imported.
    """
    known = {name for name, value in visible_names(shell).items() if not _is_imported(value)}
    known -= {*hidden, *LEFT_BY_US}

    def names_in(source: str) -> tuple[str, ...]:
        shown = without_names(source, hidden)
        used = dict.fromkeys([*names_in_code(shown), *names_defined(shown)])
        return tuple(name for name in used if name in known)

    found = (names for _, one in _cells_run(shell, own)[:_LOOKED_AT] if (names := names_in(one)))
    return [*islice(found, most)]


def _is_imported(value: Any) -> bool:
    if issubclass(type(value), type):
        return bool(class_dict(value).get("__module__") != "__main__")
    is_function = type(value) is FunctionType
    return type(value) is ModuleType or (is_function and value.__module__ != "__main__")


def _cells_run(shell: Any, own: Sequence[str]) -> list[tuple[int, str]]:
    """Return each cell that ran before, once, with its number; the last one first."""
    seen = {"", *map(str.strip, own)}
    sources = enumerate(map(str.strip, shell.history_manager.input_hist_raw[:-1]))
    latest = {source: number for number, source in sources if source not in seen}
    return sorted(((number, source) for source, number in latest.items()), reverse=True)


def read_definitions(
    shell: Any,
    names: Iterable[str],
    own: Sequence[str],
    hidden: Set[str] = frozenset(),
) -> Material | None:
    """Return the cells that define some names; None for nothing.

    Cells are as this kernel ran them, except the one at hand with its `own` sources, and without
    what defines hidden names. One that changes a name brings the one before it along.
    """
    wanted, chosen = {*names} & shell.user_ns.keys(), list[str]()
    for _, source in _cells_run(shell, own):
        is_near = any(name in source for name in wanted)
        defined = wanted.intersection(names_defined(source) if is_near else ())
        if defined:
            chosen.insert(0, source)
            wanted -= defined.difference(names_in_code(source))
    texts = _texts(chosen, secret_values(shell.user_ns), hidden)
    if not texts:
        return None
    phrase, text = f"the code of {count(len(texts), 'cell')}", "\n\n".join(texts)
    plain = "\n\n".join(filter(None, map(_names_and_calls, texts)))
    return Material(kind="definitions", name="cells", phrase=phrase, text=text, structure=plain)


def _names_and_calls(text: str) -> str:
    """Return a cell below its head with no constant in it; nothing for one that isn't Python."""
    head, _, source = text.partition("\n")
    tree = try_parse(source)
    return f"{head}\n{unparse(_NoConstants().visit(tree))}" if tree and tree.body else ""


class _NoConstants(ast.NodeTransformer):
    """Puts ``...`` in the place of constants, and of displays of nothing else."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        parts = (ast.Constant, ast.expr_context)
        held = all(isinstance(one, parts) for one in ast.iter_child_nodes(node))
        display = isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict) and held
        is_text = type(node).__name__ in ("Constant", "JoinedStr", "TemplateStr")
        return ast.Constant(...) if display or is_text else node


def read_rules(path: str) -> Material | None:
    """Return the standing wishes in a file that the user named; None where there is no such text.

    Whoever gave the user the folder may have put a link, a pipe or a device there: it is not read.

    Raises:
        UsageError: the file is not UTF-8 text, or cannot be read.
    """
    try:
        here, path = os.path.realpath("."), os.path.abspath(os.path.expanduser(path))
        below = os.path.relpath(path, os.path.abspath("."))
        is_linked = below[:2] != ".." and os.path.realpath(path) != os.path.join(here, below)
        if is_linked or not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with open(os.open(path, os.O_RDONLY | flags), encoding="utf-8") as file:
            text = file.read(2 * _RULES)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # or no file has this name
        unreadable = isinstance(error, UnicodeDecodeError)
        reason = "it is not UTF-8" if unreadable else getattr(error, "strerror", error)
        raise UsageError(f"{path} can't be read as your standing wishes ({reason}).") from None
    name = os.path.basename(path)
    text = _cut(redact(text), _RULES).strip()
    return Material(kind="rules", name=name, phrase=name, text=text) if text else None


def _texts(cells: Sequence[str], secrets: list[str], hidden: Set[str]) -> list[str]:
    """Return sources below a head, without secrets and hidden names, as room allows."""
    texts, room = [], _TOTAL
    for whole in reversed(cells):
        # Cut roughly first, so that hiding secrets takes bounded time; a cut secret is hidden too.
        source = without_names(whole.strip(), hidden)[: 2 * _SOURCE]
        text = f"[code cell]\n{_cut(redact(source, secrets), _SOURCE)}"
        if len(text) > room:
            break
        if source:
            room -= len(text)
            texts.append(text)
    return texts[::-1]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[:width]}\n… (cut)"
