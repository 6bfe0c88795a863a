"""How late the event loop is while speech recognition or synthesis runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Final

from spoken_chat.asr import Recognizer, Transcript
from spoken_chat.audio import FloatPcm
from spoken_chat.tts import SpeechEvent, SpeechRequest, Synthesizer

LAG_STEP_S: Final = 0.005
"""How often the event loop's lag is looked at."""


class LoopLag:
    """How much later than asked the event loop comes back, in milliseconds, while some `work` goes on."""

    def __init__(self) -> None:
        self._lags: list[float] = []
        self._works = 0
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def work(self) -> Iterator[None]:
        """Around what may delay the loop."""
        self._works += 1
        try:
            yield
        finally:
            self._works -= 1

    def start(self) -> None:
        """Begin to look, with nothing seen yet."""
        self._lags = []
        self._task = asyncio.create_task(self._look())

    async def stop(self) -> list[float]:
        """What was seen."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        return self._lags

    async def _look(self) -> None:
        while True:
            at_work = self._works > 0
            due = time.monotonic() + LAG_STEP_S
            await asyncio.sleep(LAG_STEP_S)
            if at_work or self._works:
                self._lags.append((time.monotonic() - due) * 1000)


class WatchedRecognizer:
    """A `Recognizer` whose passes are work."""

    def __init__(self, recognizer: Recognizer, lag: LoopLag) -> None:
        self._recognizer, self._lag = recognizer, lag
        self.name = recognizer.name
        self.load, self.close = recognizer.load, recognizer.close

    async def transcribe(self, audio: FloatPcm, languages: Sequence[str]) -> Transcript:
        """The recogniser's own."""
        with self._lag.work():
            return await self._recognizer.transcribe(audio, languages)

    async def draft(self, audio: FloatPcm, languages: Sequence[str]) -> Transcript:
        """The recogniser's own."""
        with self._lag.work():
            return await self._recognizer.draft(audio, languages)


class WatchedSynthesizer:
    """A `Synthesizer` whose clauses are work."""

    def __init__(self, synthesizer: Synthesizer, lag: LoopLag) -> None:
        self._synthesizer, self._lag = synthesizer, lag
        self.name, self.parallel = synthesizer.name, synthesizer.parallel
        self.load, self.close = synthesizer.load, synthesizer.close

    async def synthesize(self, request: SpeechRequest) -> AsyncGenerator[SpeechEvent, None]:
        """The synthesiser's own."""
        with self._lag.work():
            async with aclosing(self._synthesizer.synthesize(request)) as events:
                async for event in events:
                    yield event
