"""A peer's questions about notebooks in real kernels: what `known_answers` and `peers` share.

The sessions are those of DSEval, in the folder ``dseval`` of the cases. For each question a kernel
runs the reference cells before it, as cells, and then ``%%refine`` with the question as the whole
cell and the options as they come. DSEval's validators say what is right. A question is left out
where the reference does not pass its own validator with the libraries that are here.

Differences from DSEval's own loop: a cell may take 30 s, and the input validators of its
functions, which refuse pandas 3's strings, are left out.
"""

import argparse
import itertools
import json
import logging
import multiprocessing
import os
import random
import re
import sys
import tempfile
import time
import types
import warnings
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

import facts
import measure
from measure import Replies

from ipyrefine import api
from ipyrefine.core.model import Stage
from ipyrefine.core.ports import Delta, Notice, Reply, Request
from ipyrefine.core.table import Result
from ipyrefine.kernel.names import names_in_code
from ipyrefine.providers.local import LocalModel
from ipyrefine.providers.scripted import ScriptedModel

SETS = ("so", "leetcode", "exercise", "kaggle")
CODE = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)
RIGHT = "CORRECT"
_SECONDS = 30  # a cell, when it is judged
_WAIT = 1_800.0  # seconds for a run
_LOCAL = "http://127.0.0.1/v1"
_NOTHING_FOUND = json.dumps(
    {"findings": [], "questions": [], "ready": True, "because": "It does what the task says."}
)


class Question(NamedTuple):
    """A question of a session, with what the notebook holds when it is asked."""

    name: str
    text: str
    reference: str
    cells: Sequence[tuple[str | None, str]]  # the cells before it: a question or None, and code
    world: Any  # DSEval's namespace after these cells
    problem: Any  # with its validator

    @property
    def needed(self) -> list[str]:
        """The data of the notebook that the reference reads."""
        space = self.world.namespace
        read = names_in_code(self.reference)
        return [n for n in read if n in space and not isinstance(space[n], CODE)]


# DSEval.


def load_dseval() -> Any:
    """Return the package, without its agents, which need langchain."""
    agent: Any = types.ModuleType("dseval.agent")
    for name in ("Agent", "TentativeSolution", "TentativeSolutions"):
        setattr(agent, name, type(name, (), {}))
    agent.AgentException = type("AgentException", (Exception,), {})
    sys.modules["dseval.agent"] = agent
    os.environ.setdefault("MPLBACKEND", "Agg")
    warnings.simplefilter("ignore")
    try:
        import dseval
        from dseval.validator import TableTestValidator
    except ImportError as error:
        raise SystemExit(f"{error}. The README says how to install dseval.") from None
    unchecked = staticmethod(lambda code: TableTestValidator.always_true)
    TableTestValidator.code_to_input_validator = unchecked
    logging.disable(logging.CRITICAL)
    return dseval


class Sessions:
    """The sessions of the benchmark.

    Args:
        folder: where ``sessions.jsonl`` and ``inputs`` are.
    """

    def __init__(self, folder: Path) -> None:
        self._dseval = load_dseval()
        self._temporary = tempfile.TemporaryDirectory(prefix="sessions-")
        root, self._sets = Path(self._temporary.name), dict[str, Any]()
        for row in measure.load_cases(folder, "sessions"):
            path = root / row["set"] / f"{row['name']}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(row["source"], "utf-8")
            inputs = folder / "inputs" / row["set"]
            if inputs.exists() and not (path.parent / "_inputs").exists():
                (path.parent / "_inputs").symlink_to(inputs.resolve())
            self._sets[f"{row['set']}/{row['name']}"] = self._dseval.ProblemSet.fromfile(path)

    @property
    def names(self) -> list[str]:
        """All questions, such as ``so/pandaseval-012#1``."""
        return [
            f"{name}#{number + 1}"
            for name, problems in self._sets.items()
            for number in range(problems.num_complete)
        ]

    def draw(self, seed: int) -> list[str]:
        """Return all questions in an order; the sets take turns, so that a stop is balanced."""
        drawn = []
        for name in SETS:
            names = [one for one in self.names if one.startswith(f"{name}/")]
            random.Random(seed).shuffle(names)
            drawn.append(names)
        return [one for turn in itertools.zip_longest(*drawn) for one in turn if one]

    @contextmanager
    def at(self, name: str) -> Iterator[Question]:
        """Bring DSEval's namespace to a question, in a folder of its own as the working one."""
        from dseval.loop import running_environment

        session, _, number = name.partition("#")
        problems, world, left = self._sets[session], self._dseval.Environment(), int(number)
        cells = list[tuple[str | None, str]]()
        with (
            tempfile.TemporaryDirectory(prefix="notebook-") as folder,
            running_environment(Path(folder), problems.data_directory),
        ):
            for problem in problems:
                asked, code = (problem.question or "").strip(), problem.reference_code
                left -= problem.is_complete
                if not left:
                    yield Question(name, asked, code, cells, world, problem)
                    break
                world.execute(code, raise_error=True, max_time=10 * _SECONDS)
                cells.append((asked if problem.is_complete else None, code))


def judge(question: Question, text: str) -> str:
    """Return DSEval's verdict on a text, such as ``CORRECT``; it runs in a process of its own."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_judge, args=(question, text, there))
    process.start()
    there.close()
    try:
        return str(here.recv()) if here.poll(4 * _SECONDS) else "TIMEOUT"
    except EOFError:  # it ended the process
        return "CRASH"
    finally:
        process.kill()
        process.join()


def _judge(question: Question, text: str, answer: Any) -> None:
    from dseval.validator import validator_comments_to_verdict

    limits = {**(question.problem.execution or {})}
    limits["max_time"] = max(_SECONDS, limits.get("max_time", 0))
    right, world = question.world, question.world.fork()
    with open(os.devnull, "w") as nothing, redirect_stderr(nothing):
        right.execute(question.reference, raise_error=True, **limits)
        world.execute(text, **limits)
        result = question.problem.validator.validate(right.last_cell.output, world.last_cell.output)
    answer.send(validator_comments_to_verdict(result)[0].value)


# In the kernel.

_in_use: Any = None


def use_known(code: str) -> None:
    """Let the runs of this kernel have a writer that knows the answer, and a critic without one."""

    def answer(request: Request) -> str:
        reads = request.purpose in (Stage.CRITIQUE, Stage.JUDGE)
        return f"```json\n{_NOTHING_FOUND}\n```" if reads else f"```python\n{code}\n```"

    _use(ScriptedModel(itertools.repeat(answer), name="known", chunk=10_000))


def use_kept(name: str, path: str, ask: bool) -> None:
    """Let the runs of this kernel have an embedded model whose replies are kept."""
    model: Any = Replies(name, Path(path), ask=ask)
    model.source, model.price = name, LocalModel.price
    _use(model)


def use_read(code: str, name: str, path: str, ask: bool) -> None:
    """Let the runs of this kernel start from a known answer, and a model with kept replies read."""
    _use(_Read(name, Path(path), ask=ask, code=code))


class _Read(Replies):
    def __init__(self, *args: Any, code: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self._code = code

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Notice | Reply, None]:
        if request.purpose == Stage.DRAFT:
            reply = Reply(text=f"```python\n{self._code}\n```")
            yield Delta(text=reply.text)
            yield reply
            return
        async for part in super().stream(request):
            yield part


def _use(model: Any) -> None:
    global _in_use
    model.base_url, _in_use = _LOCAL, model  # so it counts as one of this machine
    api.choose_model = lambda *_, **__: model


def save(path: str, run: Any) -> None:
    """Write what a run came to, and the request for its first draft."""
    requests = getattr(_in_use, "requests", [])
    prompt = "\n\n".join(one.content for one in requests[0].messages) if requests else ""
    missing = getattr(_in_use, "missing", "")
    found = {"run": run.model_dump(mode="json"), "usage": run.usage.model_dump(mode="json")}
    found |= {"prompt": prompt, "missing": missing}
    Path(path).write_text(json.dumps(found), "utf-8")


# Outside of it.


def refine(question: Question, use: str) -> dict[str, Any]:
    """Run ``%%refine`` on a question in a kernel of its own; returns what it came to.

    Args:
        question: asked in the working folder as it is.
        use: the call of a function of this module that gives the kernel its model.

    Raises:
        RuntimeError: a cell before it fails in the kernel.
    """
    from kernel import Kernel

    here = Path(__file__).parent
    paths = [here.parent / "src", here, here.parent / "tests" / "support"]
    with tempfile.TemporaryDirectory(prefix="home-") as home:
        saved = f"{home}/run.json"
        env = {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "IPYREFINE_HOME": home,
            "IPYTHONDIR": home,
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        }
        with Kernel(env, fresh=True) as kernel:
            kernel.run("%load_ext ipyrefine")
            kernel.value(f"__import__('sessions').{use}")  # leaves no name and no cell behind
            for _, code in question.cells:
                reply = kernel.finish(kernel.start(code), 10 * _SECONDS)
                if reply["status"] != "ok":
                    raise RuntimeError(f"a cell before it fails here: {reply.get('ename')}")
            kernel.outputs()
            start = time.monotonic()
            kernel.finish(kernel.start(f"%%refine\n{question.text}"), _WAIT)
            seconds = time.monotonic() - start
            texts = (one.get("data", {}).get("text/plain", "") for one in kernel.outputs())
            shown = [one.partition(" · best:")[0] for one in texts if " · best:" in one]
            kernel.value(f"__import__('sessions').save({saved!r}, refined_run)")
        kept = json.loads(Path(saved).read_text("utf-8"))
    run = kept["run"]
    task, iterations = run["setup"]["task"], run["iterations"]
    found = iterations[0].get("evidence", []) if iterations else []
    return {
        "form": task["form"],
        "texts": [one["text"] for one in iterations],
        "text": iterations[run["best"]]["text"] if run["best"] is not None else "",
        "stop": run["stop_reason"],
        "message": run["message"],
        "shown": (shown or [""])[-1],
        "evidence": list(map(_evidence, found)),
        **facts.facts_of(found),
        "materials": [{n: one[n] for n in ("kind", "name", "text")} for one in task["materials"]],
        "prompt": kept["prompt"],
        "missing": kept["missing"],
        "usage": kept["usage"],
        "seconds": round(seconds, 1),
    }


def _evidence(one: Mapping[str, Any]) -> dict[str, Any]:
    found = Result.model_validate(one)
    names = ("name", "passed", "not_run", "counts", "computed", "shows")
    return {
        **{name: getattr(found, name) for name in names},
        "conditions": one.get("conditions", []),
        "problems": [point.words for point in found.points],
    }


def why_not_run(row: Mapping[str, Any], needed: Sequence[str]) -> str:
    """Return why the draft of a run was not run on the notebook's data; empty where it was.

    It was where the check that runs it says how it ended, unless that is for want of what the
    reference needs.
    """
    if row["form"] != "code":
        return "taken for words"
    runs = [one for one in row["evidence"] if one["name"].startswith("run")]
    if not runs:
        return "no check runs it"
    if not any(one["passed"] is not None for one in runs):
        cause = re.sub(r"'[^']*'|`[^`]*`|\b\w+\.csv\b", "…", runs[0]["shows"])
        return measure.short(cause) or "not run"
    lost = re.findall(r"name '(\w+)' is not defined", "\n".join(one["shows"] for one in runs))
    return "without the data" if {*lost} & {*needed} else ""


# What is kept.


class Results:
    """Results by question, each a line of a file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self.rows = {row["id"]: row for row in map(json.loads, lines)}
        self._path = path

    @property
    def usable(self) -> list[dict[str, Any]]:
        """Those of questions that could be asked."""
        return [row for row in self.rows.values() if "unusable" not in row]

    def add(self, row: dict[str, Any]) -> None:
        """Keep one more."""
        self.rows[row["id"]] = row
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def options(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of both benches."""
    parser = measure.parser(description)
    parser.add_argument("--out", type=Path, required=True, help="where results are kept")
    parser.add_argument("--only", default="", metavar="TEXT", help="questions whose name has it")
    parser.add_argument("--table", action="store_true", help="only print what there is")
    return parser


def collect(
    sessions: Sessions,
    names: Sequence[str],
    results: Results,
    ask: Callable[[Question], dict[str, Any]],
) -> None:
    """Ask the questions that have no result yet; one that cannot be asked is unusable.

    Raises:
        MissingReply: a reply was not kept, and the model may not be asked.
    """
    for name in names:
        if name in results.rows:
            continue
        start, row = time.monotonic(), dict[str, Any]()
        try:
            with sessions.at(name) as question:
                verdict = judge(question, question.reference)
                row = ask(question) if verdict == RIGHT else {"unusable": verdict}
        except measure.MissingReply:
            raise
        except Exception as error:
            row = {"unusable": f"{type(error).__name__}: {error}"[:300]}
        results.add({"id": name, **row})
        words = row.get("unusable") or row.get("shown") or row.get("loop", {}).get("shown")
        seconds = time.monotonic() - start
        print(f"{len(results.rows)}: {name}, {seconds:.0f} s: {words}", file=sys.stderr)


def share(rows: Sequence[Any], holds: Callable[[Any], object]) -> str:
    """As `measure.share`, for conditions that are not booleans, too."""
    return measure.share(rows, lambda row: bool(holds(row)))


def counted(what: str, counts: Mapping[str, int]) -> str:
    """Return a table of counts, the most frequent first."""
    ranked = sorted(counts.items(), key=lambda one: -one[1])
    return measure.table([what, "questions"], ranked or [("none", 0)])


def of_set(rows: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the rows of a set; all of them where the name is empty."""
    return [row for row in rows if row["id"].startswith(f"{name}/" if name else "")]
