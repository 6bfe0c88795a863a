"""Several servers on one card, started side by side, for the length of the measurements."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from spoken_chat.bench.model_server.variants import VARIANTS
from spoken_chat.server.installed import find_vllm
from spoken_chat.server.recipe import ServerOptions
from spoken_chat.server.vllm import ENVIRONMENT

FIRST_PORT: Final = 8101


def start(names: Sequence[str], options: ServerOptions, folder: Path, further: Sequence[str]) -> None:
    """Start one server for each variant with this Python's vLLM, each with its own caches. They outlive this process.

    Raises ChatError where this Python has no vLLM.
    """
    found = find_vllm(sys.executable)
    assert found is not None
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        served = replace(options, port=FIRST_PORT + number)
        words = VARIANTS[name].words(served, found.version)
        caches = {
            variable: str(folder / f"{name}-cache" / variable.lower())
            for variable in ("VLLM_CACHE_ROOT", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
        }
        with (folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                found.command([served.model, *words, *further]),
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
                env={**os.environ, **ENVIRONMENT, "HF_HUB_OFFLINE": "1", **caches},
            )  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps({"pid": process.pid, "port": served.port, "flags": words}))


def wait(names: Sequence[str], folder: Path, seconds: float) -> dict[str, float | None]:
    """Seconds until each server answered; None for one that ended, or did not in `seconds`."""
    begun = time.monotonic()
    left = {name: json.loads((folder / f"{name}.json").read_text()) for name in names}
    up: dict[str, float | None] = dict.fromkeys(names)
    while left and time.monotonic() < begun + seconds:
        time.sleep(1)
        for name, server in list(left.items()):
            if _answers(server["port"]):
                up[name] = round(time.monotonic() - begun, 1)
                del left[name]
            elif not _alive(server["pid"]):
                del left[name]
    return up


def stop(folder: Path) -> None:
    """End every server that was started in `folder`."""
    for file in folder.glob("*.json"):
        with suppress(ProcessLookupError, KeyError):
            os.killpg(json.loads(file.read_text())["pid"], signal.SIGKILL)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _alive(pid: int) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return Path(f"/proc/{pid}").exists()
