"""Code as HTML, with classes that `style` colours; without pygments it is plain escaped text."""

from functools import lru_cache

from ipyrefine.render.escape import html_text, plain

# Beyond this many characters colour costs more time than it is worth.
_LONGEST = 60_000


@lru_cache(maxsize=256)
def highlight(text: str, language: str) -> str:
    """Escape a code text, with ``<span class="rf-t-…">`` around its tokens.

    Args:
        text: the code.
        language: a pygments lexer name, or empty for no highlighting.
    """
    shown = plain(text)
    if not language or len(shown) > _LONGEST:
        return html_text(shown)
    try:
        from pygments import highlight as colour  # type: ignore[import-untyped]
        from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
        from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
    except ImportError:
        return html_text(shown)
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    formatter = HtmlFormatter(nowrap=True, classprefix="rf-t-")
    body = str(colour(shown, lexer, formatter))
    # The formatter ends every line with a newline, also a last one that had none.
    return body if shown.endswith("\n") else body.removesuffix("\n")
