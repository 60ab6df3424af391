"""The program that reads the user's variables inside a sandbox; the other programs run it."""

import pickle
from typing import Any

_FILE = "variables.pickle"


def load() -> dict[str, Any]:
    """Read the variables put beside the script.

    Raises:
        RuntimeError: one of them cannot be read here.
    """
    with open(_FILE, "rb") as file:
        contents = pickle.load(file)
    values = {}
    for name, content in contents.items():
        try:
            values[name] = pickle.loads(content)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise RuntimeError(f"the variable {name} cannot be read here ({said})") from None
    return values
