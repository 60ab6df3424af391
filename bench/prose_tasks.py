"""Write IFEval's prose by draft, by plain resampling and by the loop, and print the tables.

``python bench/prose_tasks.py [--tasks A-B] [--ask]`` needs the extras ``local`` and
``bench``, IFEval's own checkers (its folder ``instruction_following_eval``) beside the cases, and
for 4 of the first 50 cases nltk's data ``punkt_tab``. A text is solved when it keeps all
constraints of its case, by IFEval's strict checker. Resampling stops at the first text that meets
the demands we read, within the loop's tokens; `arms` says more.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import arms
import measure

from ipyrefine.core.table import Result

_PUNKT = ("length_constraints:number_sentences", "change_case:capital_word_frequency")

Follows = Callable[[Mapping[str, Any], str], list[bool]]

# What the requests were read for when the kept replies were made, where that is not prose.
_ANSWERS = (1098, 1108, 1137, 1216, 1219, 1258, 1286, 13, 1342, 1402)
_STORIES = (1082, 1127, 1139, 1259, 1361, 1379, 1446, 1477, 1508, 1566, 1580, 1591)
_PROFILES = dict.fromkeys(_ANSWERS, "answer") | dict.fromkeys(_STORIES, "story")


class IfEval:
    """An IFEval request with its checkable constraints."""

    def __init__(self, fields: Mapping[str, Any], follows: Follows) -> None:
        self._fields, self._follows = fields, follows
        self.name, self.text = f"IFEval {fields['key']}", str(fields["prompt"])
        self.profile = _PROFILES.get(fields["key"], "prose")

    @property
    def kinds(self) -> list[str]:
        """The kinds of its constraints."""
        return list(self._fields["instruction_id_list"])

    async def solves(self, text: str) -> bool:
        return all(self.kept(text))

    def kept(self, text: str) -> list[bool]:
        """Return for each constraint whether a text keeps it."""
        return self._follows(self._fields, text)

    async def answer(self, row: Result) -> str | None:
        return None


def load(folder: Path, tasks: str | None) -> Sequence[IfEval]:
    """Return the cases that can be checked here, and say how many cannot.

    Raises:
        SystemExit: the checkers are not installed.
    """
    rows = measure.load_cases(folder, "ifeval")
    sys.path.insert(0, str(folder.resolve()))
    try:
        import langdetect
        import nltk
        from instruction_following_eval.instructions_registry import INSTRUCTION_DICT
    except ImportError as error:
        raise SystemExit(f"IFEval's checkers need {error.name}: the docstring says more") from None
    finally:
        sys.path.pop(0)
    langdetect.DetectorFactory.seed = 0

    def follows(fields: Mapping[str, Any], text: str) -> list[bool]:
        random.seed(0)  # a checker draws a letter where the one it is given is none
        kinds = zip(fields["instruction_id_list"], fields["kwargs"], strict=True)
        return [_keeps(INSTRUCTION_DICT[kind](kind), given, fields, text) for kind, given in kinds]

    cases = [IfEval(rows[n], follows) for n in measure.task_range(tasks, "0-49", len(rows) - 1)]
    try:
        nltk.data.find("tokenizers/punkt_tab/english")
    except LookupError:
        ready = [case for case in cases if not any(kind in _PUNKT for kind in case.kinds)]
        if len(ready) < len(cases):
            print(
                f"{len(cases) - len(ready)} of {len(cases)} cases are left out, as they need "
                "nltk's data: python -m nltk.downloader punkt_tab"
            )
        return ready
    return cases


def _keeps(checker: Any, given: Mapping[str, Any], fields: Mapping[str, Any], text: str) -> bool:
    """Return whether a text keeps a constraint, by IFEval's strict checker."""
    checker.build_description(**{name: value for name, value in given.items() if value is not None})
    if "prompt" in (checker.get_instruction_args() or ()):
        checker.build_description(prompt=fields["prompt"])
    return bool(text.strip()) and bool(checker.check_following(text))


def by_kind(cases: Sequence[IfEval], texts: Mapping[str, Mapping[str, str]]) -> str:
    """Return a table of the constraints kept by each arm's texts, by kind."""
    kept = {arm: Counter[str]() for arm in texts}
    total = Counter[str]()
    for case in cases:
        total.update(case.kinds)
        for arm, by_case in texts.items():
            held = zip(case.kinds, case.kept(by_case[case.name]), strict=True)
            kept[arm].update(kind for kind, holds in held if holds)
    lines = [[kind, n, *(kept[arm][kind] for arm in texts)] for kind, n in total.most_common()]
    lines.append(["all", total.total(), *(kept[arm].total() for arm in texts)])
    return measure.table(["constraints kept", "of", *texts], lines)


def main() -> None:
    """Run the cases and print the tables."""
    parser = measure.parser(__doc__)
    arms.add_options(parser)
    options = parser.parse_args()
    cases = load(options.data, options.tasks)
    replies = measure.kept_replies("ifeval", options)
    rows = arms.run("IFEval", cases, replies, arms.plan(options))
    if rows:
        done = cases[: len(rows)]
        texts = {
            arm: {case.name: row.arms[arm].text for case, row in zip(done, rows, strict=True)}
            for arm in ("draft", "resampling", "loop")
        }
        print(f"{by_kind(done, texts)}\n")
    measure.stop(replies, len(rows), len(cases))


if __name__ == "__main__":
    main()
