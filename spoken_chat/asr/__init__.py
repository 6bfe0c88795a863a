"""Speech recognition: one small interface, one file per engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from spoken_chat.audio import FloatPcm


@dataclass(frozen=True)
class Transcript:
    """What was heard. `text` is empty when nobody spoke: silence and noise are never made into a sentence."""

    text: str
    language: str | None = None


class Recognizer(Protocol):
    """Turns one utterance into text."""

    @property
    def name(self) -> str:
        """The engine and model in words, such as `faster-whisper base int8 cpu`."""
        ...

    def load(self) -> None:
        """Load the model and run it once; blocks, so call it in a worker thread. Raises ChatError."""
        ...

    async def transcribe(self, audio: FloatPcm, languages: Sequence[str]) -> Transcript:
        """Recognise 16 kHz mono `audio`; the language is one of `languages` (ISO 639-1). Raises ChatError."""
        ...

    async def draft(self, audio: FloatPcm, languages: Sequence[str]) -> Transcript:
        """What 16 kHz mono `audio` says so far, quickly, for captions: words may be wrong, but never made up.

        Sound that ends in the middle of a word is expected; of much sound, only the latest is heard. A draft makes way
        for a `transcribe` that waits, and goes on after it. Raises ChatError.
        """
        ...

    def close(self) -> None:
        """Let the worker threads end; nothing may be asked afterwards."""
        ...
