"""The style sheet of panel and record."""

import re
from importlib.resources import files

_CSS = (files("ipyrefine.render") / "run.css").read_text("utf-8")
# Without comments, indents and blank lines: a blank line would end it in a Markdown export.
STYLE = re.sub(r"\s*\n\s*", "\n", re.sub(r"/\*.*?\*/", "", _CSS, flags=re.DOTALL)).strip()
