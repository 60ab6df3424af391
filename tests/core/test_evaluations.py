# ruff: noqa: RUF001
"""What an evaluator's reply says, in any language: verdicts by their place, scores as numbers."""

import pytest

from ipyrefine.core.evaluations import parse_evaluation
from ipyrefine.errors import ReplyError

PASSES = [
    "PASS.", "`PASS`", "\nPASS\n", "Clear and short. PASS",
    "All tests PASS and the style is fine.\n\nPASS", "PASS – clear",
    "PASS: all operations are O(1)",
    "- **Correctness**: PASS\n- **Complexity**: PASS – O(1)\n- **Style**: PASS",
    "| Criterion | Verdict |\n|---|---|\n| Correctness | PASS |\n| Style | PASS |",
    "1. Korrektheit: PASS\n2. Stil: NEEDS_IMPROVEMENT (klein)\n\nGesamturteil: PASS",
    "1. 正确性：PASS\n2. 复杂度：PASS\n\n结论：PASS", "总体评价：PASS。代码清晰。",
    "代码清晰。PASS", "PASS。代码很好。", "Fazit: **PASS**",
    "## Verdict\n\nPASS\n\n## Feedback\nnone",
    '{"correctness":"PASS","complexity":"PASS","style":"PASS"}',
    '[{"criterion":"a","verdict":"PASS"},{"criterion":"b","verdict":"PASS"}]',
    '{"criterion":"a","verdict":"PASS"}\n{"criterion":"b","verdict":"PASS"}',
    '{"criteria":[{"name":"a","verdict":"FAIL"}],"overall":"PASS"}',
    '{"criteria":{"speed":{"verdict":"PASS"},"style":{"verdict":"PASS"}}}',
    '{"thoughts":"The tests PASS.","evaluation":{"verdict":"PASS","feedback":""}}',
    "<evaluation>PASS</evaluation><feedback></feedback>",
    "<correctness>PASS</correctness>\n<style>PASS</style>", "✅ PASS",
    '{\n  "evaluation": "PASS",\n  "feedback": "He said "no" thing"\n}',
    "Correctness → PASS\nComplexity → PASS", "[x] PASS\n[ ] NEEDS_IMPROVEMENT\n[ ] FAIL",
    "Verdict:PASS", "Thoughts: it seems right.\nEvaluation: PASS",
    "## Correctness\nGood.\n\n## Verdict: PASS", '{"evaluation": "PASS - well done"}',
    "Evaluación: PASS\nComentarios: ninguno", "Évaluation : PASS",
    "Verdict : PASS\nTout est clair.", "1. Evaluation: PASS\n2. Feedback: none",
    "PASS\n\nThe tests PASS too.", "Correctness: PASS. All fine.\nComplexity: PASS. O(1).",
    "- Correctness: PASS\n- Complexity: PASS\n\nSuggestions:\n- none",
    "{'evaluation': 'PASS', 'feedback': ''}",
    "| a | PASS | ok |\n| b | FAIL | slow |\n\n**Overall: PASS**",
]  # fmt: skip
FAILS = [
    "- **Correctness**: PASS\n- **Complexity**: FAIL – O(n)\n- **Style**: PASS",
    "| Criterion | Verdict |\n|---|---|\n| Style | PASS |\n| Speed | **FAIL** |\n| Docs | PASS |",
    "| Correctness | Complexity | Style |\n|---|---|---|\n| PASS | FAIL | PASS |",
    '{"correctness":"PASS","complexity":"FAIL","style":"PASS"}',
    '{"correctness":{"verdict":"PASS"},"complexity":{"verdict":"FAIL"},"style":{"verdict":"PASS"}}',
    '[{"criterion":"a","verdict":"PASS"},{"criterion":"b","verdict":"FAIL"},{"criterion":"c","verdict":"PASS"}]',
    '{"criterion":"a","verdict":"PASS"}\n{"criterion":"b","verdict":"FAIL"}\n{"criterion":"c","verdict":"PASS","note":"long"}',
    '```json\n{"results":[{"criterion":"a","status":"PASS"},{"criterion":"b","status":"FAIL"}]}\n```',
    "Criterion: A\nVerdict: PASS\n\nCriterion: B\nVerdict: FAIL\n\nCriterion: C\nVerdict: PASS",
    "### Correctness\nVerdict: PASS\n### Complexity\nFAIL (O(n))\n### Style\nPASS",
    "1. Correctness\nPASS\n2. Complexity\nFAIL (O(n))\n3. Style\nPASS",
    "<correctness>PASS</correctness>\n<complexity>FAIL</complexity>\n<style>PASS</style>",
    "Overall: FAIL\n1. a: PASS\n2. b: PASS",
    "1. 正确性：PASS\n2. 复杂度：FAIL（O(n)）\n3. 风格：PASS",
    "Korrektheit – PASS\nKomplexität – FAIL\nStil – PASS",
    "✅ Correctness: PASS\n❌ Complexity: FAIL\n✅ Style: PASS",
    "Correctness: Pass\nComplexity: Fail\nStyle: Pass",
    "Score: 0.95\nFAIL",
    "PASS: correctness\nFAIL: complexity\nPASS: style",
    "[PASS] Correctness\n[FAIL] Complexity\n[PASS] Style",
    '{"score": 0.9, "criteria": {"speed": "FAIL"}}',
    "Verdict: FAIL. O(n).",
    "Correctness: PASS, complexity: FAIL, style: PASS",
    "PASS\nPASS\nFAIL",
    "**Correctness:** PASS **Complexity:** FAIL **Style:** PASS",
    "Correctness: PASS; Complexity: FAIL; Style: PASS",
    "FAIL too slow",
]
NEEDS_WORK = [
    "1. Correctness: PASS\n2. Complexity: NEEDS_IMPROVEMENT\n3. Style: PASS",
    "Done: no",
]
# No verdict can be read: it is asked for once more, and then these words are feedback.
UNCLEAR = [
    "不是PASS。", "not a PASS", "I can't give it a PASS", "It is not a <b>PASS</b>",
    "PASS-Kriterien sind nicht erfüllt", "PASS, wenn getMin O(1) wäre", "Ce n'est pas un PASS.",
    "No merece un PASS.", "これはPASSではありません", "Это не PASS",
    "1. Correctness: not a PASS\n2. Style: PASS",
    "Correctness: PASS\nComplexity is a FAIL\nStyle: PASS", "Complexity is a FAIL.\n\nPASS",
    "Score: 9/10\nVerdict: not a PASS", "Not a PASS yet. I rate it 9/10.",
    '{"evaluation":"not a PASS"}', '{"correctness":"PASS","complexity":"no, O(n)","style":"PASS"}',
    "PASS?", "Is it a PASS?", "~~PASS~~", "PASS, NEEDS_IMPROVEMENT or FAIL", "PASS/FAIL",
    "To get a PASS: add docs", "It would PASS: with docs", "- [ ] PASS\n- [ ] FAIL",
    "I'd say NEEDS_IMPROVEMENT as it lacks docs", "The code looks fine.", "!PASS", "PASS... almost",
    '{"evaluation":"It does not PASS","score":0.9}',
    "| Criterion | Verdict |\n|---|---|\n| Correctness | PASS |\n| Complexity | no |",
    "Verdict: kein PASS", "结论：不是 PASS", "Verdict: PASS?",
    "Korrektheit: PASS\nKomplexität: nicht erfüllt\nStil: PASS",
    "The code would get a PASS\nif it were O(1).", "Would I pass it? No. PASS needs O(1).",
    "PASS\nHowever, it could FAIL on empty input.",
]  # fmt: skip


@pytest.mark.parametrize("reply", PASSES)
def test_a_reply_passes_by_all_of_its_verdicts_or_by_that_of_the_whole(reply):
    assert parse_evaluation(reply).reading.says == "PASS"


@pytest.mark.parametrize(
    ("outcome", "reply"),
    [("FAIL", reply) for reply in FAILS] + [("NEEDS_IMPROVEMENT", reply) for reply in NEEDS_WORK],
)
def test_one_criterion_that_fails_keeps_a_reply_from_passing(outcome, reply):
    assert parse_evaluation(reply).reading.says == outcome


@pytest.mark.parametrize("reply", UNCLEAR)
def test_a_pass_within_a_sentence_is_no_verdict_in_any_language(reply):
    with pytest.raises(ReplyError):
        parse_evaluation(reply)


SCORES = [
    ("Score: 0,85", 0.85), ("8,5/10", 0.85), ("Score: .85", 0.85), ('{"score":"0,85"}', 0.85),
    ("Punkte: 8/10", 0.8), ("Score: 8 von 10", 0.8), ("评分：8/10", 0.8), ("Note : 8/10", 0.8),
    ("Puntuación: 8,5/10", 0.85), ("85 %", 0.85), ("Score: 85％", 0.85),
    ("Overall score: 8/10\nCorrectness score: 9/10", 0.8),
    ("Correctness 9/10, style 7/10 rated. Overall I rate it 8/10.", 0.8),
    ("Score: 6/10 (9/10 with an example)", 0.6), ('{"score": 0.6}\n{"score": 0.6}', 0.6),
    ("On a scale of 1 to 10, I rate it 8/10.", 0.8), ("I would score 8/10. It has 3/4 tests.", 0.8),
    ('{"score": 0.9, "overall_score": 0.6}', 0.6), ("**Score:** 8/10 – good", 0.8),
    ("Score: 0.85.", 0.85), ("Score: 1/10", 0.1), ("0,5", 0.5), ("9 out of 10, I rate it", 0.9),
    ("Score: 8 out of 10 points.", 0.8),
]  # fmt: skip
NO_SCORES = [
    "I rate it 6/10. With an example I would rate it 9/10.", "6-7/10", "Score: 6-7/10",
    "I rate it 6-7/10.", "Score: v0.85.1", "Score: 2024-05-01", "Score: 1,000",
    "Score: 1,000 words", "I rate the version 0.85.1 well", '{"score":"6-7/10"}', '{"score":null}',
    "Score: -0,5", "Score: −0.5", "Score: 1.5", "Score: 6/10\nScore: 9/10",
    '{"score": 0.6}\n{"score": 0.9}', "Score: 6 or 7/10", "Score: 6 bis 7 von 10",
    "Score: between 0.6 and 0.7", "Score: 0.7 to 0.8", "Score: 8/10/2024",
    "100% of the points are rated", "Score: 11/10", "Score: 8/0",
    '{"score": 0.6, "overall_score": "0.6-0.7"}', '{"score":true}', "Score: N/A", "Score: 8 9",
    "1,5", "Score: 1 000", "Score: <0.9",
]  # fmt: skip


@pytest.mark.parametrize(("reply", "score"), SCORES)
def test_a_score_is_one_number_with_a_decimal_point_or_comma(reply, score):
    said = parse_evaluation(reply).reading
    assert (said.says, said.score) == (None, pytest.approx(score))


@pytest.mark.parametrize("reply", NO_SCORES)
def test_scores_that_differ_ranges_and_other_numbers_are_no_score(reply):
    with pytest.raises(ReplyError):
        parse_evaluation(reply)


@pytest.mark.parametrize(
    "reply",
    [
        '{"name": "evaluate", "arguments": {"evaluation": "FAIL", "feedback": "slow"}}',
        r'{"name": "e", "arguments": "{\"evaluation\": \"FAIL\", \"feedback\": \"slow\"}"}',
        '<tool_call>{"name": "e", "arguments": {"status": "FAIL", "reason": "slow"}}</tool_call>',
        "{'evaluation': 'FAIL', 'feedback': 'slow'}", '{"evaluation": "FAIL", "feedback": "slow"',
        '{"评价": "FAIL", "反馈": "slow"}', '{"Bewertung": "FAIL", "Rückmeldung": "slow"}',
        "评价：FAIL\n反馈：slow", "Urteil: FAIL\nRückmeldung: slow",
        "Évaluation : FAIL\nCommentaires : slow", "Veredicto: FAIL\nComentarios: slow",
        "評価：FAIL\nフィードバック：slow", "Оценка: FAIL\nОтзыв: slow",
        "Evaluation - FAIL\nFeedback - slow",
    ],
)  # fmt: skip
def test_verdict_and_feedback_are_read_in_calls_and_in_other_languages(reply):
    said = parse_evaluation(reply)
    assert said.reading.says == "FAIL"
    assert [one.words for one in said.remarks] == ["slow"]


@pytest.mark.parametrize(
    "reply",
    [
        '{"criterion": "a", "verdict": "PASS"}\n{"criterion": "b", "verdict": "FAIL", "why": x}',
        '{"evaluation": "PASS"} {"evaluation": FAIL}',
    ],
)
def test_json_that_hides_a_fail_in_a_part_that_cannot_be_read_is_no_pass(reply):
    with pytest.raises(ReplyError):
        parse_evaluation(reply)


@pytest.mark.parametrize(
    ("reply", "feedback"),
    [
        ("1. PASS\n2. FAIL", ["1. PASS\n2. FAIL"]),
        ("PASS \u2014 provided the date is added", ["provided the date is added"]),
        ("**FAIL**\n\n- stiff\n- no date", ["- stiff\n- no date"]),
        ("The date is missing.\n\nFAIL", ["The date is missing."]),
        ("FAIL\n\nWith a date it would PASS.", ["With a date it would PASS."]),
        ("No date.\nAll in all: FAIL", ["No date.\nAll in all: FAIL"]),
        ('{"done": false, "next": "Add a date."}', ["next: Add a date."]),
        ('{"score": 0.4, "missing": ["date", "greeting"]}', ["missing: date, greeting"]),
        ('{"verdict": "FAIL", "details": {"date": "missing"}}', ["details: date: missing"]),
        ('{"verdict": "FAIL", "feedback": [{"issue": "Stiff", "fix": "Say hi."}]}',
         ["Stiff (fix: Say hi.)"]),
        ('{"criteria": [{"name": "tone", "result": "PASS"}]}', []),
        ('{"tone": "PASS", "date": "PASS"}', []),
    ],
)  # fmt: skip
def test_no_word_of_why_a_text_does_not_pass_is_lost(reply, feedback):
    assert [one.words for one in parse_evaluation(reply).remarks] == feedback
