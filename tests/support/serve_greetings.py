"""``python serve_greetings.py SECONDS``: a `Greeter` on loopback whose replies take their time.

Prints its address; for every line on standard input it prints the time of the latest request, in
seconds since 1970.
"""

import sys
import time
from dataclasses import replace

from greetings import Greeter
from openai_server import Answer, Body, Failure, ScriptedServer


def main(seconds: float) -> None:
    greeter, latest = Greeter(), [0.0]

    def slowly(body: Body) -> Answer | Failure:
        latest[0] = time.time()
        made = greeter(body)
        time.sleep(seconds)
        return replace(made, chunk=10_000) if isinstance(made, Answer) else made

    with ScriptedServer(slowly) as server:
        print(server.base_url, flush=True)
        for _ in sys.stdin:
            print(latest[0], flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
