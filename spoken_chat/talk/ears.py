"""The models that listen, loaded once for all talks."""

from __future__ import annotations

import asyncio

import numpy as np

from spoken_chat.audio import FloatPcm
from spoken_chat.audio.end_of_turn import EndOfTurnModel, SmartTurn
from spoken_chat.audio.vad import CHUNK, VoiceDetector
from spoken_chat.talk.listener import Detector


class Ears:
    """A voice detector for each stream, and the judge of whether a speaker has finished."""

    def __init__(self) -> None:
        self._end_of_turn: EndOfTurnModel = SmartTurn()

    def load(self) -> None:
        """Load every model and run it once; blocks. Raises ChatError."""
        self.detector().feed(np.zeros(CHUNK, np.float32))
        self._end_of_turn.load()

    def detector(self) -> Detector:
        """A detector for one stream of 16 kHz mono sound."""
        return VoiceDetector()

    async def finished(self, audio: FloatPcm) -> float:
        """The probability that the speaker of 16 kHz mono `audio` is done."""
        return await asyncio.to_thread(self._end_of_turn.finished, audio)
