"""Fenced blocks, JSON objects and answers in words of a model's reply."""

import json
import re
from itertools import islice
from typing import Any, NamedTuple

MARK = re.compile(r"^(?P<indent>[ \t]*)(?P<marks>`{3,}|~{3,})(?P<tag>[^`\n]*)$", re.MULTILINE)
CLOSING_TAG = re.compile(r"</text>\s*\Z")
_ANSWER = re.compile(r"\s*<text(?P<kind>[^>\n]*)>(?P<words>(?:(?!</text>).)+)</text>\s*", re.DOTALL)
_TRIED = 160  # places where an object may begin
_OPENS = re.compile(r"^[ \t]*\{", re.MULTILINE)  # an object on lines of its own


class Fence(NamedTuple):
    """A fenced block: its lines without the fence's indentation, and where it stands."""

    tag: str
    text: str
    start: int
    end: int
    closed: bool


def read_fences(reply: str) -> list[Fence]:
    """Return the fenced blocks of a reply, with any number of ``` or ~~~ from three on.

    Each ends at as many of the marks or more, indented no deeper. One that nothing closes goes on
    to the end.
    """
    found, opened = list[Fence](), None
    for mark in [*MARK.finditer(reply), None]:
        closes = mark and opened and mark["marks"].startswith(opened["marks"])
        if closes and (mark["tag"].strip() or len(mark["indent"]) > len(opened["indent"])):
            continue
        if opened and (mark is None or closes):
            stop = mark.start() if mark else len(reply)
            lines = reply[opened.end() + 1 : stop].split("\n")
            margin = opened["indent"]
            text = "\n".join(line.removeprefix(margin) for line in lines)
            if not mark:
                text = CLOSING_TAG.sub("", text)
            tag = opened["tag"].strip().split(" ")[0].split("{")[0].split(":")[0]
            end = mark.end() if mark else len(reply)
            closed = bool(mark) or text.rstrip().endswith(opened["marks"])  # beside its last line
            text = text if mark or not closed else text.rstrip()[: -len(opened["marks"])]
            found.append(Fence(tag, text, opened.start(), end, closed))
            opened = None
        elif not opened:
            opened = mark
    return found


def read_objects(reply: str) -> list[dict[str, Any]]:
    """Return the JSON objects of a reply that stand on lines of their own, also within a fence.

    Raw line breaks in strings are allowed. What is inside a sentence is a quotation, and what is no
    valid JSON is left out.
    """
    return [value for _, _, value in find_objects(reply)]


def find_objects(reply: str) -> list[tuple[int, int, dict[str, Any]]]:
    """Return the same with where each begins and ends."""
    decoder, end = json.JSONDecoder(strict=False), 0
    found = []
    for match in islice(_OPENS.finditer(reply), _TRIED):
        start = match.end() - 1
        if start < end:
            continue
        try:
            value, stop = decoder.raw_decode(reply, start)
        except (ValueError, RecursionError):
            continue
        if not reply[stop:].split("\n", 1)[0].strip(" \t`,;"):
            found.append((start, stop, value))
            end = stop
    return found


def read_answer(reply: str, kind: str = "") -> str:
    """Return what a reply holds that is nothing but words between text tags; else nothing.

    Where the tags may hold something else too, a `kind` is what the first one has to name.
    """
    found = _ANSWER.fullmatch(reply)
    return found["words"].strip() if found and kind in found["kind"] else ""
