"""How much of a reply its listener has heard, from what was sent to them and when.

Sound goes out ahead of time and plays in real time at the other end. Where that end says when it began to play, the
estimate starts there.
"""

from __future__ import annotations

from collections.abc import Callable


class Playhead:
    """The place in one reply's sound that is audible now. Times in seconds on `clock`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._queued = 0.0
        self._began: float | None = None
        self._ends = 0.0

    def begin(self) -> None:
        """Another reply comes: nothing of it was sent yet."""
        self._queued, self._began, self._ends = 0.0, None, self._clock()

    def queue(self, seconds: float) -> None:
        """That much more sound was sent."""
        now = self._clock()
        if self._began is None:
            self._began = now
        self._ends = max(now, self._ends) + seconds
        self._queued += seconds

    def started(self, at: float) -> None:
        """The first sample was audible at `at`: later than it was sent, and so is everything behind it."""
        if self._began is not None and at > self._began and self._ends > self._clock():
            self._ends += at - self._began
            self._began = at

    def flush(self) -> None:
        """What was sent and not heard yet never will be."""
        left = self.left
        self._queued -= left
        self._ends = self._clock()

    @property
    def left(self) -> float:
        """Seconds of sound that were sent and not heard yet."""
        return min(self._queued, max(0.0, self._ends - self._clock()))

    @property
    def heard(self) -> float:
        """Seconds of sound heard so far."""
        return self._queued - self.left

    @property
    def audible(self) -> bool:
        """Whether something plays now."""
        return self.left > 0

    @property
    def audible_for(self) -> float:
        """How long ago the reply was first audible; 0 when it was not yet."""
        return 0.0 if self._began is None else max(0.0, self._clock() - self._began)

    @property
    def silent_for(self) -> float:
        """How long ago the last sample was heard; 0 while some are left, and infinite before the first."""
        return float("inf") if self._began is None else max(0.0, self._clock() - self._ends)
