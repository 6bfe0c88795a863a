"""The latest sound of a stream, found by its place in the stream."""

from __future__ import annotations

from typing import Final

import numpy as np

from spoken_chat.audio import ASR_RATE, FloatPcm

_LEAST_ROOM: Final = ASR_RATE
"""Samples that fit in without moving what is kept: a second of a 16 kHz stream."""


class AudioHistory:
    """Keeps every sample appended until it is trimmed away. Places count samples since the stream began.

    Not shared between threads. What it holds is bounded by whoever trims: nothing is dropped by itself.
    """

    def __init__(self) -> None:
        self._buffer: FloatPcm = np.empty(_LEAST_ROOM, np.float32)
        self._first = 0
        self._count = 0
        self._position = 0

    @property
    def position(self) -> int:
        """Samples appended so far: the place of the next one."""
        return self._position

    @property
    def kept_from(self) -> int:
        """The place of the oldest sample kept."""
        return self._position - self._count

    def append(self, pcm: FloatPcm) -> None:
        """Add a copy of the next samples, shape (n,)."""
        end = self._first + self._count
        if end + len(pcm) > len(self._buffer):
            self._make_room(len(pcm))
            end = self._count
        self._buffer[end : end + len(pcm)] = pcm
        self._count += len(pcm)
        self._position += len(pcm)

    def slice(self, start: int, end: int) -> FloatPcm:
        """A copy of the samples from place `start` up to `end`, as far as they are kept; shape (m,), m >= 0."""
        oldest = self.kept_from
        start, end = (min(max(place, oldest), self._position) for place in (start, end))
        offset = self._first - oldest
        return self._buffer[start + offset : end + offset].copy()

    def trim(self, before: int) -> None:
        """Drop the samples before that place; what comes later is kept, also where `before` is still to come."""
        dropped = min(max(before - self.kept_from, 0), self._count)
        self._first += dropped
        self._count -= dropped

    def _make_room(self, samples: int) -> None:
        """Move what is kept into a buffer twice as long as needed, so that this is seldom, and memory is given back."""
        buffer: FloatPcm = np.empty(max(_LEAST_ROOM, 2 * (self._count + samples)), np.float32)
        buffer[: self._count] = self._buffer[self._first : self._first + self._count]
        self._buffer = buffer
        self._first = 0
