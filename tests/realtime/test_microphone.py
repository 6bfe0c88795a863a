"""A client's sound: its bounds and its positions."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from spoken_chat.audio import FloatPcm
from spoken_chat.realtime.faults import BadEvent
from spoken_chat.realtime.microphone import Microphone
from spoken_chat.settings import load
from spoken_chat.talk.options import Detection, TalkOptions
from tests.support.realtime import encoded, tone


@dataclass
class Listening:
    """Stands for a talk, and keeps what it hears."""

    options: TalkOptions
    heard: list[FloatPcm] = field(default_factory=list)

    async def hear(self, pcm: FloatPcm) -> None:
        self.heard.append(pcm)


@dataclass
class Bench:
    """A microphone on a clock that is set by hand."""

    microphone: Microphone
    talk: Listening
    now: list[float]

    async def send(self, seconds: float) -> str | None:
        """Send so much sound; the code of the error that makes, if any."""
        try:
            await self.microphone.hear(encoded(tone(seconds)))
        except BadEvent as error:
            return error.code
        return None

    @property
    def heard(self) -> float:
        return sum(len(piece) for piece in self.talk.heard) / 16_000


def bench(detection: Detection = "adaptive", before: float = 0.0, **settings: object) -> Bench:
    talk, now = Listening(TalkOptions(detection=detection)), [0.0]
    microphone = Microphone(talk, load(**settings), before, clock=lambda: now[0])  # type: ignore[arg-type]
    return Bench(microphone, talk, now)


async def test_sound_reaches_the_talk_at_its_rate_in_small_pieces() -> None:
    one = bench()
    await one.send(1.0)
    assert one.heard == pytest.approx(1.0, abs=0.002)
    assert max(len(piece) for piece in one.talk.heard) == 1600
    assert np.concatenate(one.talk.heard)[200] == pytest.approx(0.9, abs=0.001)


async def test_sound_in_time_is_taken_for_minutes() -> None:
    one = bench()
    for _ in range(300):
        one.now[0] += 1.0
        assert await one.send(1.0) is None


async def test_a_burst_is_taken_and_what_goes_beyond_it_is_dropped_with_one_error() -> None:
    one = bench()
    told = [await one.send(10.0) for _ in range(5)]
    assert told == [None, None, None, "audio_too_fast", None]
    assert one.heard == pytest.approx(30.0, abs=0.01)


async def test_after_a_burst_sound_is_taken_again_once_time_has_caught_up() -> None:
    one = bench()
    for _ in range(4):
        await one.send(10.0)
    one.now[0] += 4.0
    assert await one.send(0.1) is None and one.heard == pytest.approx(30.0, abs=0.01)
    one.now[0] += 1.5
    assert await one.send(0.1) is None and one.heard == pytest.approx(30.1, abs=0.01)
    assert [await one.send(10.0), await one.send(10.0)] == ["audio_too_fast", None], "another burst is told anew"


async def test_a_long_silence_on_the_wire_allows_no_longer_burst() -> None:
    one = bench()
    one.now[0] += 3600
    assert [await one.send(15.0) for _ in range(3)] == [None, None, "audio_too_fast"]


async def test_by_hand_speed_does_not_matter_but_the_length_between_commits_does() -> None:
    one = bench("manual", audio_max_seconds=40)
    told = [await one.send(10.0) for _ in range(6)]
    assert told == [None, None, None, None, "input_audio_buffer_full", None]
    one.microphone.begin_again()
    assert await one.send(10.0) is None and one.heard == pytest.approx(50.0, abs=0.01)


async def test_positions_are_in_the_sound_of_this_connection_dropped_sound_included() -> None:
    one = bench(before=100.0)
    assert one.microphone.milliseconds(100.25) == 250
    assert one.microphone.milliseconds(99.9) == 0
    for _ in range(4):
        await one.send(10.0)
    assert one.microphone.milliseconds(130.0) == 40_000
