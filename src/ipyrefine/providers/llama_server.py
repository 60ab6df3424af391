"""Run llama.cpp's server; `local` starts this program in a process of its own.

Loading weights holds Python's global lock for seconds, a damaged file may crash, and the server
cannot be stopped in the middle of a reply. None of that may happen to the user's kernel.

It runs by path, without the rest of the package. It reads one line of JSON (`path`, `key`,
`threads`), writes one (`address` or `error`), and ends when its input is closed, so also when the
process that started it dies.
"""

import json
import os
import sys
from typing import Any

_HOST = "127.0.0.1"
_SILENT = -1
CONTEXT_TOKENS = 8_192
_BATCH_TOKENS = 512  # an interrupt takes effect between batches of the prompt
_CACHE_MIB = 512  # of earlier prompts; a thousand tokens of the default model take 28


def main() -> None:
    """Serve until the input is closed."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # Whatever llama.cpp prints must stay out of the answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    server, answer = _start(json.loads(sys.stdin.buffer.readline()))
    out.write(json.dumps(answer) + "\n")
    out.flush()
    if server is not None:
        sys.stdin.buffer.read()
    # An orderly exit would wait for the current reply, and its reader may be gone.
    os._exit(0)


def _start(settings: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    try:
        import xllamacpp
    except ImportError:
        return None, {"error": "package"}
    try:
        server = xllamacpp.Server(_params(xllamacpp, settings))
    except RuntimeError:
        return None, {"error": "weights"}
    return server, {"address": server.listening_address}


def _params(xllamacpp: Any, settings: dict[str, Any]) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.n_ctx = CONTEXT_TOKENS
    params.n_batch = _BATCH_TOKENS
    params.n_parallel = 1
    # Writer and reader take turns: the prompt of one stays cached while the other is answered.
    params.cache_ram_mib = _CACHE_MIB
    # A revision repeats most of the draft: speculative decoding guesses the tokens that follow a
    # long repeated run and checks them in one batch, which is faster than writing them.
    kinds = xllamacpp.common_speculative_type
    params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NGRAM_MOD]
    params.hostnames = [_HOST]
    params.port = 0
    params.api_keys = [settings["key"]]
    params.ui = params.endpoint_slots = False
    params.verbosity = _SILENT
    if settings["threads"] is not None:
        params.cpuparams.n_threads = settings["threads"]
    return params


if __name__ == "__main__":
    main()
