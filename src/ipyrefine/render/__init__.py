"""A run as text, HTML and Markdown, without side effects."""
