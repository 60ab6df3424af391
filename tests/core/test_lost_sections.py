"""Sections of prose that a revision loses or shortens are listed, for the critic and the user."""

from typing import Any

import pytest
from kit import ended, finding, judgement, prompts, text

from ipyrefine.core.edits import losses
from ipyrefine.core.model import Limits, Stage
from ipyrefine.render import blocks, say
from ipyrefine.render.html import record_html
from ipyrefine.render.terminal import blocks_text

GOAL = "We move the archive of 1998 to object storage, so that restores take minutes."
PRICING = "Storage costs 4,200 dollars monthly; egress adds 310 dollars, billed quarterly by Acme."
RISKS = (
    "The provider may raise prices. A restore over the public network may stall for hours. Keys "
    "can leak, so rotation happens weekly. Auditors have to sign the migration before October."
)
DOCUMENT = f"# Goal\n{GOAL}\n\n# Pricing\n{PRICING}\n\n# Risks\n{RISKS}"
LETTER = f"Dear Anna,\n\n{GOAL}\n\n{PRICING}\n\n{RISKS}"


SHRUNK = f"# Goal\n{GOAL}\n\n# Risks\nThe provider may raise prices."
MOVED = f"# Risks\n{RISKS}\n\n# Pricing\n{PRICING}\n\n# Goal\n{GOAL}"
DIVIDED = DOCUMENT.replace(" A restore", "\n\n## Network\nA restore")


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        (DOCUMENT, SHRUNK, [("Pricing", 0), ("Risks", 5)]),
        (LETTER, LETTER.replace(f"\n\n{PRICING}", ""),
         [("Storage costs 4,200 dollars monthly; …", 0)]),
        (DOCUMENT, DOCUMENT, []),
        (DOCUMENT, MOVED, []),
        (DOCUMENT, DOCUMENT.replace("# Pricing", "# What it costs"), []),
        (DOCUMENT, f"# Goal and pricing\n{GOAL} {PRICING}\n\n# Risks\n{RISKS}", []),
        (DOCUMENT, DIVIDED.replace(" Keys", "\n\n## Keys\nKeys"), []),
    ],
    ids=["gone and shrunk", "a paragraph", "the same", "moved", "renamed", "merged", "divided"],
)  # fmt: skip
def test_a_section_is_lost_that_is_gone_or_shrank_and_stands_nowhere_else(old, new, lost):
    assert [(one.name, one.after) for one in losses(old, new)] == lost


async def loop_of(revision: str, problem: str = "It rambles.", criterion: str = "tone") -> Any:
    critic = [judgement(4, finding(problem, criterion=criterion)), judgement(9, fixed=["f1"])]
    loop = await ended(
        {Stage.DRAFT: [text(DOCUMENT)], Stage.CRITIQUE: critic, Stage.REVISE: [text(revision)]},
        limits=Limits(max_revisions=1),
    )
    return loop


SHORTER = DOCUMENT.replace(PRICING, "").replace("# Pricing\n\n\n", "").replace(RISKS, "Prices.")
LINE = "Lost: section “Pricing”; shortened: “Risks” 30 → 1 word"


async def test_the_next_critique_reads_what_was_lost():
    first, second = prompts(await loop_of(SHORTER), Stage.CRITIQUE)
    assert "- Pricing: gone\n- Risks: 1 of 30 words" in second
    assert "counted by words" in second
    assert "counted by words" not in first


async def test_the_user_reads_it_below_the_difference():
    run = (await loop_of(SHORTER)).state
    shown = blocks.writing(run, run.iterations[1])
    assert blocks.Paragraph(LINE, "warning") in shown
    assert LINE in blocks_text(shown, 200)
    assert "30 → 1 word" in record_html(run)


async def test_a_cut_that_a_finding_about_scope_asked_for_is_not_listed():
    run = (await loop_of(SHORTER, "Nobody asked for Pricing.", "scope")).state
    assert say.losses_sentence(blocks.lost_sections(run, run.iterations[1])) == (
        "Shortened: “Risks” 30 → 1 word"
    )
