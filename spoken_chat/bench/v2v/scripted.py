"""Engines with set delays, so that what the app itself adds can be seen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from spoken_chat.asr import Transcript
from spoken_chat.audio import TTS_RATE, FloatPcm
from spoken_chat.llm import ChatEvent, Message, RequestSent, StreamEnd, TextDelta, Usage
from spoken_chat.tts import SpeechChunk, SpeechEvent, SpeechRequest

REPLY: Final = ("That sounds", " lovely.", " Tell me", " a little", " more", " about it.")
LOUDNESS: Final = 1000
"""Of the scripted voice's samples: audible."""


@dataclass(frozen=True)
class Delays:
    """How long each engine takes, in seconds. `voice_s`: how much sound a clause has."""

    asr: float = 0.0
    ttft: float = 0.0
    token: float = 0.0
    tts: float = 0.0
    voice_s: float = 1.0


@dataclass
class ScriptedEars:
    """The `Recognizer`."""

    delays: Delays
    heard: str = "what is it like"
    name: str = "scripted"

    def load(self) -> None:
        """Nothing to load."""

    def close(self) -> None:
        """Nothing to close."""

    async def transcribe(self, audio: FloatPcm, languages: Sequence[str]) -> Transcript:  # noqa: ARG002
        """Always the same words."""
        await asyncio.sleep(self.delays.asr)
        return Transcript(self.heard, languages[0])

    draft = transcribe


@dataclass
class ScriptedModel:
    """The `ChatModel`."""

    delays: Delays
    name: str = "scripted"
    vision: bool | None = False
    reads_alone: bool = False

    async def stream(self, messages: Sequence[Message]) -> AsyncGenerator[ChatEvent, None]:  # noqa: ARG002
        """Always the same reply."""
        start = time.monotonic()
        yield RequestSent(start)
        for index, text in enumerate(REPLY):
            due = start + self.delays.ttft + index * self.delays.token
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            yield TextDelta(text, time.monotonic())
        yield StreamEnd(time.monotonic(), Usage(100, len(REPLY), 90), "stop")

    async def read(self, messages: Sequence[Message]) -> Usage | None:  # noqa: ARG002
        """As long as a first token takes."""
        await asyncio.sleep(self.delays.ttft)
        return None


@dataclass
class ScriptedVoice:
    """The `Synthesizer`."""

    delays: Delays
    name: str = "scripted"
    parallel: int = 1

    def load(self) -> None:
        """Nothing to load."""

    def close(self) -> None:
        """Nothing to close."""

    async def synthesize(self, request: SpeechRequest) -> AsyncGenerator[SpeechEvent, None]:  # noqa: ARG002
        """Each clause as so much sound, in pieces of a tenth of a second."""
        await asyncio.sleep(self.delays.tts)
        for _ in range(round(self.delays.voice_s * 10)):
            yield SpeechChunk(np.full(TTS_RATE // 10, LOUDNESS, np.int16), self.name)
