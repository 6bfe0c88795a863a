"""The embedded llama.cpp server's own process: `python -m spoken_chat.server.llama_child`.

Standard input carries one line of JSON (the fields of `ServerOptions`) and then stays open for as long as the parent
lives. Standard output carries one line, the server's address, once it listens. However the parent ends, the pipe
closes and this process exits at once; while the model is being loaded it cannot look, and exits right after.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class ServerOptions:
    """What to serve. `context_tokens` is the window of each of `slots` parallel conversations.

    `prompt_threads` work on a prompt, `threads` on the tokens of the reply.
    """

    model: str
    alias: str
    context_tokens: int
    slots: int
    threads: int
    prompt_threads: int

    def to_line(self) -> str:
        """These options as the first line of standard input."""
        return json.dumps(asdict(self)) + "\n"


_ERRORS_ONLY = 1
_PROMPT_BATCH = 512
"""Tokens of a prompt worked on at once: a larger batch only takes more memory on a CPU."""


def main() -> None:
    """Serve until standard input closes."""
    options = ServerOptions(**json.loads(sys.stdin.readline()))
    # Takes a second and brings in native code, so only this process imports it.
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = {options.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = options.context_tokens * options.slots  # of all slots; capped at the model's training context
    params.n_parallel = options.slots
    params.n_batch = params.n_ubatch = _PROMPT_BATCH
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.prompt_threads
    params.use_jinja = True
    params.cache_ram_mib = 0  # the slots hold the two conversations there are; no second copy
    params.ui = False
    params.endpoint_slots = False
    params.cors_origins = "null"  # no web page may read what this server answers
    params.verbosity = _ERRORS_ONLY
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    # Nothing is worth saving, and the server's threads would delay an orderly end.
    os._exit(0)


if __name__ == "__main__":
    main()
