"""Find the addresses that a text names, and the masks that stand in it for secrets."""

import re

from ipyrefine.core.syntax import try_parse, unparse

MASK = re.compile(r"MASKED_SECRET_\d{1,4}")  # what a model is sent in place of a secret

# Browsers take these schemes without slashes, and what starts with two as an address, too.
_ADDRESS = re.compile(
    r"(?:\b[a-z][\w+.-]{0,20}://|\b(?:https?|wss?|ftp):[/\\]*(?=[\w\[])"
    r"|(?<![^\s\"'`(=<])//(?=[\w-]+\.))(?:[^\s/?#@\"'`<>]{0,200}@)?"
    r"(?:(?P<open>(?=[\"']))|(?P<host>\[[\da-f:.]+\]|[^\s/?#:@\"'`<>()\[\]\\,;]{0,250}))"
    r"|(?<![\w.])(?P<bare>(?:\d{1,3}\.){3}\d{1,3}|localhost)(?!\.?\w)",
    re.IGNORECASE,
)


def find_addresses(text: str) -> list[str]:
    """Return the hosts of the addresses that a text names, each once, in their order.

    Comments of Python do not count. A host that code puts together is given as far as it is
    written: ``http://…``, ``{host}``. One without ``//`` before it is found only where it is an IP
    address or ``localhost``.
    """
    tree, found = try_parse(text), []
    for match in _ADDRESS.finditer(unparse(tree) if tree else text):
        host = (match["bare"] or match["host"] or "").lower().rstrip(".")
        if host or match["open"] is not None:
            found.append(host or f"{match[0]}…")
    return [*dict.fromkeys(found)]
