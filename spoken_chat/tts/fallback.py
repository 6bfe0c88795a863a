"""Two voices in one: a clause that the preferred one cannot finish is finished by the other."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace

from spoken_chat.errors import ChatError
from spoken_chat.tts import SpeechEvent, SpeechNotice, SpeechRequest, Synthesizer
from spoken_chat.tts.breaker import Attempt, CircuitBreaker
from spoken_chat.tts.interruption import SpeechInterrupted

_log = logging.getLogger(__name__)


class FallbackSynthesizer:
    """Speaks with `primary`; what it leaves unsaid is spoken by `secondary` within the same clause.

    After a failure `primary` is left alone for `retry_after` seconds, then tried with one clause. A clause that waits
    for its first sound while another one fails does not wait for a timeout of its own. Each outage gives one
    SpeechNotice (`tts_fallback`). For the clauses of one event loop.
    """

    def __init__(
        self,
        primary: Synthesizer,
        secondary: Synthesizer,
        *,
        retry_after: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` gives seconds on a monotonic clock."""
        self._primary = primary
        self._secondary = secondary
        self._breaker = CircuitBreaker(retry_after=retry_after, clock=clock)
        self._secondary_fault: ChatError | None = None
        self._untold: SpeechNotice | None = None

    @property
    def preferred(self) -> Synthesizer:
        """The engine that the next clause would be given to first."""
        return self._primary if self._breaker.permits else self._secondary

    @property
    def reason(self) -> str | None:
        """Why the primary engine was last left for the other, in one sentence; None when there is no outage."""
        return self._breaker.fault.message if self._breaker.fault else None

    @property
    def secondary_fault(self) -> str | None:
        """Why the secondary engine could not be loaded, in one sentence; None when it could."""
        return self._secondary_fault.message if self._secondary_fault else None

    @property
    def name(self) -> str:
        """The name of the engine now preferred."""
        return self.preferred.name

    @property
    def parallel(self) -> int:
        """How many clauses the engine now preferred is worth giving at once."""
        return self.preferred.parallel

    def load(self) -> None:
        """Load both engines. Raises ChatError of the primary one; the secondary one's is kept until it is needed."""
        self._primary.load()
        try:
            self._secondary.load()
        except ChatError as error:
            self._secondary_fault = error
            _log.warning("the voice engine %s is not there to fall back on: %s", self._secondary.name, error.message)

    def close(self) -> None:
        """Close both engines."""
        self._primary.close()
        self._secondary.close()

    async def synthesize(self, request: SpeechRequest) -> AsyncGenerator[SpeechEvent, None]:
        """Yield the clause's sound, from one engine or from both in turn, and a notice when an outage begins.

        Raises ChatError when neither engine can speak it.
        """
        remaining = request.text
        if self._primary.name in request.voices and self._breaker.permits:
            attempt = self._breaker.attempt()
            try:
                async with contextlib.aclosing(self._primary.synthesize(request)) as events:
                    event = await _first(events, attempt)
                    spoke = event is not None
                    while event is not None:
                        yield event
                        event = await anext(events, None)
                if spoke:
                    attempt.succeed()
                return
            except _ServiceFailed:
                _log.info("not waiting for %s, which has just failed", self._primary.name)
            except ChatError as error:
                remaining = error.remaining if isinstance(error, SpeechInterrupted) else request.text
                self._note(error, begins_outage=attempt.fail(error))
            finally:
                attempt.abandon()
        async with contextlib.aclosing(self._speak_secondary(replace(request, text=remaining))) as rest:
            async for event in rest:
                yield event

    async def _speak_secondary(self, request: SpeechRequest) -> AsyncGenerator[SpeechEvent, None]:
        try:
            self._check_secondary(request)
            if self._primary.name in request.voices and self._untold is not None:
                notice, self._untold = self._untold, None
                yield notice
            async with contextlib.aclosing(self._secondary.synthesize(request)) as events:
                async for event in events:
                    yield event
        except ChatError as error:
            if self.reason is None:
                raise
            raise ChatError(
                "tts_failed",
                f"No voice could speak the reply. {self._primary.name}: {self.reason} "
                f"{self._secondary.name}: {error.message}",
                primary=self._primary.name,
                primary_fault=self.reason,
                secondary=self._secondary.name,
                secondary_fault=error.message,
            ) from error

    def _check_secondary(self, request: SpeechRequest) -> None:
        if self._secondary_fault is not None:
            raise self._secondary_fault
        if self._secondary.name not in request.voices:
            raise ChatError(
                "tts_no_voice",
                f"There is no {self._secondary.name} voice for the language {request.language!r}; "
                "add one to the persona.",
                engine=self._secondary.name,
                language=request.language,
            )

    def _note(self, fault: ChatError, *, begins_outage: bool) -> None:
        """Log the failure, and keep a notice for the next clause that the secondary engine speaks."""
        level = logging.WARNING if begins_outage else logging.INFO
        _log.log(level, "%s failed, %s goes on: %s", self._primary.name, self._secondary.name, fault.message)
        if begins_outage:
            self._untold = SpeechNotice(
                "tts_fallback",
                f"The voice engine {self._primary.name} does not answer at the moment, "
                f"so {self._secondary.name} speaks instead.",
            )


class _ServiceFailed(Exception):
    """Another clause found that the service does not work, before any sound came for this one."""


async def _first(events: AsyncGenerator[SpeechEvent, None], attempt: Attempt) -> SpeechEvent | None:
    """The first event, or None when there is none. Raises _ServiceFailed as soon as `attempt` hears of a failure."""
    first = asyncio.ensure_future(anext(events, None))
    failure = asyncio.create_task(attempt.service_failed.wait())
    try:
        await asyncio.wait({first, failure}, return_when=asyncio.FIRST_COMPLETED)
        if not first.done():
            raise _ServiceFailed
        return first.result()
    finally:
        for task in (first, failure):
            task.cancel()
        await asyncio.wait({first, failure})
        if not first.cancelled():
            # When this clause itself is being closed nobody asks for the outcome; asking marks it as seen.
            first.exception()
