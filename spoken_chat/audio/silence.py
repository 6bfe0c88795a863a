"""Silence cut from both ends of a clause's sound while it streams, so that the reply starts at once and flows on."""

from __future__ import annotations

from typing import Final

import numpy as np

from spoken_chat.audio import Pcm16

FRAME_SECONDS: Final = 0.01
"""What is judged loud or silent as a whole; short enough that the onset of a consonant fills one."""

THRESHOLD_DBFS: Final = -55.0
"""RMS of a frame at or above which it counts as sound: above the noise floor of the voices, below a soft "f" or "h"."""

LEAD_SECONDS: Final = 0.02
TAIL_SECONDS: Final = 0.06


class SilenceTrimmer:
    """Drops the silence before the first sound and after the last one; inner pauses pass whole.

    A margin stays at either end, so that a consonant too quiet to count as sound is not clipped. Frames are counted
    from the start of the stream, so the samples that come out do not depend on how it was cut into chunks.
    """

    def __init__(
        self,
        rate: int,
        *,
        threshold_dbfs: float = THRESHOLD_DBFS,
        lead: float = LEAD_SECONDS,
        tail: float = TAIL_SECONDS,
    ) -> None:
        """`rate` is in samples per second; `lead` and `tail` are the margins kept, in seconds."""
        self._frame = max(1, round(rate * FRAME_SECONDS))
        self._lead = round(rate * lead)
        self._tail = round(rate * tail)
        self._least_square = (32768 * 10 ** (threshold_dbfs / 20)) ** 2
        self._partial: Pcm16 = _EMPTY
        self._before: Pcm16 = _EMPTY
        self._held: list[Pcm16] = []
        self._quiet = 0
        self._started = False

    def feed(self, pcm: Pcm16) -> Pcm16:
        """Take the next samples, shape (n,); return those now known to belong to the speech, shape (m,), m >= 0."""
        pending = np.concatenate([self._partial, pcm])
        whole = len(pending) // self._frame * self._frame
        self._partial = pending[whole:].copy()
        return self._judge(pending[:whole])

    def finish(self) -> Pcm16:
        """End the stream: return what is left of the speech and be ready for the next stream."""
        partial, self._partial = self._partial, _EMPTY
        loud = len(partial) > 0 and float(np.square(partial, dtype=np.float64).mean()) >= self._least_square
        rest = self._pass(partial, 0, len(partial)) if loud else self._hold(partial)
        self._reset()
        return rest

    def _reset(self) -> None:
        self._before = _EMPTY
        self._held = []
        self._quiet = 0
        self._started = False

    def _judge(self, frames: Pcm16) -> Pcm16:
        squares = np.square(frames.reshape(-1, self._frame), dtype=np.float64).mean(axis=1)
        loud = np.flatnonzero(squares >= self._least_square)
        if len(loud) == 0:
            return self._hold(frames)
        return self._pass(frames, int(loud[0]) * self._frame, (int(loud[-1]) + 1) * self._frame)

    def _pass(self, samples: Pcm16, first: int, last: int) -> Pcm16:
        """Let through what was held and `samples` up to `last`; the speech may start at `first`."""
        if self._started:
            head = [*self._held, samples[:last]]
        else:
            before = np.concatenate([self._before, samples[:first]])
            head = [before[max(0, len(before) - self._lead) :], samples[first:last]]
        self._started = True
        self._held = []
        self._quiet = 0
        return np.concatenate([*head, self._hold(samples[last:])])

    def _hold(self, silence: Pcm16) -> Pcm16:
        """Keep `silence` until sound follows, but for what falls into the tail margin and is due in any case."""
        if not self._started:
            before = np.concatenate([self._before, silence])
            self._before = before[max(0, len(before) - self._lead) :].copy()
            return _EMPTY
        due = max(0, self._tail - self._quiet)
        self._quiet += len(silence)
        if due < len(silence):
            self._held.append(silence[due:].copy())
        return silence[:due]


_EMPTY: Final[Pcm16] = np.zeros(0, dtype=np.int16)
_EMPTY.setflags(write=False)
