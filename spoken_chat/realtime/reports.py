"""`turn.timeline` after each turn, and `turn.progress` while one runs: figures that others computed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from spoken_chat.realtime import events
from spoken_chat.realtime.events import Emit
from spoken_chat.session import ChatSession
from spoken_chat.timeline import figure_text
from spoken_chat.turn import Turn

PLAYED_WITHIN_S: Final = 1.0
"""How long the timeline of a turn that ended waits for the listener's side to say when it was heard."""

PROGRESS_EVERY_S: Final = 0.05


@dataclass
class _Report:
    """How far the reporting of one turn is."""

    turn: Turn
    sounded: bool = False
    ended: bool = False
    being_stopped: bool = False
    due: asyncio.TimerHandle | asyncio.Handle | None = None


class Reports:
    """Of one connection. `progress`: whether the client wants to know while a turn runs, and of later changes."""

    def __init__(self, session: ChatSession, emit: Emit, *, progress: bool) -> None:
        self.listens = progress
        """Whether the client says when a reply was heard; one that did once does so again."""
        self._session = session
        self._emit = emit
        self._progress = progress
        self._loop = asyncio.get_running_loop()
        self._open: dict[str, _Report] = {}
        self._progress_due: asyncio.TimerHandle | None = None
        self._progress_at = 0.0
        self._changed: Turn | None = None

    def begin(self, turn: Turn) -> None:
        """A turn runs."""
        self._open[turn.id] = _Report(turn)
        self.touch(turn)

    def sounded(self, turn: Turn) -> None:
        """Some of its sound was sent, which the listener's side may report on."""
        if turn.id in self._open:
            self._open[turn.id].sounded = True

    def touch(self, turn: Turn) -> None:
        """Something happened in a turn: a mark or a figure may be new."""
        if not self._progress:
            return
        self._changed = turn
        if self._progress_due is None:
            wait = max(0.0, self._progress_at + PROGRESS_EVERY_S - self._loop.time())
            self._progress_due = self._loop.call_later(wait, self._send_progress)

    def being_stopped(self, turn: Turn) -> None:
        """Its reply is stopped; `updated` follows, and only then it is known whether the turn stays one."""
        if turn.id in self._open:
            self._open[turn.id].being_stopped = not self._open[turn.id].ended

    def end(self, turn: Turn) -> None:
        """The turn is over."""
        report = self._open.get(turn.id)
        if report is not None:
            report.ended = True
            if not report.being_stopped:
                self._plan(report)

    def void(self, turn: Turn) -> None:
        """It is no turn after all."""
        report = self._open.pop(turn.id, None)
        if report is not None and report.due is not None:
            report.due.cancel()

    def updated(self, turn: Turn) -> None:
        """Its figures changed after the fact."""
        report = self._open.get(turn.id)
        if report is None or not report.ended:
            self.touch(turn)
            return
        report.being_stopped = False
        self._plan(report)

    def close(self) -> None:
        """Nothing more is sent."""
        for report in self._open.values():
            if report.due is not None:
                report.due.cancel()
        self._open.clear()
        if self._progress_due is not None:
            self._progress_due.cancel()

    def _plan(self, report: _Report) -> None:
        """Send the timeline when the listener's side has said what it heard.

        Not at once: whoever ended the turn may still have to set a mark, or to take it back.
        """
        known = "browser_play" in report.turn.timeline.marks
        if report.due is not None:
            report.due.cancel()
        if known or not report.sounded or not self.listens:
            report.due = self._loop.call_soon(self._send, report)
        else:
            report.due = self._loop.call_later(PLAYED_WITHIN_S, self._send, report)

    def _send(self, report: _Report) -> None:
        self._open.pop(report.turn.id, None)
        if any(turn is report.turn for turn in self._session.turns):
            self._emit(events.turn_timeline(report.turn.record(), figures_of(report.turn)))

    def _send_progress(self) -> None:
        self._progress_due = None
        self._progress_at = self._loop.time()
        turn, self._changed = self._changed, None
        if turn is not None and any(one is turn for one in self._session.turns):
            self._emit(events.turn_progress(turn.record(), figures_of(turn)))


def figures_of(turn: Turn) -> dict[str, str]:
    """Each metric of `turn` as the text that is shown."""
    return {name: figure_text(name, value) for name, value in turn.metrics.as_dict().items()}
