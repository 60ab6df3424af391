"""A stand-in for xllamacpp without weights: stalls in the middle of one stage's reply.

``FAKE_LLAMA`` is a folder: its file ``stage`` names that stage; ``pid`` and ``streaming`` are
written there when the server is up and when that stage's reply has begun.
"""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from faulty import GOOD, Trial
from openai_server import Answer, Behaviour, Body, ScriptedServer

_FOLDER = Path(os.environ["FAKE_LLAMA"])


common_speculative_type = SimpleNamespace(COMMON_SPECULATIVE_TYPE_NGRAM_MOD=None)


def CommonParams() -> SimpleNamespace:
    return SimpleNamespace(
        model=SimpleNamespace(), cpuparams=SimpleNamespace(), speculative=SimpleNamespace()
    )


class Server:
    """As the real one: it serves from its making on."""

    def __init__(self, params: Any) -> None:
        assert Path(params.model.path).read_bytes().startswith(b"GGUF")
        stage = (_FOLDER / "stage").read_text()
        server = ScriptedServer().__enter__()
        Trial(server, stage, self._stalling(Answer(GOOD[stage], chunk=4, stall_after=3)))
        self.listening_address = server.base_url.removesuffix("/v1")
        (_FOLDER / "pid").write_text(str(os.getpid()))

    def _stalling(self, answer: Behaviour) -> Any:
        def stall(_: Body) -> Behaviour:
            (_FOLDER / "streaming").touch()
            return answer

        return stall
