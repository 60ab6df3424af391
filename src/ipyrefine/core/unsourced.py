"""Facts of prose that a critic finds in no source, which the user keeps or strikes."""

import re
from collections.abc import Iterable

from ipyrefine.core.run import Run

_MOST = 12  # of a text; one with more says what the model knows, not what it was given
_INVENTED = ("answer", "story")  # profiles whose texts are meant to say more than they were given


def rests_on_sources(run: Run) -> bool:
    """Return True if a critic is asked which facts of a text are in no source."""
    task, setup = run.task, run.setup
    told = bool(setup.draft) or any(one.kind != "rules" for one in task.materials)
    invented = task.profile in _INVENTED and not told
    return task.form == "prose" and not (invented or setup.weak_critic)


def find_unsourced(run: Run, text: str, facts: Iterable[str]) -> tuple[str, ...]:
    """Return those facts, as a text has them, that stand there and in no source of its run.

    Sources are the task, what was sent with it, and the user's own texts and words. Spaces and line
    breaks do not count, nor does case in a source.
    """
    material = (f"{one.name}\n{one.phrase}\n{one.text}" for one in run.task.materials)
    sources = "\n".join([*own_words(run), *material])
    stated = dict.fromkeys(_find(fact, text, r"(?![A-Za-z])") for fact in facts)
    found = [fact for fact in stated if fact and not _find(fact, sources, "", re.IGNORECASE)]
    return tuple(found) if len(found) <= _MOST else ()


def own_words(run: Run) -> list[str]:
    """Return what the user wrote of a run: the task, their texts, and what they said later."""
    asked = (run.task.request, *run.task.checklist, run.setup.draft or "", run.setup.wish)
    own = (one.text for one in run.iterations if one.author == "user")
    return [*asked, *guidance(run), *own]


def guidance(run: Run) -> list[str]:
    """Return what the user said as they decided."""
    said = (getattr(d, "guidance", "") or getattr(d, "reason", "") for d in run.decisions)
    return [words for words in said if words]


def _find(fact: str, text: str, end: str, flags: re.RegexFlag = re.NOFLAG) -> str:
    """Return words as a text has them, but not within a longer word or number; or nothing.

    `end` is what may not follow a letter; in a source, whose words may be inflected, anything may.
    """
    words = fact.strip(" .,;:\"'“”„`").split()
    if not words:
        return ""
    start = r"(?<!\d)(?<!\d[.,:])" if words[0][0].isdigit() else r"(?<![A-Za-z])"
    end = r"(?![.,:]?\d)" if words[-1][-1].isdigit() else end
    match = re.search(start + r"\s+".join(map(re.escape, words)) + end, text, flags)
    return match[0] if match else ""
