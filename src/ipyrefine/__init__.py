"""Refine a notebook cell's text with a language model, with the user in the loop."""
