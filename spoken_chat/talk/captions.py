"""Stand-in so that the others can import it: helper B replaces this whole file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spoken_chat.asr import Recognizer
from spoken_chat.audio import FloatPcm


class Captions:
    def __init__(
        self,
        recognizer: Recognizer,
        languages: Callable[[], Sequence[str]],
        tell: Callable[[str, str], None],
        clock: Callable[[], float],
    ) -> None:
        self._tell = tell

    def feed(
        self, position_s: float, voiced: bool, slice: Callable[[float, float], FloatPcm], speech_start: float
    ) -> None:
        """Nothing yet."""

    def reset(self) -> None:
        """Nothing yet."""

    async def stop(self) -> None:
        """Nothing yet."""
