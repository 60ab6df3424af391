"""Run ``candidate.py`` as the main script, with the user's variables in its namespace."""

import os
import runpy

_VARIABLES = "variables_program.py"


def main() -> None:
    """Run the text."""
    variables = runpy.run_path(_VARIABLES)["load"]() if os.path.exists(_VARIABLES) else {}
    runpy.run_path("candidate.py", init_globals=variables, run_name="__main__")


if __name__ == "__main__":
    main()
