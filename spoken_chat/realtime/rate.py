"""The wire's 24 kHz made the listening models' 16 kHz, as a stream and with next to no delay.

`audio.pcm.Resampler` works in blocks of 20 ms, which a live microphone would wait for. This is one polyphase
low-pass filter: each two samples out stand for three in, so that only two sets of weights exist.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spoken_chat.audio import ASR_RATE, TTS_RATE, FloatPcm

STEP_IN: Final = 3
STEP_OUT: Final = 2
"""24,000 : 16,000."""

WIDTH: Final = 64
"""Samples in that one sample out is made of: 2.7 ms."""

CENTRE: Final = WIDTH // 2 - 1
"""The place in its window of the first sample of each pair; the second lies a sample and a half behind."""

CUTOFF_HZ: Final = 7_300.0
"""Half amplitude; with this width, all is passed below 6.5 kHz and nothing above the 8 kHz that would fold back."""

KAISER_BETA: Final = 7.0
"""Stop band at -70 dB, below the noise of 12 bits."""

LOOK_AHEAD_S: Final = (WIDTH - CENTRE) / TTS_RATE
"""How long sound is held back at most: 1.4 ms."""


class ToAsrRate:
    """A 24 kHz mono stream at 16 kHz; however the stream is cut into pieces, the result is the same."""

    def __init__(self) -> None:
        self._rest: FloatPcm = np.zeros(CENTRE, np.float32)

    def feed(self, samples: FloatPcm) -> FloatPcm:
        """The next samples, shape (n,); returns what is ready, at most LOOK_AHEAD_S behind."""
        joined = np.concatenate([self._rest, samples])
        pairs = max(0, (len(joined) - WIDTH) // STEP_IN + 1)
        self._rest = joined[pairs * STEP_IN :]
        if not pairs:
            return np.zeros(0, np.float32)
        windows = sliding_window_view(joined, WIDTH)[: pairs * STEP_IN : STEP_IN]
        made: FloatPcm = (windows @ _WEIGHTS).ravel().clip(-1, 1)
        return made


def _weights(place: float) -> NDArray[np.float32]:
    """The weights of a window for the sample at `place` in it: a sinc under a Kaiser window, summing to 1."""
    distance = np.arange(WIDTH) - place
    half = WIDTH - 1 - CENTRE - (place - CENTRE)
    inside = np.clip(1 - (distance / half) ** 2, 0, None)
    weights = np.sinc(2 * CUTOFF_HZ / TTS_RATE * distance) * np.i0(KAISER_BETA * np.sqrt(inside)) * (inside > 0)
    return np.asarray(weights / weights.sum(), np.float32)


_WEIGHTS: Final = np.stack([_weights(CENTRE), _weights(CENTRE + TTS_RATE / ASR_RATE)], axis=1)
