"""Speech recognition for benchmarks whose turns are typed."""

from __future__ import annotations

from collections.abc import Sequence

from spoken_chat.asr import Transcript
from spoken_chat.audio import FloatPcm


class NoEars:
    """The `Recognizer` of typed turns: asking it is a fault of the benchmark."""

    name = "none"

    def load(self) -> None:
        """Nothing to load."""

    def close(self) -> None:
        """Nothing to close."""

    async def transcribe(self, audio: FloatPcm, languages: Sequence[str]) -> Transcript:  # noqa: ARG002
        """Raises AssertionError."""
        raise AssertionError("typed turns are not transcribed")

    draft = transcribe
