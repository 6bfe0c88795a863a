"""Which sound a draft hears: speech in pieces short enough to be drafted in a moment, cut where words are parted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.audio.vad import CHUNK

LONGEST_S: Final = 3.0
"""A piece that grows longer is cut."""
SHORTEST_S: Final = 1.5
"""Of a piece that is cut because of its length. Words in less sound are misheard more often."""
PAUSE_S: Final = 0.3
"""A silence this long parts phrases: a piece ends there, if it is at least `PHRASE_S` long."""
PHRASE_S: Final = 1.0

_AHEAD_S: Final = 0.2
"""Sound after a cut: with less of it, the quietest place so far may be the middle of a word."""
_AROUND_S: Final = 0.096
"""A place is as quiet as so much sound around it: three chunks; a plosive's closure within a word is shorter."""

Slice = Callable[[float, float], FloatPcm]
"""The sound (16 kHz mono) between two positions of the stream in seconds."""


@dataclass(frozen=True)
class Piece:
    """Sound to draft, from `start` to `end` seconds of the stream.

    `closed`: the next piece begins where it ends. `paused`: the speaker was silent there.
    """

    start: float
    end: float
    closed: bool = False
    paused: bool = False


class Pieces:
    """The piece in progress of one utterance, which began at `start` seconds of the stream."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._silent_from: float | None = None
        self._pauses: list[tuple[float, float]] = []

    def note(self, position: float, voiced: bool) -> None:
        """The chunk that ends at `position` was speech, or not."""
        if not voiced:
            if self._silent_from is None:
                self._silent_from = position - CHUNK / ASR_RATE
        elif self._silent_from is not None:
            silent_to = position - CHUNK / ASR_RATE
            if silent_to - self._silent_from >= PAUSE_S:
                self._pauses.append((self._silent_from, silent_to))
            self._silent_from = None

    def due(self, position: float, slice_: Slice) -> Piece:
        """What to draft now that the stream has come to `position`."""
        start = self._start
        for silent_from, silent_to in self._pauses:
            middle = (silent_from + silent_to) / 2
            if start + PHRASE_S <= middle <= start + LONGEST_S:
                return Piece(start, middle, closed=True, paused=True)
        if position - start <= LONGEST_S:
            return Piece(start, position)
        first, last = start + SHORTEST_S, start + LONGEST_S - _AHEAD_S
        end = first + _AROUND_S / 2 + _quietest(slice_(first, last))
        return Piece(start, end, closed=True, paused=any(begin <= end <= to for begin, to in self._pauses))

    def close(self, piece: Piece) -> None:
        """`piece` was drafted: the next one begins at its end."""
        self._start = piece.end
        self._pauses = [(begin, to) for begin, to in self._pauses if to > piece.end and begin > piece.end]


def _quietest(sound: FloatPcm) -> float:
    """Where the quietest `_AROUND_S` of `sound` begin, in seconds."""
    around = round(_AROUND_S * ASR_RATE)
    energy = np.cumsum(np.pad(np.square(sound, dtype=np.float64), (1, 0)))
    return float(np.argmin(energy[around:] - energy[:-around])) / ASR_RATE
