"""What is being written right now, as HTML: the stage, the time, and the text as it comes."""

from ipyrefine.core.runs import Run
from ipyrefine.render import labels as words
from ipyrefine.render.escape import html_text

TAIL_CHARACTERS = 1_000
TAIL_LINES = 20


def stage_html(stage: str, iteration: int, allowed: int) -> str:
    """The stage under way, which a screen reader announces.

    Args:
        stage: name of the stage.
        iteration: number of the iteration.
        allowed: revisions allowed in all.
    """
    named = html_text(words.stage_name(stage, iteration, allowed))
    return f'<strong role="status" aria-live="polite">{named}</strong>'


def time_html(run: Run) -> str:
    """How long a run has taken and what is left of its budget."""
    left = words.budget_left(run)
    return html_text("".join(f"· {part} " for part in (words.seconds(run.seconds), left) if part))


def stream_html(id_: str, *, thinking: bool = False) -> str:
    """The place that the page's half fills with a streamed text.

    Args:
        id_: what the page knows the text by.
        thinking: whether the text is the model's thinking.
    """
    place = f'class="rf-text rf-wrap rf-stream" data-stream="{html_text(id_)}" tabindex="0"'
    return f"{_note(thinking)}<pre {place}><code></code></pre>"


def tail_html(text: str, *, thinking: bool = False) -> str:
    """The last lines of a text, for a page that cannot be sent the text piece by piece.

    Args:
        text: the text as far as it is written, or more of its end than is shown.
        thinking: whether the text is the model's thinking.
    """
    lines = text[-TAIL_CHARACTERS:].split("\n")[-TAIL_LINES:]
    tail = "\n".join(lines)
    shown = ("⋯\n" if len(tail) < len(text) else "") + html_text(tail)
    code = f'<pre class="rf-text rf-wrap rf-tail" tabindex="0"><code>{shown}</code></pre>'
    return f"{_note(thinking)}{code}"


def _note(thinking: bool) -> str:
    return '<p class="rf-quiet">Thinking…</p>' if thinking else ""
