"""What code would touch outside of the kernel: files, addresses, tables and commands it names."""

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from ipyrefine.core.syntax import try_parse

_MOST, _LONG = 12, 120  # things; characters of one
_WRITES = re.compile(
    r"to_(?:csv|excel|feather|file|hdf|html|json|latex|markdown|parquet|pickle|sql|stata|xml)|"
    r"save\w*|urlretrieve|imwrite"
)
_CHANGES = re.compile(
    r"(?:os|shutil)\.(?:copy\w*|makedirs|mkdir|move|remove|rename|replace|rmdir|rmtree|unlink)"
)
_PATH_CHANGES = ("mkdir", "rename", "rmdir", "touch", "unlink", "write_bytes", "write_text")
_READS = re.compile(r"open|Path|read_\w+|load(?!s)\w*|listdir|scandir|i?glob|connect")
_COMMANDS = re.compile(r"subprocess\.\w+|os\.(?:system|popen)")
_ADDRESS = re.compile(r"[a-z][\w+]*://\S+")
_SQL = re.compile(
    r"\s*(select|with|insert|update|delete|create|drop|alter|truncate|merge|replace)\s", re.I
)
_TABLE = re.compile(
    r"\b(?:from|join|into|update|table(?:\s+if(?:\s+not)?\s+exists)?)\s+([\w.\"`]+)", re.I
)


Verb = Literal["reads", "writes", "reaches", "runs"]


class Effect(NamedTuple):
    """Something that code would touch."""

    verb: Verb
    what: str  # the literal: a path, an address, a table or a command


@lru_cache(maxsize=16)
def effects(code: str) -> tuple[Effect, ...]:
    """Return what code names as strings and would touch when it runs; nothing of mere functions.

    A name that is assigned one string stands for it. What is put together while it runs is not
    known, but an f-string is given with its places.
    """
    tree = try_parse(code)
    quiet = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
    if tree is None or all(isinstance(one, quiet) for one in tree.body):
        return ()
    texts = {
        one.targets[0].id: one.value
        for one in tree.body
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
    }
    calls = (one for one in ast.walk(tree) if isinstance(one, ast.Call))
    in_order = sorted(calls, key=lambda one: (one.lineno, one.col_offset))
    found = [effect for call in in_order for effect in _of_call(call, texts)]
    written = {one.what for one in found if one.verb == "writes"}
    kept = (one for one in found if one.verb != "reads" or one.what not in written)
    return tuple(dict.fromkeys(kept))[:_MOST]


def _of_call(call: ast.Call, texts: dict[str, ast.expr]) -> Iterator[Effect]:
    called = ast.unparse(call.func)
    name = called.rpartition(".")[2]
    values = (*call.args, *(one.value for one in call.keywords))
    given = [text for one in values if (text := _text(one, texts))]
    match call.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="Path"), args=[path])) if (
            name in _PATH_CHANGES and (text := _text(path, texts))
        ):
            yield Effect("writes", text[:_LONG])
    named = [one for one in given if _ADDRESS.match(one) or _SQL.match(one)]
    for text in named:
        if _ADDRESS.match(text):
            yield Effect("reaches", text[:_LONG])
            continue
        verb: Verb = "reads" if text.split()[0].lower() in ("select", "with") else "writes"
        yield from (Effect(verb, f"table {one}") for one in _TABLE.findall(text))
    if not given or given[0] in named:
        return
    first = given[0][:_LONG]
    opened = any(re.fullmatch(r"[rbt+]*[wax][bt+]*", one) for one in given[1:])
    if _COMMANDS.fullmatch(called):
        yield Effect("runs", first)
    elif _WRITES.fullmatch(name) or _CHANGES.fullmatch(called) or (name == "open" and opened):
        yield Effect("writes", f"table {first}" if name == "to_sql" else first)
    elif _READS.fullmatch(name):
        yield Effect("reads", first)


def _text(node: ast.expr, texts: dict[str, ast.expr]) -> str:
    node = texts.get(node.id, node) if isinstance(node, ast.Name) else node
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr():
            return ast.unparse(node)[2:-1]
        case ast.List(elts=[*parts]) if parts and all(isinstance(p, ast.Constant) for p in parts):
            return " ".join(str(ast.literal_eval(part)) for part in parts)
    return ""
