"""How tests make IPython shells."""

from traitlets.config import Config

# The history is a file in a test's home: it would be gone when the shell closes it at exit.
NO_HISTORY = Config({"HistoryManager": {"enabled": False}})
