"""How much of a reply was heard."""

import pytest

from spoken_chat.talk.playhead import Playhead


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def head(time: Time) -> Playhead:
    head = Playhead(time)
    head.begin()
    return head


def test_before_any_sound_nothing_is_audible_or_heard(head: Playhead) -> None:
    assert (head.audible, head.heard, head.left) == (False, 0.0, 0.0)
    assert head.silent_for == float("inf")


def test_sound_sent_ahead_of_time_is_heard_in_real_time(head: Playhead, time: Time) -> None:
    head.queue(2.0)
    head.queue(3.0)
    time.now += 1.5
    assert head.audible and head.heard == pytest.approx(1.5) and head.left == pytest.approx(3.5)
    time.now += 10
    assert not head.audible and head.heard == pytest.approx(5.0)
    assert head.silent_for == pytest.approx(6.5)


def test_a_gap_in_the_sound_is_not_heard(head: Playhead, time: Time) -> None:
    head.queue(1.0)
    time.now += 3.0
    head.queue(1.0)
    time.now += 0.5
    assert head.heard == pytest.approx(1.5)


def test_a_listener_who_began_later_has_heard_less(head: Playhead, time: Time) -> None:
    head.queue(2.0)
    time.now += 0.2
    head.started(100.2)
    time.now += 0.5
    assert head.heard == pytest.approx(0.5) and head.audible_for == pytest.approx(0.5)


def test_what_was_flushed_was_never_heard(head: Playhead, time: Time) -> None:
    head.queue(2.0)
    time.now += 0.5
    head.flush()
    time.now += 5
    assert head.heard == pytest.approx(0.5) and not head.audible
    head.begin()
    assert head.heard == 0
