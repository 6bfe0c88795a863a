"""A vLLM server of our own: started with the recipe, watched while it starts, ended with the app."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

import httpx2

from spoken_chat.errors import ChatError
from spoken_chat.llm.address import server_root
from spoken_chat.server.checkpoint import has_qwen36_blocks
from spoken_chat.server.child import end_child, exit_of
from spoken_chat.server.estimates import StartTimes
from spoken_chat.server.guard import END_S
from spoken_chat.server.installed import Installation, check_can_serve, default_profile, find_vllm, gpus
from spoken_chat.server.recipe import (
    MATCH_UNIT,
    TEXT_ONLY_BELOW_GIB,
    ServerOptions,
    arguments,
    cautions,
    split_arguments,
)
from spoken_chat.server.start_faults import start_fault
from spoken_chat.server.start_log import StartFacts, StartLog
from spoken_chat.settings import ROOT, Settings
from spoken_chat.stage_state import Progress

SERVED_NAME: Final = "qwen36"
DUMMY: Final = "-dummy-weights"
"""Behind the served name of weights that were never loaded, so that no figure of theirs goes without the label."""

LOGS_KEPT: Final = 5
ENVIRONMENT: Final = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
"""No call home."""

_LOOK_S: Final = 0.25
_HEALTH_S: Final = 2.0
_MISSES: Final = 3
"""A server that was only found is gone when it did not answer this often, every _HEALTH_S seconds."""

_TAIL_BYTES: Final = 65_536


class VllmServer:
    """Starts, watches and ends one server. A server that already answers on the port is used and left running.

    `told` hears of every change of the progress.
    """

    def __init__(self, settings: Settings, told: Callable[[Progress], None] = lambda _: None) -> None:
        self._settings = settings
        self._told = told
        self._times = StartTimes(settings.cache_dir / "vllm-starts.json")
        self._guard: subprocess.Popen[str] | None = None
        self._pid = 0
        self._log_path = Path(os.devnull)
        self._log = StartLog()
        self.cautions: list[str] = []
        self.reused = False

    @property
    def base_url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._settings.vllm_port}/v1"

    @property
    def served_name(self) -> str:
        """The name that requests use."""
        name = self._settings.llm_model or SERVED_NAME
        return name if name.endswith(DUMMY) or not self._dummy else name + DUMMY

    @property
    def alive(self) -> bool:
        """Whether our own process runs; also False of a server that was only found."""
        return self._guard is not None and self._guard.poll() is None

    @property
    def pid(self) -> int | None:
        """The process id of vLLM itself, which leads its process group; None while our own does not run."""
        return self._pid if self.alive else None

    @property
    def facts(self) -> StartFacts:
        """The sizes its log told; all None of a server that was only found."""
        return self._log.facts

    @property
    def log_path(self) -> Path:
        """Where its log is kept."""
        return self._log_path

    def options(self, profile: str) -> ServerOptions:
        """What the settings ask of it."""
        settings = self._settings
        own_copy = settings.vllm_tensor_parallel == 1 and has_qwen36_blocks(settings.vllm_model)
        return ServerOptions(
            model=settings.vllm_model,
            served_name=self.served_name,
            port=settings.vllm_port,
            profile="image" if profile == "image" else "text",
            context_tokens=settings.vllm_context_tokens,
            max_num_seqs=settings.vllm_max_num_seqs,
            min_pixels=settings.image_min_pixels,
            max_pixels=settings.image_max_pixels,
            images_per_prompt=settings.vllm_images,
            mtp_tokens=settings.vllm_mtp,
            tensor_parallel=settings.vllm_tensor_parallel,
            gpu_memory=settings.vllm_gpu_memory,
            match_unit=MATCH_UNIT if own_copy else None,
            extra=split_arguments(settings.vllm_arguments),
        )

    async def start(self) -> str:
        """Start it unless it runs; its base URL, once it answers. Raises ChatError that says why it does not."""
        if self.alive:
            return self.base_url
        self._log = StartLog()
        self.reused = await self._serves_already()
        if not self.reused:
            command, what = await asyncio.to_thread(self._command)
            _check_port(self._settings.vllm_port)
            await self._run(command, what)
        return self.base_url

    async def ended(self) -> ChatError:
        """Wait until our process has ended by itself; why it did."""
        guard = self._guard
        if guard is None:
            return await self._gone()
        status = await exit_of(guard)
        return start_fault(self._tail(), status, self._settings.vllm_model, self._log_path)

    async def stop(self) -> None:
        """End it, where we started it."""
        guard, self._guard = self._guard, None
        if guard is not None:
            await end_child(guard, END_S + 2)

    async def _gone(self) -> ChatError:
        """Wait until a server that was only found does not answer any more."""
        async with httpx2.AsyncClient(trust_env=False, timeout=_HEALTH_S) as client:
            missed = 0
            while missed < _MISSES:
                await asyncio.sleep(_HEALTH_S)
                missed = 0 if not self.reused or await _healthy(client, self.base_url) else missed + 1
        return ChatError("vllm_ended", f"The model server at {self.base_url} does not answer any more.")

    @property
    def _dummy(self) -> bool:
        return "--load-format dummy" in " ".join(self._settings.vllm_arguments.replace("=", " ").split())

    def _command(self) -> tuple[list[str], str]:
        """The command, and by what name its start is remembered. Blocks. Raises ChatError."""
        found = find_vllm(self._settings.vllm_python)
        if found is None:
            raise ChatError(
                "vllm_missing",
                "There is no vLLM here; install it with `make install-gpu`, or name the Python that has it with "
                "--vllm-python.",
            )
        cards = gpus()
        check_can_serve(found, cards, self._settings.vllm_model, self._settings.vllm_tensor_parallel)
        profile = self._settings.vllm_profile
        options = self.options(default_profile(cards, TEXT_ONLY_BELOW_GIB) if profile == "auto" else profile)
        words = arguments(options, found.version)
        self.cautions = cautions(options, found.version)
        return found.command(words), _remembered(found, options, cards[0].name if cards else "cpu")

    async def _serves_already(self) -> bool:
        """Whether a server on our port serves our model. Raises ChatError when it serves another."""
        try:
            async with httpx2.AsyncClient(trust_env=False, timeout=_HEALTH_S) as client:
                answer = await client.get(f"{self.base_url}/models")
                served = [str(entry["id"]) for entry in answer.json()["data"]]
        except (httpx2.HTTPError, ValueError, KeyError, TypeError):
            return False
        if self.served_name in served:
            return True
        raise ChatError(
            "vllm_other_model",
            f"A model server on port {self._settings.vllm_port} serves {', '.join(served)} and not "
            f"{self.served_name}; use it with --base-url {self.base_url} --model {served[0] if served else 'NAME'}, "
            "or choose another port with --vllm-port.",
        )

    async def _run(self, command: list[str], what: str) -> None:
        self._log_path = _new_log(self._settings.cache_dir / "logs")
        begun = time.monotonic()
        expected = self._times.expected(what)
        self._told(Progress(self._log.stage, None, 0.0, expected))
        try:
            self._guard = guard = _spawn(command, self._log_path)
            assert guard.stdout is not None
            self._pid = int(await asyncio.to_thread(guard.stdout.readline) or 0)
            await self._until_ready(self._guard, begun, expected)
        except BaseException:
            await self.stop()
            raise
        self._times.keep(what, time.monotonic() - begun)

    async def _until_ready(self, guard: subprocess.Popen[str], begun: float, expected: float | None) -> None:
        position, grown = 0, time.monotonic()
        async with httpx2.AsyncClient(trust_env=False, timeout=_HEALTH_S) as client:
            while True:
                text, position = await asyncio.to_thread(_read_from, self._log_path, position)
                now = time.monotonic()
                if text:
                    grown = now
                    self._log.feed(text)
                self._told(Progress(self._log.stage, self._log.percent, round(now - begun, 1), expected))
                status = guard.poll()
                if status is not None or now - grown > self._settings.vllm_patience:
                    raise start_fault(self._tail(), status, self._settings.vllm_model, self._log_path)
                if self._log.stage == "serving" and await _healthy(client, self.base_url):
                    return
                await asyncio.sleep(_LOOK_S)

    def _tail(self) -> str:
        """The end of its log."""
        with contextlib.suppress(OSError), self._log_path.open("rb") as file:
            file.seek(max(0, self._log_path.stat().st_size - _TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
        return ""


def _remembered(found: Installation, options: ServerOptions, card: str) -> str:
    return f"{options.model} {options.profile} | vllm {found.version} | {options.tensor_parallel} x {card}"


def _spawn(command: list[str], log: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "spoken_chat.server.guard", str(log), "--", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **ENVIRONMENT},
        process_group=0,  # a Ctrl-C at the terminal is for the app, which ends its child itself
    )


def _new_log(folder: Path) -> Path:
    """An empty log file; the oldest ones are deleted. Raises ChatError where none can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in sorted(folder.glob("vllm-*.log"))[: 1 - LOGS_KEPT]:
            old.unlink()
        path = folder / f"vllm-{datetime.now():%Y%m%d-%H%M%S-%f}.log"
        path.touch()
    except OSError as error:
        raise ChatError(
            "vllm_log", f"The log of vLLM cannot be written to {folder} ({error.strerror}); choose another place with "
            "--cache-dir.",
        ) from error  # fmt: skip
    return path


def _read_from(path: Path, position: int) -> tuple[str, int]:
    with path.open("rb") as file:
        file.seek(position)
        data = file.read()
    return data.decode("utf-8", "replace"), position + len(data)


def _check_port(port: int) -> None:
    """Raise ChatError where something else holds the port, a server that is still loading included."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError as error:
            raise ChatError(
                "vllm_port",
                f"Port {port} is in use by a program that serves no model (yet); choose another with --vllm-port, or "
                "wait if it is a vLLM that is loading.",
                port=port,
            ) from error


async def _healthy(client: httpx2.AsyncClient, base_url: str) -> bool:
    try:
        return (await client.get(f"{server_root(base_url)}/health")).status_code == 200
    except httpx2.HTTPError:
        return False
