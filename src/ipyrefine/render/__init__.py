"""Pure renderings of a run: text, HTML, Markdown, diffs and score lines."""
