"""What the check ``constraints`` reads in requests: precision and recall, run by hand.

``python tests/bench/constraints.py [--data DIR] [--list]``: on IFEval's requests a demand counts as
right if it means what one of the case's instructions means, by kind and numbers; texts made to keep
and to break each instruction are then given to both checkers. On requests in our own words
(``requests.jsonl``) the labels are the demands as phrases; LLMBar's and exercism's tasks state
almost none. Needs langdetect, nltk and immutabledict; no model.
"""

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tables import Table

from ipyrefine.checks.constraints import Constraint, compile_constraints

REQUESTS = Path(__file__).with_name("requests.jsonl")
TEXT = (
    "the a of and in to with is was on for that they have this from we "
    "were there about would river stone light garden window paper summer road bridge music morning"
)
WORDS = TEXT.split()


def bounds(relation: str, number: int) -> tuple[int, int | None]:
    """The counts that an IFEval relation allows."""
    return (0, number - 1) if relation == "less than" else (number, None)


def meanings(kind: str, args: dict[str, Any]) -> list[list[Constraint]]:
    """What an IFEval instruction means: constraints, each in the forms it may be said in."""
    name = kind.partition(":")[2]
    match name:
        case "number_words" | "number_sentences":
            unit = "words" if name == "number_words" else "sentences"
            number = args["num_words" if unit == "words" else "num_sentences"]
            return [[Constraint(unit, *bounds(args["relation"], number))]]
        case "number_paragraphs":
            number = args["num_paragraphs"]
            return [[Constraint("parts", number, number, ("***",))]]
        case "nth_paragraph_first_word":
            number = args["num_paragraphs"]
            return [
                [Constraint("paragraphs", number, number)],
                [
                    Constraint(
                        "first word", terms=(args["first_word"],), place=args["nth_paragraph"]
                    )
                ],
            ]
        case "existence":
            return [[Constraint("contains", 1, None, (one,))] for one in args["keywords"]]
        case "forbidden_words":
            return [[Constraint("contains", 0, 0, (one,))] for one in args["forbidden_words"]]
        case "frequency":
            low, high = bounds(args["relation"], args["frequency"])
            return [[Constraint("contains", low, high, (args["keyword"],))]]
        case "letter_frequency":
            low, high = bounds(args["let_relation"], args["let_frequency"])
            mark = Constraint("punctuation", low, high, (args["letter"],))
            return [[Constraint("letters", low, high, (args["letter"],)), mark]]
        case "capital_word_frequency":
            low, high = bounds(args["capital_relation"], args["capital_frequency"])
            return [[Constraint("capitalised words", low, high)]]
        case "number_bullet_lists":
            return [[Constraint("bullets", args["num_bullets"], args["num_bullets"])]]
        case "number_highlighted_sections":
            return [[Constraint("highlights", args["num_highlights"])]]
        case "number_placeholders":
            return [[Constraint("placeholders", args["num_placeholders"])]]
        case "multiple_sections":
            return [
                [Constraint("sections", args["num_sections"], None, (args["section_spliter"],))]
            ]
        case "postscript":
            return [[Constraint("postscript", terms=(args["postscript_marker"],))]]
        case "end_checker":
            return [[Constraint("end", terms=(args["end_phrase"],))]]
        case "repeat_prompt":
            return [[Constraint("repeat", terms=(args["prompt_to_repeat"],))]]
        case "response_language":
            return [[Constraint("language", terms=(args["language"],))]]
        case "constrained_response":
            return [[Constraint("choice", terms=tuple(f"My answer is {w}." for w in ANSWERS))]]
        case "no_comma":
            return [[Constraint("punctuation", 0, 0, (",",))]]
    names = {
        "json_format": "json",
        "title": "title",
        "quotation": "quotes",
        "english_capital": "uppercase",
        "english_lowercase": "lowercase",
    }
    if name == "two_responses":
        return [[Constraint("responses", 2, 2, ("******",))]]
    return [[Constraint(names[name])]]


ANSWERS = ("yes", "no", "maybe")


def plain(constraint: Constraint) -> tuple[Any, ...]:
    """What two constraints of one meaning share: numbers, and terms without spelling."""
    terms = tuple(re.sub(r"\W+", " ", term).strip().casefold() or term for term in constraint.terms)
    high = None if constraint.kind == "sections" else constraint.high
    return constraint.kind, constraint.low, high, terms, constraint.place


def expected(case: dict[str, Any]) -> list[tuple[str, list[list[Constraint]]]]:
    """The meanings of a case's instructions."""
    args = [{k: v for k, v in one.items() if v is not None} for one in case["kwargs"]]
    return [
        (kind, meanings(kind, one))
        for kind, one in zip(case["instruction_id_list"], args, strict=True)
    ]


def span(parts: list[list[Constraint]]) -> list[set[tuple[Any, ...]]]:
    """The comparable forms of a meaning's parts."""
    return [{plain(form) for form in forms} for forms in parts]


def compare(case: dict[str, Any]) -> tuple[list[str], list[Constraint], list[Constraint]]:
    """The instructions that were read, the right constraints and the others."""
    found = compile_constraints(case["prompt"])
    wanted = expected(case)
    # Two bounds on one count may be read as one: "600 to 700 words" is at least and at most.
    joined: dict[tuple[Any, ...], list[Constraint]] = {}
    for _, parts in wanted:
        for forms in parts:
            for form in forms:
                joined.setdefault((form.kind, form.terms, form.place), []).append(form)
    ranges = {
        plain(
            Constraint(
                kind,
                max(one.low for one in group),
                min((one.high for one in group if one.high is not None), default=None),
                terms,
                place,
            )
        )
        for (kind, terms, place), group in joined.items()
    }
    plains = {plain(one) for one in found}
    all_forms = {form for _, parts in wanted for forms in span(parts) for form in forms} | ranges
    right = [one for one in found if plain(one) in all_forms]
    wrong = [one for one in found if plain(one) not in all_forms]

    def read(forms: set[tuple[Any, ...]]) -> bool:
        if forms & plains:
            return True
        return any(
            (form[0], *form[3:]) == (one[0], *one[3:]) and one in ranges
            for form in forms
            for one in plains
        )

    kinds = [kind for kind, parts in wanted if all(read(forms) for forms in span(parts))]
    return kinds, right, wrong


def report_ifeval(cases: list[dict[str, Any]], title: str, *, listing: bool) -> None:
    """Print precision and recall by kind."""
    asked, read = Counter[str](), Counter[str]()
    right, wrong = Counter[str](), Counter[str]()
    for case in cases:
        kinds, good, bad = compare(case)
        asked.update(case["instruction_id_list"])
        read.update(kinds)
        right.update(one.kind for one in good)
        wrong.update(one.kind for one in bad)
        if listing:
            missed = Counter(case["instruction_id_list"]) - Counter(kinds)
            if bad or missed:
                print("\n", case["key"], case["prompt"][:700])
                print("  wrong:", [one.phrase for one in bad], " missed:", list(missed))
    table = Table(f"{title}: recall by instruction", "instruction", "asked", "read", "%")
    for kind, number in sorted(asked.items()):
        table.row(kind, number, read[kind], 100 * read[kind] / number)
    table.row("all", asked.total(), read.total(), 100 * read.total() / max(asked.total(), 1))
    table = Table(f"{title}: precision by kind", "kind", "read", "right", "%")
    for kind in sorted(right | wrong):
        total = right[kind] + wrong[kind]
        table.row(kind, total, right[kind], 100 * right[kind] / total)
    total = right.total() + wrong.total()
    table.row("all", total, right.total(), 100 * right.total() / max(total, 1))


def made_texts(case: dict[str, Any], draw: random.Random) -> Iterator[str]:
    """Texts near the bounds of a case's instructions, some of which keep each and some break it."""
    terms = [
        term
        for _, parts in expected(case)
        for forms in parts
        for term in forms[0].terms
        if forms[0].kind in ("contains", "letters", "first word")
    ]
    sizes = [
        number
        for _, parts in expected(case)
        for forms in parts
        if forms[0].kind in ("words", "sentences", "bullets", "parts", "highlights")
        for number in (forms[0].low, forms[0].high)
        if number
    ] or [20]
    for _ in range(24):
        size = max(1, draw.choice(sizes) + draw.choice((-2, -1, 0, 1, 2, 5)))
        words = [draw.choice(WORDS) for _ in range(max(size, 8))]
        for term in terms:
            for _ in range(draw.randrange(6)):
                words[draw.randrange(len(words))] = term
        every = draw.choice((1, 4, 7))
        text = " ".join(
            word.capitalize() + "." if (at + 1) % every == 0 else word
            for at, word in enumerate(words)
        )
        lines = text.split(". ")[:size]
        shape = draw.randrange(12)
        shapes = [
            text,
            text.upper(),
            text.lower(),
            f'"{text}"',
            f"<<{words[0]}>>\n\n{text}",
            "\n".join(f"* {line}" for line in lines),
            "\n***\n".join(f"{line}." for line in lines[:size]),
            " ".join(f"*{word}*" if at < size else word for at, word in enumerate(words)),
            f"{text}\n\nP.S. {words[0]}",
            f"{text}\n******\n{words[0]}.",
            json.dumps({"text": text}),
            " ".join(f"[{word}]" if at < size else word for at, word in enumerate(words)),
        ]
        yield shapes[shape]
    ends = [f[0].terms[0] for _, p in expected(case) for f in p if f[0].kind in ("end", "repeat")]
    for one in ends:
        yield f"{one} {WORDS[0]}"
        yield f"{WORDS[0]} {one}"
        yield f"{one}\n{WORDS[1]}\n{one}"
    for letter in "ab":
        yield f"P.P.S. {letter}, Section 1 x Section 2 y Section 3 z Section 4 Section 5 Section 6"
        yield "My answer is yes." if letter == "a" else "Perhaps."


def agreement(cases: list[dict[str, Any]], follows: Any, *, listing: bool) -> None:
    """Print how often both checkers say the same of made texts, for cases that were read wholly."""
    import instruction_following_eval.instructions_util as util
    import nltk
    from nltk.tokenize import PunktSentenceTokenizer

    # The trained sentence model is not always at hand; on plain words both say the same.
    util._get_sentence_tokenizer = PunktSentenceTokenizer
    nltk.word_tokenize = partial(nltk.word_tokenize, preserve_line=True)
    same, tried, kept = Counter[str](), Counter[str](), Counter[str]()
    for case in cases:
        _, right, _ = compare(case)
        for at, kind in enumerate(case["instruction_id_list"]):
            one = {**case, "instruction_id_list": [kind], "kwargs": [case["kwargs"][at]]}
            forms = {form for group in span(expected(one)[0][1]) for form in group}
            ours = [each for each in right if plain(each) in forms]
            if not ours or len(ours) < len(expected(one)[0][1]):
                continue
            for text in made_texts(one, random.Random(case["key"])):
                theirs = follows(one, text)[0]
                mine = all(each.check(text)[0] for each in ours)
                tried[kind] += 1
                kept[kind] += theirs
                same[kind] += mine == theirs
                if listing and mine != theirs:
                    print(kind, [each.phrase for each in ours], mine, theirs, repr(text[:160]))
    table = Table("Both checkers on made texts", "instruction", "texts", "kept", "same", "%")
    for kind in sorted(tried):
        table.row(kind, tried[kind], kept[kind], same[kind], 100 * same[kind] / tried[kind])
    table.row("all", tried.total(), kept.total(), same.total(), 100 * same.total() / tried.total())


def report_requests(*, listing: bool) -> None:
    """Print precision and recall on the requests in our own words."""
    right = wrong = missed = 0
    false_cases = none = 0
    for line in REQUESTS.read_text("utf-8").splitlines():
        request = json.loads(line)
        found = {one.phrase for one in compile_constraints(request["text"])}
        stated = set(request["states"])
        right += len(found & stated)
        wrong += len(found - stated)
        missed += len(stated - found)
        none += not stated
        false_cases += not stated and bool(found)
        if listing and found != stated:
            print("\n", request["text"][:300])
            print("  wrong:", found - stated, " missed:", stated - found)
    table = Table("Requests in our own words", "what", "of", "right", "%")
    table.row("precision", right + wrong, right, 100 * right / max(right + wrong, 1))
    table.row("recall", right + missed, right, 100 * right / max(right + missed, 1))
    table.row("stating none: read none", none, none - false_cases, 100 * (1 - false_cases / none))


def report_silent(name: str, texts: list[str]) -> None:
    """Print each demand that is read where almost none is stated."""
    hits = [(text, compile_constraints(text)) for text in texts]
    hits = [(text, found) for text, found in hits if found]
    table = Table(f"{name}: requests with a demand", "requests", "with a demand", "%")
    table.row(str(len(texts)), len(hits), 100 * len(hits) / len(texts))
    for text, found in hits:
        print("-", [one.phrase for one in found], "|", " ".join(text.split())[:400])


def main() -> None:
    """Read the cases and print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--list", action="store_true", help="print each miss of the even rows")
    args = parser.parse_args()
    sys.path.insert(0, str(args.data))
    from load import cases, follows

    ifeval = cases("ifeval")
    report_ifeval(ifeval[::2], "IFEval, even rows", listing=args.list)
    report_ifeval(ifeval[1::2], "IFEval, odd rows", listing=False)
    report_ifeval(ifeval, "IFEval, all", listing=False)
    agreement(ifeval, follows, listing=args.list)
    report_requests(listing=args.list)
    report_silent("LLMBar", [case["input"] for case in cases("llmbar")])
    report_silent("exercism", [case["instructions"] for case in cases("exercism")])


if __name__ == "__main__":
    main()
