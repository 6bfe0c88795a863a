"""The microphone's stream: cut into the detector's chunks, kept for as long as it may be needed, with its own time.

A position is seconds of sound since the stream began; `clock_of` says when that sound arrived here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

import numpy as np

from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.audio.endpointing import Endpointer, EndpointRule, SpeechEvent
from spoken_chat.audio.history import AudioHistory
from spoken_chat.audio.vad import CHUNK

CHUNK_S: Final = CHUNK / ASR_RATE


class Detector(Protocol):
    """Says how probable speech is in each next 32 ms of one stream."""

    def feed(self, chunk: FloatPcm) -> float:
        """The probability of speech in the next 512 samples (16 kHz mono)."""
        ...


class Listener:
    """One microphone stream, 16 kHz mono."""

    def __init__(self, detector: Detector, rule: EndpointRule, wait_s: float) -> None:
        self.endpointer = Endpointer(rule, wait_s)
        self.probability = 0.0
        """Of speech, in the latest chunk."""
        self._detector = detector
        self._history = AudioHistory()
        self._rest = np.zeros(0, np.float32)
        self._arrived = 0.0
        self._received = 0
        self._done = 0

    @property
    def position(self) -> float:
        """How far the stream was listened to, in seconds of sound."""
        return self._done / ASR_RATE

    def clock_of(self, position: float) -> float:
        """When the sound at `position` arrived, by the clock of `hear`."""
        return self._arrived - (self._received / ASR_RATE - position)

    def hear(self, pcm: FloatPcm, at: float, *, deaf: bool) -> Iterator[list[SpeechEvent]]:
        """Listen to the next sound, which arrived whole at `at` seconds; yields the events of each chunk.

        While `deaf`, silence is heard in its place.
        """
        self._arrived = at
        self._received += len(pcm)
        rest = np.concatenate([self._rest, np.zeros(len(pcm), np.float32) if deaf else pcm])
        whole = len(rest) - len(rest) % CHUNK
        self._rest = rest[whole:]
        for start in range(0, whole, CHUNK):
            chunk = rest[start : start + CHUNK]
            self._history.append(chunk)
            self._done += CHUNK
            self.probability = self._detector.feed(chunk)
            yield self.endpointer.feed(self.probability)

    def sound(self, start: float, end: float | None = None) -> FloatPcm:
        """The sound from position `start` to `end` (default: all so far), as far as it is kept."""
        last = self._done if end is None else round(end * ASR_RATE)
        return self._history.slice(max(0, round(start * ASR_RATE)), last)

    def forget_before(self, position: float) -> None:
        """Sound before `position` is not needed any more."""
        self._history.trim(max(0, round(position * ASR_RATE)))
