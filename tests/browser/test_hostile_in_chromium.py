"""The hostile corpus in a real browser: nothing runs, nothing is fetched, the layout holds."""

import html
from typing import Any

import pytest
from hostile import CASES

from ipyrefine.core.events import DraftReady, EvidenceReady, RunStarted, Stopped, Warned
from ipyrefine.core.model import Criterion, Setup, StopReason, Task
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run
from ipyrefine.core.table import Point, Result
from ipyrefine.render.html import record_html

WIDTH = 700


def run_of(case: str) -> Run:
    """A stopped run with the case wherever a text of others may stand."""
    point = Point(id=case, criterion=case, place=case, words=case, fix=case)
    task = Task(text=case, form="code", profile=case, checklist=(case,),
                criteria=(Criterion(name=case, definition=case),))  # fmt: skip
    run = replay([
        RunStarted(setup=Setup(task=task, model=case, judge=case + "!", checks=(case,))),
        Warned(message=case),
        DraftReady(text=case, thoughts=case),
        EvidenceReady(iteration=0, evidence=Result(name=case, passed=False, shows=case)),
        Stopped(reason=StopReason.FAILED, message=case),
    ])  # fmt: skip
    first = run.iterations[0].replace(results={case: Result(passed=False)})
    return run.replace(iterations=(first,), points={case: point})


def page_of(cases: tuple[str, ...]) -> str:
    """A page with a record of each case, each followed by a mark that has to stay in its place."""
    blocks = "".join(
        f'<section data-case="{html.escape(ascii(case)[:60])}">{record_html(run_of(case))}'
        "</section><hr>"
        for case in cases
    )
    return f"<!doctype html><meta charset=utf-8><body style='margin:0'>{blocks}"


@pytest.mark.parametrize("kind", CASES)
async def test_no_record_runs_fetches_or_breaks_out_of_its_place(browser: Any, kind: str) -> None:
    page = await browser.new_page(viewport={"width": WIDTH, "height": 800})
    happened: list[object] = []
    for event in ("request", "dialog", "pageerror"):
        page.on(event, lambda one: happened.append(one))
    await page.set_content(page_of(CASES[kind]))
    await page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    for selector in ("summary", "[tabindex]"):
        for node in (await page.query_selector_all(selector))[:20]:
            await node.dispatch_event("mouseover")
            await node.focus()
    seen = await page.evaluate(
        """() => ({
          hostile: typeof window.hostile,
          strangers: [...document.querySelectorAll('body *')].filter((e) =>
            !['SECTION', 'HR', 'DIV', 'STYLE', 'P', 'STRONG', 'SPAN', 'PRE', 'CODE', 'DETAILS',
              'SUMMARY', 'UL', 'OL', 'LI', 'B', 'I', 'SMALL', 'HEADER', 'FOOTER',
              'INS', 'DEL', 'EM', 'BR', 'BLOCKQUOTE', 'MARK',
              'BUTTON', 'TABLE', 'THEAD', 'TBODY', 'TR', 'TH', 'TD', 'COLGROUP',
              'COL'].includes(e.tagName)
          ).map((e) => e.tagName),
          commands: document.querySelectorAll('[data-commandlinker-command]').length,
          sections: document.body.querySelectorAll(':scope > section').length,
          rules: document.body.querySelectorAll(':scope > hr').length,
          wide: [...document.querySelectorAll('section[data-case]')].filter((s) =>
            s.scrollWidth > innerWidth + 1).map((s) => s.dataset.case),
          above: [...document.querySelectorAll('section *')].filter((e) =>
            ['fixed', 'absolute'].includes(getComputedStyle(e).position)).length,
        })"""
    )
    await page.close()
    assert happened == []
    assert seen["hostile"] == "undefined"
    assert seen["strangers"] == []
    assert seen["commands"] == seen["above"] == 0
    assert seen["sections"] == seen["rules"] == len(CASES[kind])
    assert seen["wide"] == []
