"""A text that streams is seen whole, as text, in every view of the panel."""

from lab_driver import APPS, App, Lab
from openai_server import Answer, ScriptedServer

CELL = "%%refine -p prose --set as=task -n 0 --set journal=no{}\nWrite a long letter."
LINES = [f"Line {number} of a letter that is long enough to scroll. 😀\n" for number in range(120)]
HOSTILE = (
    "<img src=x onerror=window.hostile=1> </code></pre><script>window.hostile=2</script>\n"
    "$x^2$ \\(y\\) [x](javascript:window.hostile=3) &lt;b&gt; http://evil.example/ \x1b[31m"
)
PLACES = "[...document.querySelectorAll('.rf-stream')]"
TEXT = "querySelector('[data-stream]').textContent"
# Whether every place that shows the text holds the argument, and there are so many of them.
FILLED = f"{PLACES}.length === arg[0] && {PLACES}.every((p) => p.{TEXT}.includes(arg[1]))"

PIECE = 40  # characters


async def start(
    lab: Lab, model: ScriptedServer, text: str, app: App = "lab", how: str = ""
) -> None:
    """Begin a run whose model writes a text up to a last line that never comes."""
    said = f"<text>\n{text}"
    pieces = len(said) // PIECE + 2
    model.then(Answer(f"{said}{'.' * 400}", chunk=PIECE, delay=0.04, stall_after=pieces))
    await lab.start(model, CELL.format(how), wait=False, app=app)


@APPS
async def test_a_text_is_there_whole_as_text_its_end_in_view_and_in_every_other_view(
    lab: Lab, model: ScriptedServer, app: App
) -> None:
    text = "".join(LINES) + HOSTILE
    await start(lab, model, f"{text}\nThe end.", app, " --background")
    asked: list[str] = []
    lab.page.on("request", lambda request: asked.append(request.url))
    await lab.wait_for(FILLED, [1, LINES[40]])
    left = f"const p = {PLACES}[0]; return p.scrollHeight - p.scrollTop - p.clientHeight;"
    assert await lab.evaluate(left) < 24
    await lab.evaluate(f"{PLACES}[0].scrollTop = 100;")
    await lab.wait_for(FILLED, [1, "The end."])
    assert await lab.evaluate(f"return {PLACES}[0].scrollTop;") == 100, "the reader scrolled up"
    await lab.evaluate(f"{PLACES}[0].scrollTop = 1e6;")
    assert await lab.evaluate(left) < 1
    seen = await lab.evaluate(
        f"const text = {PLACES}[0].querySelector('[data-stream]');"
        "await new Promise((done) => setTimeout(done, 500));"
        "return {text: text.textContent, hostile: typeof window.hostile,"
        " tags: [...text.querySelectorAll('*')].map((e) => e.tagName)};"
    )
    shown = text.replace("\x1b", "␛")
    assert seen["text"].startswith(shown)
    assert (seen["hostile"], seen["tags"]) == ("undefined", [])
    assert not [url for url in asked if "evil" in url or url.endswith("/x")]
    await lab.command("docmanager:save")
    if app == "lab":
        await lab.select(1)
        await lab.command("notebook:create-output-view")
        await lab.page.wait_for_function(f"(arg) => {FILLED}", arg=[2, shown])
    await lab.open_again(app=app)
    await lab.wait_for(FILLED, [1, shown])
