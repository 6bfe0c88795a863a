"""The circuit breaker's waits grow while a service stays away, and start anew once it was back."""

from __future__ import annotations

from spoken_chat.errors import ChatError
from spoken_chat.tts.breaker import LONGEST_WAITS, CircuitBreaker

AWAY = ChatError("tts_unreachable", "The voice service cannot be reached; check the network.")


def waits(breaker: CircuitBreaker, clock: list[float], trials: int) -> list[float]:
    """Seconds until each of the next `trials` is permitted; every one of them fails."""
    found = []
    for _ in range(trials):
        started = clock[0]
        while not breaker.permits:
            clock[0] += 1
        found.append(clock[0] - started)
        breaker.attempt().fail(AWAY)
    return found


def test_each_trial_that_fails_doubles_the_wait_up_to_a_limit() -> None:
    clock = [0.0]
    breaker = CircuitBreaker(retry_after=10, clock=lambda: clock[0])
    breaker.attempt().fail(AWAY)
    assert waits(breaker, clock, 6) == [10, 20, 40, 80, 10 * LONGEST_WAITS, 10 * LONGEST_WAITS]


def test_a_service_that_came_back_is_given_the_short_wait_again() -> None:
    clock = [0.0]
    breaker = CircuitBreaker(retry_after=10, clock=lambda: clock[0])
    breaker.attempt().fail(AWAY)
    waits(breaker, clock, 3)
    clock[0] += 1000
    breaker.attempt().succeed()
    breaker.attempt().fail(AWAY)
    assert waits(breaker, clock, 1) == [10]
