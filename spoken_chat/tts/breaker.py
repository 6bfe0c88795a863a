"""A circuit breaker: a service that has failed is left alone for a while, then one caller tries it again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from spoken_chat.errors import ChatError

LONGEST_WAITS: Final = 16


class CircuitBreaker:
    """Who may call a service that can fail, for the callers of one event loop.

    Closed: all may. Open, after a failure: none may, for `retry_after` seconds. Then half-open: one may, as a trial;
    when it succeeds the breaker closes, when it fails the service is left alone for twice as long as before, up to
    LONGEST_WAITS times `retry_after`: where there is no network, trials should become rare. One outage lasts from the
    failure that opened the breaker until the trial that closes it.
    """

    def __init__(self, *, retry_after: float, clock: Callable[[], float]) -> None:
        """`clock` gives seconds on a monotonic clock."""
        self._retry_after = retry_after
        self._clock = clock
        self._fault: ChatError | None = None
        self._opened_at = 0.0
        self._waits = 1
        self._trial: Attempt | None = None
        self._attempts: set[Attempt] = set()

    @property
    def fault(self) -> ChatError | None:
        """The latest failure of the present outage; None while the breaker is closed."""
        return self._fault

    @property
    def permits(self) -> bool:
        """Whether a call made now may go to the service."""
        if self._fault is None:
            return True
        return self._trial is None and self._clock() - self._opened_at >= self._waits * self._retry_after

    def attempt(self) -> Attempt:
        """Register a call to the service; only when `permits`. End it with succeed, fail or abandon."""
        attempt = Attempt(self)
        self._attempts.add(attempt)
        if self._fault is not None:
            self._trial = attempt
        return attempt

    def _succeeded(self, attempt: Attempt) -> None:
        # A call that was under way when another one failed says nothing about the service now.
        if self._end(attempt):
            self._fault = None

    def _failed(self, attempt: Attempt, fault: ChatError) -> bool:
        was_trial = self._end(attempt)
        opens = self._fault is None
        if opens or was_trial:
            self._waits = 1 if opens else min(2 * self._waits, LONGEST_WAITS)
            self._fault = fault
            self._opened_at = self._clock()
            for other in self._attempts:
                other.service_failed.set()
        return opens

    def _end(self, attempt: Attempt) -> bool:
        """Whether `attempt`, now over, was the trial."""
        self._attempts.discard(attempt)
        if self._trial is not attempt:
            return False
        self._trial = None
        return True


class Attempt:
    """One call to the service. `service_failed` is set when another call, made at the same time, has failed."""

    def __init__(self, breaker: CircuitBreaker) -> None:
        self._breaker = breaker
        self.service_failed = asyncio.Event()

    def succeed(self) -> None:
        """The call did all it should."""
        self._breaker._succeeded(self)

    def fail(self, fault: ChatError) -> bool:
        """The call failed. True when this begins an outage."""
        return self._breaker._failed(self, fault)

    def abandon(self) -> None:
        """The call was given up without an outcome; does nothing after succeed or fail."""
        self._breaker._end(self)
