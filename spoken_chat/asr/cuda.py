"""Whether speech recognition really runs on this machine's GPU.

CTranslate2 finds a GPU without finding cuDNN or cuBLAS, and then aborts the whole process at the first real step. So
that step is tried once in a process of its own, which may die: `python -m spoken_chat.asr.cuda FOLDER`.
"""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import ctranslate2
import numpy as np

from spoken_chat.settings import ROOT

COMPUTE_TYPE: Final = "float16"
_TIMEOUT_S: Final = 120.0
_FRAMES: Final = 1000
"""Ten seconds of mel frames, as a short utterance has."""


@dataclass(frozen=True)
class Probe:
    """What the trial run found; `reason` is empty when it `works`."""

    works: bool
    reason: str = ""


@functools.cache
def probe(folder: Path) -> Probe:
    """Try the CTranslate2 Whisper model in `folder` on the GPU. Seconds the first time, then remembered."""
    try:
        count = ctranslate2.get_cuda_device_count()
    except RuntimeError as error:
        return Probe(False, str(error))
    if not count:
        return Probe(False, "no CUDA GPU was found")
    command = [sys.executable, "-m", __name__, str(folder.resolve())]
    try:
        trial = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return Probe(False, f"the trial run did not end within {_TIMEOUT_S:g} s")
    if trial.returncode == 0:
        return Probe(True)
    said = trial.stderr.strip().splitlines()
    return Probe(False, said[-1] if said else f"the trial run ended with {_ending(trial.returncode)}")


def _ending(returncode: int) -> str:
    return signal.Signals(-returncode).name if returncode < 0 else f"status {returncode}"


def _try(folder: str) -> None:
    """One encoder pass and one token: what loads cuDNN and cuBLAS."""
    model = ctranslate2.models.Whisper(folder, device="cuda", compute_type=COMPUTE_TYPE)
    features = np.zeros((1, model.n_mels, _FRAMES), np.float32)
    encoded = model.encode(ctranslate2.StorageView.from_array(features))
    model.generate(encoded, [["<|startoftranscript|>"]], beam_size=1, max_length=2)


if __name__ == "__main__":
    _try(sys.argv[1])
