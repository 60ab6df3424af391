"""Load the user's variables inside the sandbox; the other programs run this one."""

import pickle
from typing import Any

_FILE = "variables.pickle"


def load() -> dict[str, Any]:
    """Return the variables in the file beside the script.

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
            message = f"{type(error).__name__}: {error}"
            raise RuntimeError(f"the variable {name} cannot be read here ({message})") from None
    return values
