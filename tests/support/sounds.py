"""Sounds that nobody speaks, 6 s each at 16 kHz."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spoken_chat.audio import ASR_RATE, FloatPcm

_T: Final = np.arange(6 * ASR_RATE) / ASR_RATE

Waveform = NDArray[np.float64]


def _noise(level: float) -> Waveform:
    return np.random.default_rng(0).standard_normal(len(_T)) * level


def _tones(*frequencies: float) -> Waveform:
    return np.sum([np.sin(2 * np.pi * frequency * _T) for frequency in frequencies], axis=0) / len(frequencies)


def _tune() -> Waveform:
    note = np.arange(ASR_RATE // 2) / ASR_RATE
    pitches = (262, 294, 330, 349, 392, 440, 494, 523, 494, 440, 392, 330)
    return np.concatenate([0.5 * np.sin(2 * np.pi * pitch * note) * np.exp(-5 * note) for pitch in pitches])


_SOUNDS: Final[dict[str, Callable[[], Waveform]]] = {
    "silence": lambda: np.zeros(len(_T)),
    "white noise": lambda: _noise(0.1),
    "loud noise": lambda: _noise(0.5),
    "faint noise": lambda: _noise(0.0005),
    "gated noise": lambda: _noise(0.2) * (np.sin(2 * np.pi * 4 * _T) > 0),
    "mains hum": lambda: 0.4 * _tones(50, 100, 150),
    "chords": lambda: _tones(261.6, 329.6, 392.0) * (1 + np.sin(2 * np.pi * 2 * _T)) * 0.3,
    "tune": _tune,
    "clicks": lambda: (np.arange(len(_T)) % 8000 < 40) * 0.9,
}
NAMES: Final = tuple(_SOUNDS)


def named(name: str) -> FloatPcm:
    """The sound called `name`."""
    return _SOUNDS[name]().astype(np.float32)
