"""A recording counts from the moment it was handed in, and can be stopped before it has become a turn."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from spoken_chat.audio import FloatPcm
from spoken_chat.intake import read_speech
from spoken_chat.settings import Settings
from spoken_chat.ui import handlers as page_handlers
from tests.support.app import ScriptedEngines
from tests.support.visitor import Visitor
from tests.support.waiting import WAIT_S, until

pytestmark = pytest.mark.usefixtures("no_browser_to_wait_for")


@pytest.mark.parametrize("ending", ["restart", "close_page"])
async def test_what_is_stopped_while_it_is_being_read_never_becomes_a_turn(
    ending: str, visitor: Visitor, engines: ScriptedEngines, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slow(path: Path, settings: Settings) -> FloatPcm:
        reading.set()
        go_on.wait(WAIT_S)
        return read_speech(path, settings)

    monkeypatch.setattr(page_handlers, "read_speech", slow)
    session = visitor.session
    answering = asyncio.create_task(visitor.hand_in(recording))
    await until(reading.is_set)
    await getattr(visitor.handlers, ending)(visitor.request)
    go_on.set()
    updates = await answering
    assert session.turns == []
    assert engines.brain.requests == []
    assert not any("listening" in str(one) for one in updates[-1]["transcript"])


async def test_reading_a_recording_counts_from_the_moment_it_was_handed_in(
    visitor: Visitor, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(path: Path, settings: Settings) -> FloatPcm:
        time.sleep(0.2)
        return read_speech(path, settings)

    monkeypatch.setattr(page_handlers, "read_speech", slow)
    await visitor.hand_in(recording)
    (turn,) = visitor.session.turns
    assert turn.timeline.since_start()["asr_start"] >= 200
