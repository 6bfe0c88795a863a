"""Scripted engines with set delays: timing and cancelling are tested without models, as livekit/agents does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import numpy as np

from spoken_chat.asr import Transcript
from spoken_chat.audio import TTS_RATE, FloatPcm
from spoken_chat.errors import ChatError
from spoken_chat.llm import ChatEvent, Message, RequestSent, StreamEnd, TextDelta, Usage
from spoken_chat.persona import Persona, PersonaVoice
from spoken_chat.stages import Stages
from spoken_chat.tts import SpeechChunk, SpeechEvent, SpeechNotice, SpeechRequest, SpeechStyle

Clock = Callable[[], float]


@dataclass
class ScriptedRecognizer:
    """Hears `text` after `delay` seconds, or raises `fault`.

    A draft takes `draft_delay` seconds and hears as many of the first words as `words_per_s` allows in its sound.
    """

    text: str = "hello there"
    delay: float = 0.3
    draft_delay: float = 0.03
    words_per_s: float = 6.0
    fault: Exception | None = None
    name: str = "scripted-asr"
    heard: list[FloatPcm] = field(default_factory=list)
    languages: list[Sequence[str]] = field(default_factory=list)
    drafts: list[FloatPcm] = field(default_factory=list)

    def load(self) -> None:
        """Nothing to load."""

    def close(self) -> None:
        """Nothing to close."""

    async def transcribe(self, audio: FloatPcm, languages: Sequence[str]) -> Transcript:
        self.heard.append(audio)
        self.languages.append(languages)
        await asyncio.sleep(self.delay)
        if self.fault:
            raise self.fault
        return Transcript(self.text, languages[0])

    async def draft(self, audio: FloatPcm, languages: Sequence[str]) -> Transcript:
        self.drafts.append(audio)
        await asyncio.sleep(self.draft_delay)
        if self.fault:
            raise self.fault
        words = self.text.split()
        heard = words[: max(1, round(len(audio) / 16_000 * self.words_per_s))]
        return Transcript(" ".join(heard), languages[0])


@dataclass
class ScriptedModel:
    """Sends `chunks`, the first after `first` seconds, each other `gap` seconds later; then the usage or `fault`.

    `refusals` are raised, one a request, before anything is sent. `closed` counts streams closed before their end.
    """

    clock: Clock
    chunks: Sequence[str] = ("Hi. ", "All is well.")
    first: float = 0.025
    gap: float = 0.004
    usage: Usage | None = field(default_factory=lambda: Usage(100, 24, 90))
    fault: Exception | None = None
    refusals: list[Exception] = field(default_factory=list)
    vision: bool | None = None
    reads_alone: bool = False
    reading: float = 0.02
    """Seconds that reading takes where it is no more than that."""
    name: str = "scripted-llm"
    requests: list[Sequence[Message]] = field(default_factory=list)
    closed: int = 0

    async def stream(self, messages: Sequence[Message]) -> AsyncGenerator[ChatEvent, None]:
        self.requests.append(messages)
        yield RequestSent(self.clock())
        if self.refusals:
            raise self.refusals.pop(0)
        try:
            for index, chunk in enumerate(self.chunks):
                await asyncio.sleep(self.gap if index else self.first)
                yield TextDelta(chunk, self.clock())
            if self.fault:
                raise self.fault
            yield StreamEnd(self.clock(), self.usage, "stop")
        except (asyncio.CancelledError, GeneratorExit):
            self.closed += 1
            raise

    async def read(self, messages: Sequence[Message]) -> Usage | None:
        """For as long as reading takes; of a server that cannot read without answering, up to the first word."""
        if self.reads_alone:
            self.requests.append(messages)
            try:
                await asyncio.sleep(self.reading)
            except asyncio.CancelledError:
                self.closed += 1
                raise
            return None
        async with aclosing(self.stream(messages)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        return None


@dataclass
class ScriptedSynthesizer:
    """Speaks each clause after `delay` seconds as `seconds` of sound in pieces of a tenth; `faults` by clause text."""

    delay: float = 0.08
    seconds: float = 1.0
    parallel: int = 1
    name: str = "scripted-tts"
    amplitude: int = 1
    """Of the first clause's samples, twice that of the second's, and so on: quiet, but told apart."""
    notices: dict[str, SpeechNotice] = field(default_factory=dict)
    faults: dict[str, Exception] = field(default_factory=dict)
    requests: list[SpeechRequest] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    closed: int = 0

    def load(self) -> None:
        """Nothing to load."""

    def close(self) -> None:
        """Nothing to close."""

    async def synthesize(self, request: SpeechRequest) -> AsyncGenerator[SpeechEvent, None]:
        self.requests.append(request)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(self.delay)
            if request.text in self.notices:
                yield self.notices[request.text]
            if request.text in self.faults:
                raise self.faults[request.text]
            value = len(self.requests) * self.amplitude
            for _ in range(round(self.seconds * 10)):
                yield SpeechChunk(np.full(TTS_RATE // 10, value, np.int16), self.name)
        except (asyncio.CancelledError, GeneratorExit):
            self.closed += 1
            raise
        finally:
            self.running -= 1


def scripted_persona() -> Persona:
    """A small English persona with two moods."""
    return Persona(
        id="test",
        name="Test",
        language="en",
        greeting="Hello!",
        voices=(PersonaVoice("Ann", {"scripted-tts": "ann"}), PersonaVoice("Bob", {"scripted-tts": "bob"})),
        moods={"happy": SpeechStyle(1.1, 5), "calm": SpeechStyle()},
        prefix="You are a test.",
    )


def scripted_stages(clock: Clock, **parts: object) -> Stages:
    """Stages of scripted engines; any of `recognizer`, `model`, `synthesizer` may be given."""
    return Stages(
        recognizer=parts.get("recognizer", ScriptedRecognizer()),  # type: ignore[arg-type]
        model=parts.get("model", ScriptedModel(clock)),  # type: ignore[arg-type]
        synthesizer=parts.get("synthesizer", ScriptedSynthesizer()),  # type: ignore[arg-type]
    )


def chat_error(code: str) -> ChatError:
    """A ChatError with a recognisable sentence."""
    return ChatError(code, f"Something is wrong ({code}); try again.")
