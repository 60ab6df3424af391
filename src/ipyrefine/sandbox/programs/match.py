"""Search the text of ``request.json`` for its pattern, in a process that can be stopped."""

import json
import re


def main() -> None:
    """Print whether the pattern is found."""
    with open("request.json", encoding="utf-8") as file:
        request = json.load(file)
    found = re.search(request["pattern"], request["text"], re.MULTILINE)
    print("found" if found else "not found")


if __name__ == "__main__":
    main()
