"""The check of a task's literal demands: what is read, what is not, and what keeps them."""

import time

import pytest

from ipyrefine.checks import resolve
from ipyrefine.checks.constraints import (
    MAX_CONSTRAINTS,
    Constraint,
    Constraints,
    compile_constraints,
    count_sentences,
    count_words,
    describe,
)
from ipyrefine.core.model import Evidence, Severity, Task

SEPARATED = "Write 3 paragraphs, separated by ***."


async def evidence(request: str, text: str) -> Evidence:
    (check,) = resolve(["constraints"], {})
    return await check(text, Task(text=request))


@pytest.mark.parametrize(
    ("request_text", "phrases"),
    [
        ("Explain tides in at most 120 words.", "at most 120 words"),
        ("Explain tides. Max 1,200 words.", "at most 1,200 words"),
        ("Explain tides in under 120 words.", "at most 119 words"),
        ("I don't want anything longer than 30 words.", "at most 30 words"),
        ("Write an ad with 150+ words.", "at least 150 words"),
        ("Write an ad with 400 or more words about hammocks.", "at least 400 words"),
        ("Your reply should contain 600 to 700 words.", "600 to 700 words"),
        ("Use between three and five sentences.", "3 to 5 sentences"),
        ("Answer in 2 sentences.", "exactly 2 sentences"),
        ("Write a four-paragraph essay on trams.", "exactly 4 paragraphs"),
        ("The poem must have exactly 8 lines.", "exactly 8 lines"),
        ("List the risks in 3 bullet points.", "exactly 3 bullets"),
        ("Write a tweet of no more than 280 characters.", "at most 280 characters"),
        ("Length: 150-250 words.", "150 to 250 words"),
        ("Max length: 90 words.", "at most 90 words"),
        ("Word limit: 300 words.", "at most 300 words"),
        ("Respond with a single word.", "exactly 1 word"),
        ("Keep the email to two short paragraphs.", "exactly 2 paragraphs"),
        ("Summarize this abstract in no more than 3 sentences.", "at most 3 sentences"),
        ("A toast, please. 50 words minimum, 80 words maximum.", "50 to 80 words"),
        ('Write a bio. Mention "Oslo".', 'contains "Oslo"'),
        ("Include the keywords rain and snow.", 'contains "rain", contains "snow"'),
        ("The word tide should appear at least 3 times.", 'contains "tide" at least 3 times'),
        ('Use the word "tide" less than 2 times.', 'contains "tide" at most 1 time'),
        ("Do not mention the word tide more than twice.", 'contains "tide" at most 2 times'),
        ("Don't use the words 'sea' or 'salt'.", 'without "sea", without "salt"'),
        ("Write a song without the word blue.", 'without "blue"'),
        ("Make sure the letter q appears at least 4 times.", 'the letter "q" at least 4 times'),
        ("Write a poem without the letter e.", 'no letter "e"'),
        ("Do not use any commas.", "no commas"),
        ("Write a slogan. No exclamation marks.", "no exclamation marks"),
        ("Answer in all lowercase letters.", "all lowercase"),
        ("Your entire response should be in all capital letters.", "all capitals"),
        ("Use words in all capital letters at least 3 times.", "at least 3 words in capitals"),
        ('Start your letter with "Dear Ada,".', 'starts with "Dear Ada,"'),
        ('Write a story that ends with the line "So it was."', 'ends with "So it was."'),
        ('End your reply with the exact phrase "Over."', 'ends with "Over."'),
        ("Finish the song with:\n\nPeace!\n\nNothing else.", 'ends with "Peace!"'),
        (
            'Start the 2nd paragraph with the word "elm".',
            'paragraph 2 starts with "elm"',
        ),
        ("Wrap your entire response in double quotation marks.", "wrapped in double quotes"),
        ("Give it a title in double angular brackets, i.e. <<joy>>.", "a title in <<>>"),
        ("Highlight at least 2 sections with markdown, i.e. *this*.", "at least 2 *highlights*"),
        (
            "Include at least 3 placeholders, such as [name].",
            "at least 3 [placeholders]",
        ),
        (
            "Write 4 sections. Mark the beginning of each section with Section X.",
            'at least 4 sections headed "Section"',
        ),
        ("Add a postscript starting with P.P.S", 'a postscript "P.P.S"'),
        (SEPARATED, "exactly 3 parts separated by ***"),
        (
            "Give two different answers, separated by 6 asterisk symbols: ******.",
            "exactly 2 parts separated by ******",
        ),
        ("Return your entire answer as JSON.", "JSON"),
        ('Answer with one of: "yes", "no".', 'one of "yes", "no"'),
        (
            "Why is it wet?\nFirst repeat the request word for word, then give your answer.",
            "repeats the request first",
        ),
        ("Hello Ann, please keep your reply under 50 words; thanks.", "at most 49 words"),
    ],
)
def test_a_literal_demand_is_read(request_text: str, phrases: str) -> None:
    assert describe(compile_constraints(request_text)) == phrases


@pytest.mark.parametrize(
    "request_text",
    [
        "Keep it short.",
        "Write around 200 words.",
        "Write a 500-word story.",
        "Ideally it has at most 100 words.",
        "Summarise a 500-word article.",
        "Write a story about a man who says at least three words.",
        "The essay below has 5 paragraphs. What is it about?",
        'Proofread "Use exactly 3 bullets and no commas."',
        "Explain this code:\n```\n# use at most 5 words\n```",
        "Shorten the following email:\n\nHi. Reply in at most 50 words. Do not use commas. Bye",
        "How do I write an essay of at least 500 words?",
        "If you need more than 3 paragraphs, add a title.",
        "Each bullet must have at most 5 words.",
        "Write an email with a subject line of at most 8 words.",
        "Write a guide on how to write tweets with at most 280 characters.",
        "My teacher said that essays should have at least five paragraphs.",
        'What does "without the word blue" mean?',
        "Write about the letter e.",
        "Include the word count.",
        "Explain how to parse JSON.",
        "Translate it into French.",
        "You may use at most 5 sentences about cats if you like.",
        "Write three sentences about dogs and three sentences about cats.",
        "Write a name of at most 2 words and a slogan of exactly 3 words.",
        "Add exactly 2 sentences about refunds to the text.",
        "Write a script that prints valid JSON.",
        "Give me 5 words to describe summer.",
        "Our guide says: use at most 20 words per sentence. Rewrite it accordingly.",
        "Write at least 10 sentences and at most 5 sentences.",
        'Name a string that ends with "x".',
        "",
    ],
)
def test_what_is_vague_or_about_something_else_is_not_read(request_text: str) -> None:
    assert describe(compile_constraints(request_text)) == ""


@pytest.mark.parametrize(
    ("constraint", "kept", "broken", "found"),
    [
        (Constraint("words", 0, 3), "a b - c", "a b c d", "4 words, 1 too many"),
        (Constraint("words", 3), "a b c", "a b", "2 words, 1 too few"),
        (Constraint("sentences", 2, 2), "Dr. Wu ran. He won!", "One.", "1 sentence, 1 too few"),
        (Constraint("paragraphs", 2, 2), "a\nb\n\nc", "a\nb", "1 paragraph, 1 too few"),
        (Constraint("lines", 2, 2), "a\n\nb", "a", "1 line, 1 too few"),
        (Constraint("bullets", 2, 2), "So:\n* a\n- b", "* a", "1 bullet, 1 too few"),
        (Constraint("characters", 0, 3), "abc", "abcd", "4 characters, 1 too many"),
        (Constraint("contains", 1, None, ("rate",)), "Rates rise", "R", '"rate" 0 times'),
        (Constraint("contains", 0, 0, ("key",)), "monkeys", "A Key.", '"key" 1 time'),
        (Constraint("contains", 0, 1, ("it's",)), "It’s", "it's it's", '"it\'s" 2 times'),  # noqa: RUF001
        (Constraint("letters", 2, None, ("q",)), "Qq", "q", 'the letter "q" 1 time, 1 too few'),
        (Constraint("letters", 0, 0, ("e",)), "aio", "E", 'the letter "e" 1 time, 1 too many'),
        (Constraint("punctuation", 0, 0, (",",)), "a; b", "a, b,", "2 commas, 2 too many"),
        (Constraint("lowercase"), "a 1.", "A b", "1 capital letter"),
        (Constraint("uppercase"), "A 1.", "A bc", "2 small letters"),
        (Constraint("capitalised words", 2), "IT is OK", "It is OK", "1 word in capitals"),
        (Constraint("start", terms=("Dear Ada,",)), "**Dear  Ada,** hi", "Hi", '"Hi" at its start'),
        (Constraint("end", terms=("Over.",)), 'He said: "Over."', "Over. Out", "at its end"),
        (Constraint("first word", terms=("elm",), place=2), "a\n\nElm, b", "elm", "only 1"),
        (Constraint("first word", terms=("elm",), place=1), "elm", "an elm", '"an" there'),
        (Constraint("quotes"), '"a"', '"a" b', "no double quotes around"),
        (Constraint("title"), "<<Joy>>\nx", "<< >>", "no <<title>>"),
        (Constraint("highlights", 2), "* x\n*a* **b**", "*a*", "1 *highlight*, 1 too few"),
        (Constraint("placeholders", 2), "[a] [b]", "[a", "0 [placeholders]"),
        (Constraint("sections", 2, None, ("Part",)), "Part 1 a Part 2", "part 1", "0 such"),
        (Constraint("postscript", terms=("P.S.",)), "Hi\nP. S. ok", "PSA", 'no "P.S."'),
        (Constraint("postscript", terms=("P.P.S",)), "P.P.S ok", "P.S. ok", 'no "P.P.S"'),
        (Constraint("parts", 2, 2, ("***",)), "a\n***\nb\n***", "a *** *** b", "an empty part"),
        (Constraint("parts", 2, 2, ("***",)), "***a***b", "a", "1 part, 1 too few"),
        (Constraint("responses", 2, 2, ("******",)), "a******b", "a ****** a", "the same part"),
        (Constraint("json"), '```json\n{"a": 1}\n```', "{a}", "no JSON: "),
        (Constraint("json"), "[]", "[" * 100_000, "no JSON: "),
        (Constraint("repeat", terms=("Why  so?",)), "why so?\nAs", "As", '"As" at its start'),
        (Constraint("choice", terms=("no", "not sure")), "Not sure.", "no; not sure", "and"),
        (Constraint("choice", terms=("yes", "no")), "Yes.", "Maybe", "none of them"),
    ],
)
def test_a_text_keeps_or_breaks_it(
    constraint: Constraint, kept: str, broken: str, found: str
) -> None:
    assert constraint.check(kept)[0]
    passed, message = constraint.check(broken)
    assert not passed
    assert found in message
    assert constraint.phrase
    assert not Constraint("words", 1).check("")[0]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", 0),
        ("one", 1),
        ("It is so. it was so. It", 3),
        ("Mr. J. Wu, e.g. me, paid 3.5 euros. Fine...", 2),
        ("She said no. He is 30. So am I. Salt, oil, etc. is on p. x. Eat, drink, etc. Go.", 6),
        ('"Why?" he asked. "Go!" Then he left.', 3),
        ("1. Salt\n2. Oil.", 1),
        ("Yes?! No.", 2),
        ("好。 是。", 2),
    ],
)
def test_sentences(text: str, sentences: int) -> None:
    assert count_sentences(text) == sentences


def test_words_are_what_has_a_letter_or_a_digit() -> None:
    assert count_words("* Don't – 3 well-known\n***") == 3  # noqa: RUF001


async def test_the_evidence_has_a_line_for_each_constraint_and_a_finding_for_each_broken_one() -> (
    None
):
    request = 'Write a toast in at most 3 words, in 1 sentence, without the word "cheap".'
    result = await evidence(request, "Cheap wine for all.")
    assert result.detail.splitlines() == [
        "at most 3 words: 4 words, 1 too many",
        "exactly 1 sentence: 1 sentence",
        'without "cheap": "cheap" 1 time',
    ]
    assert (result.passed, result.required, result.decisive) == (False, True, False)
    assert result.basis == "constraints"
    assert result.score == pytest.approx(1 / 3)
    words, term = result.findings
    assert (words.criterion, words.severity, words.author) == ("words", Severity.BLOCKING, "check")
    assert words.problem == ("The task demands: at most 3 words. The text has 4 words, 1 too many.")
    assert term.quote == "Cheap"


async def test_kept_constraints_settle_only_themselves() -> None:
    result = await evidence("Answer in 1 sentence.", "So be it.")
    assert (result.passed, result.score, result.findings) == (True, 1.0, ())
    assert not result.decisive


async def test_code_and_tasks_without_constraints_are_not_judged() -> None:
    assert (await evidence("Write a poem.", "x")).passed is None
    task = Task(text="Use at most 3 lines.", form="code")
    assert (await Constraints()("x = 1", task)).passed is None


def test_bounds_on_one_thing_are_one_constraint() -> None:
    found = compile_constraints("Use at least 3 bullets. Write at most 5 bullets. 3 bullets min.")
    assert found == (Constraint("bullets", 3, 5),)


HOSTILE = {
    "words": "at least 3 words " * 100_000,
    "spaces": "Use at least" + " " * 200_000 + "3 words",
    "quotes": '"' * 100_000,
    "pairs": 'Include "a", ' * 50_000,
    "names": "Include the words " + "a, " * 100_000,
    "letters": "a" * 500_000,
    "numbers": "at most 1,000,000" * 20_000,
    "stars": "*" * 300_000,
    "brackets": "<<[" * 100_000,
    "negations": "do not use the " * 50_000,
    "that": "a letter that must have " * 20_000,
    "repeat": "repeat the request " * 20_000,
    "in the": "in the response please " * 20_000,
    "the words": "the words a, a a, a and a " * 20_000,
    "fill": "all the letters in your entire response " * 20_000,
    "breaks": "\n" * 300_000,
    "marks": "\ue000\uf8ff" * 1_000,
    "end": "end the response with the exact phrase " * 20_000,
    "json": "in a valid " * 50_000,
    "capital": "words phrases capital " * 20_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_request_is_read_soon(name: str) -> None:
    began = time.perf_counter()
    found = compile_constraints(HOSTILE[name])
    assert len(found) <= MAX_CONSTRAINTS
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize("kind", ["sentences", "words", "highlights", "placeholders", "title"])
@pytest.mark.parametrize("text", ["." * 500_000, "[" * 500_000, "*" * 500_000, "< \n" * 200_000])
def test_a_hostile_text_is_measured_soon(kind: str, text: str) -> None:
    began = time.perf_counter()
    Constraint(kind, 1).check(text)
    assert time.perf_counter() - began < 2


def test_half_of_a_surrogate_and_other_scripts_do_no_harm() -> None:
    assert compile_constraints("\ud800 Используйте 3 слова. Use at most 3 words \ud800.")
    for kind in ("words", "sentences", "lowercase", "uppercase", "json"):
        Constraint(kind).check("\ud800 文 \x00")
