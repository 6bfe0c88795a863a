"""The embedded default server: llama.cpp in a child process on a free loopback port. Text only."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Final

import httpx2

from spoken_chat.cores import available_cores
from spoken_chat.errors import ChatError
from spoken_chat.server.child import end_child
from spoken_chat.server.gguf import model_file
from spoken_chat.server.llama_child import ServerOptions
from spoken_chat.settings import ROOT, Settings

CONTEXT_TOKENS: Final = 4096
"""Window of each conversation; less where the model was trained on less."""

SLOTS: Final = 2
"""Conversations whose prompt stays in memory: one page, and a second one."""

_START_TIMEOUT_S: Final = 180.0
_HEALTH_TIMEOUT_S: Final = 10.0
_STOP_TIMEOUT_S: Final = 5.0
_LOG_TAIL_BYTES: Final = 16_384

_REASONS: Final = (
    ("failed to allocate", "there is not enough memory for it; take a smaller model with --gguf"),
    ("bad_alloc", "there is not enough memory for it; take a smaller model with --gguf"),
    ("unable to allocate", "there is not enough memory for it; take a smaller model with --gguf"),
    ("corrupted or incomplete", "the file is damaged or incomplete; fetch it again"),
    ("unknown model architecture", "its architecture is newer than the installed llama.cpp; take another with --gguf"),
    ("couldn't bind", "no port could be opened on 127.0.0.1; see what the machine forbids"),
    ("no module named 'xllamacpp'", "the package xllamacpp is not installed; run `make install`"),
    ("failed to load model", "llama.cpp cannot read the file; take another with --gguf"),
)
"""What the child writes before it gives up, in the order in which it says most."""


class LlamaServer:
    """Starts, watches and stops the child. It ends with this process, however that ends.

    A caller notices a crash by `alive`, or by a reply that fails with `llm_unreachable` or `llm_dropped`; `start()`
    then starts a new child, on a new port.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._process: subprocess.Popen[str] | None = None
        self._base_url = ""

    @property
    def alive(self) -> bool:
        """Whether the child runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        return self._process.pid if self._process is not None and self.alive else None

    async def start(self) -> str:
        """Start the child unless it runs; its base URL, once it answers. Raises ChatError that says why it does not."""
        if self.alive:
            return self._base_url
        await self.stop()
        model = await asyncio.to_thread(model_file, self._settings)
        # A file rather than a pipe: nobody has to read it for the child to go on.
        with tempfile.TemporaryFile() as log:
            process = self._process = _spawn(model, self._settings.llm_threads, log)
            assert process.stdout is not None
            try:
                async with asyncio.timeout(_START_TIMEOUT_S):
                    address = (await asyncio.to_thread(process.stdout.readline)).strip()
                    if not address:
                        status = await asyncio.to_thread(process.wait)
                        raise _failure(model, status, _tail(log))
                    await _check_health(address)
            except TimeoutError:
                await self.stop()
                raise _start_error(model, f"it was not ready after {_START_TIMEOUT_S:g} s") from None
            except httpx2.HTTPError as error:
                await self.stop()
                raise _start_error(model, "it listens but does not answer") from error
            except BaseException:
                await self.stop()
                raise
        self._base_url = f"{address}/v1"
        return self._base_url

    async def stop(self) -> None:
        """End the child, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            await end_child(process, _STOP_TIMEOUT_S)


def _spawn(model: Path, threads: int, log: IO[bytes]) -> subprocess.Popen[str]:
    cores = available_cores()
    options = ServerOptions(
        model=str(model),
        alias=model.stem,
        context_tokens=CONTEXT_TOKENS,
        slots=SLOTS,
        # While a reply is generated its first clause is being spoken. llama.cpp's threads wait for each other at every
        # layer: when one of them shares its core, all stand still (measured: 7 to 14 times slower on 2 busy cores).
        threads=threads or max(1, cores - 1),
        prompt_threads=threads or cores,
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "spoken_chat.server.llama_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        process_group=0,  # a Ctrl-C at the terminal is for the app, which ends its child itself
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it died at once: its log says why
        process.stdin.write(options.to_line())
        process.stdin.flush()
    return process


async def _check_health(address: str) -> None:
    """The address is only told once the model is loaded, so one question is enough. Raises httpx2.HTTPError."""
    async with httpx2.AsyncClient(trust_env=False, timeout=_HEALTH_TIMEOUT_S) as client:
        (await client.get(f"{address}/health")).raise_for_status()


def _tail(log: IO[bytes]) -> str:
    """The end of what the child wrote."""
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - _LOG_TAIL_BYTES))
    return log.read().decode("utf-8", "replace")


def _failure(model: Path, status: int, said: str) -> ChatError:
    if status == -signal.SIGKILL:
        return _start_error(model, "the system ended it, most likely for want of memory; take a smaller model")
    lowered = said.lower()
    for sign, reason in _REASONS:
        if sign in lowered:
            return _start_error(model, reason)
    last = said.strip().rpartition("\n")[2]
    return _start_error(model, f"it ended with status {status}{f' ({last})' if last else ''}")


def _start_error(model: Path, reason: str) -> ChatError:
    return ChatError(
        "llama_start", f"The embedded model {model.name} could not be started: {reason}.", model=model.name
    )
