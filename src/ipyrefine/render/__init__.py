"""A run as text and HTML, without side effects."""
