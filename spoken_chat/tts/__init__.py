"""Speech synthesis: one small interface, one file per engine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from spoken_chat.audio import Pcm16


@dataclass(frozen=True)
class SpeechStyle:
    """How a mood changes the voice, where the engine can: `rate` is relative (1.1 is 10 % faster)."""

    rate: float = 1.0
    pitch_hz: int = 0


@dataclass(frozen=True)
class SpeechRequest:
    """One clause to speak: clean text, ISO 639-1 `language`, and the voice's id in each engine (`edge`, `kokoro`)."""

    text: str
    language: str
    voices: Mapping[str, str]
    style: SpeechStyle = field(default_factory=SpeechStyle)


@dataclass(frozen=True)
class SpeechChunk:
    """24 kHz mono int16 samples, and the engine that spoke them. Never empty."""

    pcm: Pcm16
    engine: str


@dataclass(frozen=True)
class SpeechNotice:
    """Something the listener should be told once, such as a change of engine."""

    code: str
    message: str


SpeechEvent = SpeechChunk | SpeechNotice


class Synthesizer(Protocol):
    """Speaks clauses."""

    @property
    def name(self) -> str:
        """The engine in one word, as it stands in `SpeechRequest.voices`."""
        ...

    @property
    def parallel(self) -> int:
        """How many clauses are worth synthesising at once: above 1 only where the wait is the network's."""
        ...

    def load(self) -> None:
        """Load what is needed; blocks, so call it in a worker thread. Raises ChatError."""
        ...

    def synthesize(self, request: SpeechRequest) -> AsyncGenerator[SpeechEvent, None]:
        """Yield the clause's audio as it is made, leading and trailing silence trimmed. Raises ChatError.

        Closing the generator stops the work.
        """
        ...

    def close(self) -> None:
        """Let the worker threads end; nothing may be asked afterwards."""
        ...
