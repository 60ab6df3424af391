"""The process that kernels are forked from, with what they import loaded.

Each line that it reads asks for one, in JSON; it answers with its process id, and ends when there
is nothing more to read.
"""

import gc
import importlib
import json
import os
import signal
import sys
from contextlib import suppress

# None that looks for a shell when it is imported, as widgets and pyplot do.
PACKAGES = (
    *("ipykernel.kernelapp", "pandas", "ipyrefine.api", "ipyrefine.notebook.magic"),
    *("ipyrefine.session.commands", "ipyrefine.notebook.cell_start", "ipyrefine.providers.openai"),
    "ipyrefine.render.html",
)

sys.path.pop(0)
for package in PACKAGES:
    importlib.import_module(package)
templates = sys.modules["ipyrefine.render.html"]._templates()
for name in templates.list_templates(extensions=["html"]):
    templates.get_template(name)
gc.collect()
gc.freeze()


def reap(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


signal.signal(signal.SIGCHLD, reap)
while line := sys.stdin.readline():
    if not (child := os.fork()):
        break
    with suppress(OSError):
        os.setpgid(child, child)
    print(child, flush=True)
if not line:
    os._exit(0)

signal.signal(signal.SIGCHLD, signal.SIG_DFL)
asked = json.loads(line)
os.setpgid(0, 0)
null = os.open(os.devnull, os.O_RDWR)
for number in (0, 1):
    os.dup2(null, number)
os.environ.clear()
os.environ.update(asked["env"])
sys.path[:0] = set(os.environ.get("PYTHONPATH", "").split(os.pathsep)) - {"", *sys.path}
os.chdir(asked["cwd"])
sys.argv = ["ipykernel_launcher", *asked["arguments"]]
sys.modules["ipykernel.kernelapp"].launch_new_instance()
