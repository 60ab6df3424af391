"""Code of other languages on every surface."""

import json

import pytest

import ipyrefine
from ipyrefine.core.model import StopReason
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.escape import html_code
from ipyrefine.render.html import record_html
from ipyrefine.render.labels import form_name
from ipyrefine.render.markdown import record_markdown
from ipyrefine.render.terminal import record_text
from ipyrefine.session.export import export

TEXTS = ["public class A {}", "public class A { int size = 1; }"]


async def java_run(language="java", **options):
    replies = iter([False, True])
    run = await ipyrefine.refine(
        "Implement a class A.",
        model=ScriptedModel([f"```java\n{text}\n```" for text in TEXTS]),
        checks=[lambda text: next(replies)],
        language=language,
        journal=False,
        **options,
    )
    assert run.text == TEXTS[-1]
    return run


async def test_java_is_shown_as_java():
    run = await java_run()
    page, document = record_html(run), record_markdown(run)
    assert '<span class="rf-t-kd">public</span>' in page
    assert f"```java\n{TEXTS[1]}\n```" in document
    assert "```python" not in document
    assert form_name(run.task) == "Java code"
    for record in (page, document, record_text(run)):
        assert "language Java" in record


async def test_the_difference_has_the_colours_of_its_language():
    added = record_html(await java_run()).partition("<ins")[2].partition("</ins>")[0]
    assert '+ </span><span class="rf-t-kd">public</span>' in added


async def test_a_language_that_pygments_does_not_know_is_plain():
    run = await java_run("klingon")
    assert 'class="rf-t-' not in record_html(run)
    assert f"```klingon\n{TEXTS[1]}\n```" in record_markdown(run)


@pytest.mark.parametrize("language", ["java", "cpp", "sql", "rust", "haskell", "bash", "r", "php"])
def test_every_language_of_pygments_has_colours(language):
    assert "rf-t-" in html_code("int x = 1; -- 'a' if", language)


async def test_an_accepted_java_text_is_no_code_cell_of_an_exported_notebook(tmp_path):
    run = await java_run()
    accepted = run.model_copy(update={"stop_reason": StopReason.ACCEPTED})
    content = json.loads(export(accepted, tmp_path / "run.ipynb").read_text("utf-8"))
    assert {cell["cell_type"] for cell in content["cells"]} == {"markdown"}
    assert any("```java" in "".join(cell["source"]) for cell in content["cells"])


async def test_python_is_not_named():
    run = await java_run("python")
    assert "language " not in record_text(run)
