"""What the benches of the model share: kept replies, options, intervals and tables."""

import argparse
import asyncio
import hashlib
import json
import math
import re
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import platformdirs
from tqdm import tqdm

from ipyrefine.api import choose_model
from ipyrefine.core.model import Usage
from ipyrefine.core.ports import Delta, Model, Notice, Reply, Request
from ipyrefine.errors import ModelError, RequestRejected, UsageError

MODEL = "qwen2.5-coder-1.5b"
DATA = Path(__file__).parents[2] / "shared" / "data"
_HALVINGS = 40  # of the range in which a bound is looked for
_CELL = 60  # characters of a message in a table

# Fences have a new nonce in each run, and addresses in memory differ.
_VOLATILE = re.compile(r"(?<=material-)[0-9a-f]+|0x[0-9a-f]{6,}")

T = TypeVar("T")


class MissingReply(ModelError):
    """A replay needs a reply that was not kept."""


class Replies:
    """A model whose replies are kept in a file, each as soon as it is there.

    Args:
        name: the model's name.
        path: a line of JSON for each reply: the request's hash, the reply, the seconds it took.
        ask: whether the model is asked for a reply that was not kept.

    Attributes:
        missing: what the first reply that was not kept would have been, or empty.
        asked: how often the model was asked.
    """

    def __init__(self, name: str, path: Path, *, ask: bool = False) -> None:
        self.name, self.path, self.missing, self.asked = name, path, "", 0
        self._ask, self._choose = ask, cache(choose_model)
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self._kept = {one["key"]: one for one in map(_read, lines) if one.get("model") == name}

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Notice | Reply, None]:
        """Yield the reply in one piece; its usage holds the seconds it took at first.

        Raises:
            MissingReply: it was not kept, and the model may not be asked.
            RequestRejected: the model rejected the request; that is kept too.
        """
        key = hash_request(request)
        if key not in self._kept:
            await self._fetch(key, request)
        kept = self._kept[key]
        if "rejected" in kept:
            raise RequestRejected(kept["rejected"])
        fields = kept["reply"].items()  # kept by an earlier version, it may have others
        reply = Reply.model_validate({n: v for n, v in fields if n in Reply.model_fields})
        usage = reply.usage.model_copy(update={"seconds": kept["seconds"]})
        yield Delta(text=reply.text)
        yield reply.model_copy(update={"usage": usage})

    async def _fetch(self, key: str, request: Request) -> None:
        if not self._ask:
            # The engine turns an error into a stop, so the bench looks here.
            self.missing = self.missing or f"a {request.purpose or 'bare'} reply ({key[:12]})"
            raise MissingReply(f"{self.path} lacks {self.missing}. Add --ask to ask {self.name}.")
        start, line = time.perf_counter(), dict[str, Any]()
        try:
            reply = await complete(self._choose(self.name), request)
            line["reply"] = reply.model_dump(mode="json")
        except RequestRejected as error:
            line["rejected"] = str(error)
        line = {"key": key, "model": self.name, "seconds": time.perf_counter() - start, **line}
        self.asked += 1
        self._kept[key] = line
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" + json.dumps(line))  # a stop may have cut the line before it


class Meter:
    """A model that adds up in `usage` what one arm consumes."""

    def __init__(self, model: Model) -> None:
        self.name, self.usage, self._model = model.name, Usage(), model

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Notice | Reply, None]:
        """Pass the model's reply on."""
        async with aclosing(self._model.stream(request)) as parts:  # type: ignore[type-var]
            async for part in parts:
                if isinstance(part, Reply):
                    self.usage += part.usage
                yield part


async def complete(model: Model, request: Request) -> Reply:
    """Return the whole reply."""
    reply = Reply(text="", finish="incomplete")
    async with aclosing(model.stream(request)) as parts:  # type: ignore[type-var]
        async for part in parts:
            if isinstance(part, Reply):
                reply = part
    return reply


def hash_request(request: Request) -> str:
    """Return a hash of what the model is sent, the same in every run."""
    names = {"messages", "json_schema", "max_tokens", "temperature", "seed"}
    sent = request.model_dump(mode="json", include=names)
    sent["temperature"] = request.temperature or 0.0
    text = json.dumps(sent, sort_keys=True)
    return hashlib.sha256(_VOLATILE.sub("", text).encode()).hexdigest()


def _read(line: str) -> dict[str, Any]:
    try:
        return dict(json.loads(line))
    except ValueError:
        return {}  # a stop cut it in the middle


# Options.


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that all benches of the model have."""
    formatter = argparse.RawDescriptionHelpFormatter
    options = argparse.ArgumentParser(description=description, formatter_class=formatter)
    options.add_argument("--data", type=Path, default=DATA, help=f"the cases ({DATA})")
    options.add_argument("--tasks", metavar="A-B", help="which cases, by their place in the file")
    options.add_argument("--model", default=MODEL, help=f"who is asked ({MODEL})")
    options.add_argument("--replies", type=Path, metavar="FILE", help="where replies are kept")
    options.add_argument("--ask", action="store_true", help="ask the model for missing replies")
    return options


def kept_replies(name: str, options: argparse.Namespace) -> Replies:
    """Return the replies on a set, which are kept in the project or in the user's cache."""
    kept = Path(__file__).parent / "kept" / f"{name}.jsonl"
    folder = Path(platformdirs.user_cache_dir("ipyrefine")) / "bench"
    other = folder / f"{name}-{options.model.replace('/', '_')}.jsonl"
    path = options.replies or (kept if options.model == MODEL and kept.exists() else other)
    return Replies(options.model, path, ask=options.ask)


def task_range(wanted: str | None, default: str, last: int) -> range:
    """Return the places that ``--tasks`` names."""
    first, _, end = (wanted or default).partition("-")
    if not first.isdecimal() or not (end or first).isdecimal():
        raise SystemExit(f"--tasks takes a range such as {default}, not {wanted!r}.")
    low, high = int(first), int(end or first)
    if not low <= high <= last:
        raise SystemExit(f"--tasks takes a range within 0-{last}, not {wanted}.")
    return range(low, high + 1)


def load_cases(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the cases of a file, such as ``mbpp_plus``."""
    path = folder / f"{name}.jsonl"
    if not path.exists():
        raise SystemExit(f"There is no {path}. Say with --data where the cases are.")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# Running.


def collect(
    what: str,
    cases: Sequence[Any],
    model: Replies,
    run_case: Callable[[Any], Awaitable[T]],
    note: Callable[[Sequence[T]], str],
) -> list[T]:
    """Run cases one after another and return what came of them, as a row each.

    A stop (Ctrl-C, or a replay that lacks a reply) returns the rows that there are.
    """
    rows: list[T] = []

    async def run_all() -> None:
        for case in (bar := tqdm(cases, unit="task", desc=what)):
            row = await run_case(case)
            if model.missing:
                model.missing = f"{model.missing} for {case.name}"
                return
            rows.append(row)
            bar.set_postfix_str(f"{note(rows)}, asked {model.asked}")

    try:
        asyncio.run(run_all())
    except MissingReply:
        model.missing = f"{model.missing} for {cases[len(rows)].name}"
    except KeyboardInterrupt:
        print(f"\nStopped after {len(rows)} of {len(cases)} tasks; run it again to go on.")
    except UsageError as error:
        raise SystemExit(str(error)) from None
    return rows


# Intervals and tables.


def exact_interval(held: int, of: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a proportion, from 0 to 1 (Clopper and Pearson, 1934).

    Args:
        held: how many of them hold.
        of: how many there are, at least one.
    """

    def below(most: int, chance: float) -> float:
        """Return the probability that at most so many hold."""
        terms = (math.comb(of, n) * chance**n * (1 - chance) ** (of - n) for n in range(most + 1))
        return sum(terms)

    def solve(most: int, wanted: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if below(most, middle) > wanted else (low, middle)
        return low

    low = solve(held - 1, 0.975) if held else 0.0
    return low, solve(held, 0.025) if held < of else 1.0


def share(rows: Sequence[T], holds: Callable[[T], bool]) -> str:
    """Return how many rows meet a condition, in per cent, with its exact 95 % interval."""
    if not rows:
        return "0 of 0"
    held, of = sum(map(holds, rows)), len(rows)
    low, high = exact_interval(held, of)
    return f"{held} of {of}: {100 * held / of:.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def paired(rows: Sequence[T], holds: Callable[[T], bool], before: Callable[[T], bool]) -> str:
    """Return how many rows meet only one of two conditions, with the exact test of McNemar."""
    more = sum(holds(row) and not before(row) for row in rows)
    less = sum(before(row) and not holds(row) for row in rows)
    tail = sum(math.comb(more + less, n) for n in range(min(more, less) + 1))
    return f"{more} more, {less} less (p = {min(1.0, 2 * tail / 2 ** (more + less)):.2g})"


def short(message: str) -> str:
    """Return a message as a table's cell: one line, cut."""
    return " ".join(message.split()).replace("|", "/")[:_CELL]


def table(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def stop(replies: Replies, done: int, wanted: int) -> None:
    """End with what is missing where a replay lacked a reply."""
    if replies.missing:
        sys.exit(
            f"\nStopped after {done} of {wanted} cases: {replies.path} lacks {replies.missing}. "
            f"Add --ask to ask {replies.name} for what is missing."
        )
