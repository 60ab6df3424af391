"""llama.cpp's server, as the program that `local` starts in a process of its own.

Loading weights holds Python's global lock for seconds, a damaged file may crash, and the server
cannot be stopped in the middle of a reply: none of that may happen to the user's kernel.

It is run by path, without the rest of the package. It reads one line of JSON (`path`, `key`,
`context`, `batch`, `kept`, `threads`), writes one (`address`, or `fault`), and ends when its
input is closed, so also when the process that started it dies.
"""

import json
import os
import sys
from typing import Any

_HOST = "127.0.0.1"
_SILENT = -1


def main() -> None:
    """Serve until the input is closed."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # Whatever llama.cpp prints must not get into the answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    server, answer = _start(json.loads(sys.stdin.buffer.readline()))
    out.write(json.dumps(answer) + "\n")
    out.flush()
    if server is not None:
        sys.stdin.buffer.read()
    # An orderly end waits for the reply under way, and its reader may be gone.
    os._exit(0)


def _start(wanted: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    try:
        import xllamacpp
    except ImportError:
        return None, {"fault": "package"}
    try:
        server = xllamacpp.Server(_params(xllamacpp, wanted))
    except RuntimeError:
        return None, {"fault": "weights"}
    return server, {"address": server.listening_address}


def _params(xllamacpp: Any, wanted: dict[str, Any]) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = wanted["path"]
    params.n_ctx = wanted["context"]
    params.n_batch = wanted["batch"]
    params.n_parallel = 1
    # Writer and judge take turns: what one had read is kept while the other is answered.
    params.cache_ram_mib = wanted["kept"]
    # A revision repeats most of the text it is given: what follows a long run of tokens seen before
    # is guessed from there and checked in one batch, which is read faster than it is written.
    params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_MOD]
    params.hostnames = [_HOST]
    params.port = 0
    params.api_keys = [wanted["key"]]
    params.ui = params.endpoint_slots = False
    params.verbosity = _SILENT
    if wanted["threads"] is not None:
        params.cpuparams.n_threads = wanted["threads"]
    return params


if __name__ == "__main__":
    main()
