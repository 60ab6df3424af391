"""The program that searches a text for a regular expression, apart, as it may never end."""

import json
import re


def main() -> None:
    """Say whether the request's pattern is found in its text."""
    with open("request.json", encoding="utf-8") as file:
        request = json.load(file)
    found = re.search(request["pattern"], request["text"], re.MULTILINE)
    print("found" if found else "not found")


if __name__ == "__main__":
    main()
