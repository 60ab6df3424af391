"""The shapes in which models put several things into one reply: JSON, tags, labelled lines."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_TRAILING = re.compile(r",(?=\s*[}\]])")


def json_objects(reply: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield where JSON objects start in a reply, and those.

    Raw line breaks, and commas after the last item, are forgiven.
    """
    decoder, start = json.JSONDecoder(strict=False), reply.find("{")
    while start >= 0:
        end = start + 1
        for source in (reply[start:], _TRAILING.sub("", reply[start:])):
            try:
                value, length = decoder.raw_decode(source)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield start, value
                end = start + length
            break
        start = reply.find("{", end)


def labelled(reply: str, names: Iterable[str]) -> tuple[str, list[tuple[str, str]]]:
    """Return what stands before the named parts of a reply, and those, each with its name.

    Args:
        reply: what a model wrote.
        names: names in lower case that count, in any case: as a tag ``<name>``; else as a label
            ``Name:`` or a heading ``## Name`` at the start of a line.
    """
    choice = "|".join(name.replace(" ", "[ _-]") for name in names)
    tags = rf"<(?P<name>{choice})>(?P<text>.*?)</(?P=name)>"
    found = list(re.finditer(tags, reply, re.IGNORECASE | re.DOTALL))
    texts = [match["text"] for match in found]
    if not found:
        marks = r"[^\S\n]*(?P<marks>(?:#{1,6}[^\S\n]+|\d+[.)][^\S\n]+|[*_])*)"
        ends = r"(?:\([^)\n]*\))?(?:(?P<colon>:)[*_]*[^\S\n]*|$)"
        label = rf"^{marks}(?P<name>{choice})[*_]*[^\S\n]*{ends}"
        lines = re.finditer(label, reply, re.IGNORECASE | re.MULTILINE)
        found = [match for match in lines if match["colon"] or match["marks"]]
        starts = [*(match.start() for match in found[1:]), len(reply)][: len(found)]
        texts = [reply[match.end() : end] for match, end in zip(found, starts, strict=True)]
    before = reply[: found[0].start()].strip() if found else reply
    called = (re.sub(r"[_-]", " ", match["name"].lower()) for match in found)
    return before, list(zip(called, map(str.strip, texts), strict=True))
