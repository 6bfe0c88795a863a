from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.audio.endpointing import (
    CHUNK_S,
    Ended,
    Endpointer,
    EndpointRule,
    FalseOnset,
    Onset,
    Paused,
    Resumed,
    SpeechEvent,
    Started,
)
from spoken_chat.audio.vad import CHUNK, VoiceDetector, speech_spans
from tests.support import speech

TALK = 0.9
QUIET = 0.02
BETWEEN = 0.4

PAUSE = 7
"""Chunks of silence that make the pause of 0.2 s."""
WAIT = 19
"""Chunks of silence that make the wait of 0.6 s."""


def at(chunk: int) -> float:
    return pytest.approx(chunk * CHUNK_S)


def hear(endpointer: Endpointer, *pattern: tuple[float, int]) -> list[SpeechEvent]:
    """Feed each probability so many times."""
    return [event for probability, times in pattern for _ in range(times) for event in endpointer.feed(probability)]


def kinds(events: Iterable[SpeechEvent]) -> list[type[SpeechEvent]]:
    return [type(event) for event in events]


def test_an_utterance_begins_pauses_and_ends():
    events = hear(Endpointer(), (QUIET, 10), (TALK, 30), (QUIET, WAIT))
    assert events == [Onset(at(10)), Started(at(10)), Paused(at(40)), Ended(at(10), at(40), at(40 + WAIT))]


def test_each_event_comes_with_the_chunk_that_makes_it_sure():
    endpointer = Endpointer()
    fed = [kinds(endpointer.feed(probability)) for probability in [TALK] * 4 + [QUIET] * 20]
    when = {kind: index + 1 for index, found in enumerate(fed) for kind in found}
    assert when == {Onset: 2, Started: 3, Paused: 4 + PAUSE, Ended: 4 + WAIT}


def test_it_tells_whether_somebody_speaks_and_for_how_long():
    endpointer = Endpointer()
    hear(endpointer, (QUIET, 3), (TALK, 2))
    assert (endpointer.speaking, endpointer.voiced) == (False, True)
    assert endpointer.speech_s == at(2)
    hear(endpointer, (TALK, 8))
    assert (endpointer.speaking, endpointer.voiced, endpointer.silence_s) == (True, True, 0)
    hear(endpointer, (QUIET, 5))
    assert (endpointer.speaking, endpointer.voiced) == (True, False)
    assert endpointer.silence_s == at(5)
    hear(endpointer, (TALK, 4))
    assert endpointer.speech_s == at(14), "pauses do not count"
    hear(endpointer, (QUIET, WAIT))
    assert (endpointer.speaking, endpointer.speech_s) == (False, 0)
    assert endpointer.position == at(3 + 10 + 5 + 4 + WAIT)


@pytest.mark.parametrize("milliseconds", [100, 150, 200, 300, 400, 500])
def test_a_pause_shorter_than_the_wait_is_part_of_the_utterance(milliseconds):
    pause = round(milliseconds / 1000 / CHUNK_S)
    events = hear(Endpointer(), (TALK, 20), (QUIET, pause), (TALK, 20), (QUIET, WAIT))
    resumed = [Paused(at(20)), Resumed(at(20 + pause))] if pause >= PAUSE else []
    end = 40 + pause
    assert events == [Onset(0), Started(0), *resumed, Paused(at(end)), Ended(0, at(end), at(end + WAIT))]


@pytest.mark.parametrize("milliseconds", [700, 1000, 1500, 2000])
def test_a_pause_longer_than_the_wait_parts_two_utterances(milliseconds):
    pause = round(milliseconds / 1000 / CHUNK_S)
    events = hear(Endpointer(), (TALK, 20), (QUIET, pause), (TALK, 20), (QUIET, WAIT))
    assert kinds(events) == [Onset, Started, Paused, Ended] * 2
    assert [event for event in events if isinstance(event, Ended)] == [
        Ended(0, at(20), at(20 + WAIT)),
        Ended(at(20 + pause), at(40 + pause), at(40 + pause + WAIT)),
    ]


def test_between_the_bounds_speech_stays_speech_and_silence_silence():
    assert hear(Endpointer(), (BETWEEN, 50)) == []
    events = hear(Endpointer(), (TALK, 5), (BETWEEN, 30), (QUIET, 1), (BETWEEN, 30))
    assert events[-1] == Ended(0, at(35), at(35 + WAIT))


def test_a_click_is_told_to_nobody():
    assert hear(Endpointer(), (QUIET, 5), (TALK, 1), (QUIET, 50)) == []


def test_a_cough_too_short_for_speech_is_taken_back():
    events = hear(Endpointer(), (QUIET, 5), (TALK, 2), (QUIET, 50))
    assert events == [Onset(at(5)), FalseOnset(at(5))]


def test_clicks_one_after_another_never_add_up_to_speech():
    assert hear(Endpointer(), *[(TALK, 1), (QUIET, 4)] * 50) == []


def test_a_gap_within_the_first_word_does_not_undo_it():
    events = hear(Endpointer(), (QUIET, 5), (TALK, 2), (QUIET, 2), (TALK, 1))
    assert events == [Onset(at(5)), Started(at(5))]


def test_a_click_in_a_pause_does_not_take_the_work_back():
    events = hear(Endpointer(), (TALK, 10), (QUIET, 10), (TALK, 1), (QUIET, WAIT - 11))
    assert events == [Onset(0), Started(0), Paused(at(10)), Ended(0, at(10), at(10 + WAIT))]


def test_a_click_in_a_pause_counts_neither_as_speech_nor_against_the_silence():
    endpointer = Endpointer()
    hear(endpointer, (TALK, 10), (QUIET, 10), (TALK, 1))
    assert (endpointer.voiced, endpointer.silence_s, endpointer.speech_s) == (True, at(11), at(10))
    hear(endpointer, (TALK, 1))
    assert (endpointer.silence_s, endpointer.speech_s) == (0, at(12)), "it was speech after all"


def test_before_work_began_one_chunk_of_speech_ends_the_pause():
    events = hear(Endpointer(), (TALK, 10), (QUIET, PAUSE - 1), (TALK, 1), (QUIET, PAUSE - 1))
    assert kinds(events) == [Onset, Started]


def test_speech_that_may_begin_as_the_wait_runs_out_is_waited_for():
    endpointer = Endpointer()
    hear(endpointer, (TALK, 10), (QUIET, WAIT - 1))
    assert endpointer.feed(TALK) == []
    assert endpointer.feed(TALK) == [Resumed(at(10 + WAIT - 1))]


def test_a_click_as_the_wait_runs_out_delays_the_end_by_one_chunk():
    endpointer = Endpointer()
    hear(endpointer, (TALK, 10), (QUIET, WAIT - 1))
    assert endpointer.feed(TALK) == []
    assert endpointer.feed(QUIET) == [Ended(0, at(10), at(10 + WAIT + 1))]


def test_clicks_without_end_do_not_keep_an_utterance_open():
    events = hear(Endpointer(), (TALK, 10), (QUIET, 10), *[(TALK, 1), (QUIET, 1)] * 5)
    assert events[-1] == Ended(0, at(10), at(10 + 20))


def test_a_longer_wait_told_in_a_pause_holds_at_once():
    endpointer = Endpointer()
    hear(endpointer, (TALK, 10), (QUIET, WAIT - 1))
    endpointer.wait_s = 1.5
    assert hear(endpointer, (QUIET, 28)) == []
    assert hear(endpointer, (QUIET, 1)) == [Ended(0, at(10), at(10 + 47))]


def test_a_shorter_wait_told_in_a_pause_ends_the_utterance_with_the_next_chunk():
    endpointer = Endpointer(wait_s=1.5)
    hear(endpointer, (TALK, 10), (QUIET, 25))
    endpointer.wait_s = 0.4
    assert endpointer.feed(QUIET) == [Ended(0, at(10), at(36))]


@pytest.mark.parametrize("wait_s", [0.0, 0.1, 0.2])
def test_a_wait_no_longer_than_the_pause_still_gives_paused_first(wait_s):
    endpointer = Endpointer(wait_s=wait_s)
    events = hear(endpointer, (TALK, 10), (QUIET, 10))
    assert kinds(events) == [Onset, Started, Paused, Ended]
    assert events[-1].position - events[-1].speech_end == at(max(1, int(np.ceil(wait_s / CHUNK_S))))


def test_a_wait_shortened_below_the_pause_before_it_is_reached_gives_both_at_once():
    endpointer = Endpointer()
    hear(endpointer, (TALK, 10), (QUIET, PAUSE - 2))
    endpointer.wait_s = 0.05
    assert kinds(endpointer.feed(QUIET)) == [Paused, Ended]


def test_speech_without_a_pause_is_cut_at_the_maximum_and_goes_on_as_another_utterance():
    endpointer = Endpointer(EndpointRule(maximum_s=10 * CHUNK_S))
    events = hear(endpointer, (QUIET, 5), (TALK, 4), (BETWEEN, 21))
    assert events == [
        *(Onset(at(5)), Started(at(5)), Ended(at(5), at(15), at(15))),
        *(Onset(at(15)), Started(at(15)), Ended(at(15), at(25), at(25))),
        *(Onset(at(25)), Started(at(25))),
    ]


def test_ten_minutes_without_a_pause_are_ten_utterances_of_a_minute():
    events = hear(Endpointer(), (TALK, round(600 / CHUNK_S) + 1))
    ends = [event for event in events if isinstance(event, Ended)]
    assert len(ends) == 10
    assert all(end.speech_end - end.speech_start == at(1875) for end in ends)


def test_at_the_maximum_within_a_pause_the_speech_end_is_the_true_one():
    endpointer = Endpointer(EndpointRule(maximum_s=20 * CHUNK_S), wait_s=10)
    events = hear(endpointer, (TALK, 10), (QUIET, 10))
    assert events[-1] == Ended(0, at(10), at(20))


def test_a_higher_threshold_while_a_reply_plays_holds_from_the_next_chunk():
    endpointer = Endpointer()
    endpointer.rule = replace(endpointer.rule, start=0.7)
    assert hear(endpointer, (0.6, 20)) == []
    endpointer.rule = replace(endpointer.rule, start=0.5)
    assert kinds(hear(endpointer, (0.6, 3))) == [Onset, Started]


def test_a_threshold_below_the_lower_bound_is_both():
    events = hear(Endpointer(EndpointRule(start=0.2)), (0.25, 10), (0.19, WAIT))
    assert kinds(events) == [Onset, Started, Paused, Ended]


def test_a_minimum_shorter_than_the_onset_gives_both_together():
    endpointer = Endpointer(EndpointRule(minimum_s=0.03))
    assert endpointer.feed(TALK) == [Onset(0), Started(0)]


def test_a_chunk_without_a_number_is_silence():
    assert hear(Endpointer(), (float("nan"), 10)) == []


def test_after_a_reset_nothing_is_left_but_the_position():
    endpointer = Endpointer()
    hear(endpointer, (TALK, 5), (QUIET, 10), (TALK, 1))
    endpointer.reset()
    assert (endpointer.speaking, endpointer.voiced, endpointer.speech_s, endpointer.silence_s) == (False, False, 0, 0)
    assert hear(endpointer, (BETWEEN, 5), (QUIET, 50)) == []
    assert hear(endpointer, (TALK, 3)) == [Onset(at(71)), Started(at(71))]


def test_ended_by_hand_in_a_pause_the_speech_end_is_the_true_one():
    endpointer = Endpointer()
    hear(endpointer, (QUIET, 2), (TALK, 10), (QUIET, 9))
    assert endpointer.end_now() == Ended(at(2), at(12), at(21))
    assert endpointer.end_now() is None
    assert hear(endpointer, (QUIET, 50)) == []


def test_ended_by_hand_while_speaking_the_rest_is_another_utterance():
    endpointer = Endpointer()
    hear(endpointer, (TALK, 10))
    assert endpointer.end_now() == Ended(0, at(10), at(10))
    assert hear(endpointer, (BETWEEN, 5)) == [Onset(at(10)), Started(at(10))]


def test_there_is_nothing_to_end_by_hand_before_speech_began():
    endpointer = Endpointer()
    hear(endpointer, (TALK, 2))
    assert endpointer.end_now() is None
    assert hear(endpointer, (TALK, 1)) == [Started(0)], "and it changed nothing"


def test_an_hour_of_silence_gives_no_event_and_takes_no_memory():
    endpointer = Endpointer()
    hour = round(3600 / CHUNK_S)
    hear(endpointer, (QUIET, 100))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        assert sum(len(endpointer.feed(QUIET)) for _ in range(hour)) == 0
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 4096
    assert hear(endpointer, (TALK, 3)) == [Onset(at(hour + 100)), Started(at(hour + 100))]


NEXT: dict[type[SpeechEvent] | None, set[type[SpeechEvent]]] = {
    None: {Onset},
    Onset: {FalseOnset, Started},
    FalseOnset: {Onset},
    Started: {Paused, Ended},
    Paused: {Resumed, Ended},
    Resumed: {Paused, Ended},
    Ended: {Onset},
}
PROBABILITIES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.2, 0.34, 0.35, 0.45, 0.5, 0.51, 0.69, 0.7, 1.0]), st.integers(1, 30)), max_size=40
)
WAITS = st.floats(0, 2)
RULES = st.builds(
    EndpointRule,
    start=st.sampled_from([0.3, 0.5, 0.7]),
    onset_s=st.floats(0, 0.2),
    minimum_s=st.floats(0, 0.2),
    pause_s=st.floats(0, 0.5),
    maximum_s=st.floats(0.5, 5),
)


@settings(deadline=None)
@given(st.lists(st.tuples(PROBABILITIES, WAITS, RULES, st.sampled_from(["go on", "reset", "end"])), max_size=4))
def test_whatever_comes_events_are_in_legal_order_and_each_utterance_ends_once(parts):
    endpointer = Endpointer()
    last: type[SpeechEvent] | None = None
    for pattern, wait_s, rule, then in parts:
        endpointer.wait_s, endpointer.rule = wait_s, rule
        for probability in itertools.chain.from_iterable([one] * times for one, times in pattern):
            for event in endpointer.feed(probability):
                assert type(event) in NEXT[last]
                last = type(event)
            assert endpointer.speaking == (last in (Started, Paused, Resumed))
        if then == "reset":
            endpointer.reset()
            last = None
        elif then == "end" and (ended := endpointer.end_now()):
            assert type(ended) in NEXT[last]
            last = Ended
    closing = hear(endpointer, (0.0, 200))
    assert kinds(closing).count(Ended) == int(last in (Started, Paused, Resumed))
    assert not endpointer.speaking


@settings(deadline=None)
@given(PROBABILITIES, WAITS, RULES)
def test_whatever_comes_positions_are_in_order_and_within_the_stream(pattern, wait_s, rule):
    endpointer = Endpointer(rule, wait_s)
    previous_end = 0.0
    for probability in itertools.chain.from_iterable([one] * times for one, times in pattern):
        for event in endpointer.feed(probability):
            if isinstance(event, Ended):
                assert previous_end <= event.speech_start < event.speech_end <= event.position == endpointer.position
                cut = event.position - event.speech_start >= rule.maximum_s - 1e-6
                assert cut or event.position - event.speech_end >= wait_s - 1e-6
                previous_end = event.speech_end
            elif isinstance(event, Paused):
                assert event.speech_end < endpointer.position
            else:
                assert previous_end <= event.position < endpointer.position


@settings(deadline=None)
@given(PROBABILITIES, WAITS, RULES)
def test_the_same_probabilities_give_the_same_events(pattern, wait_s, rule):
    assert hear(Endpointer(rule, wait_s), *pattern) == hear(Endpointer(rule, wait_s), *pattern)


def listen(audio: FloatPcm, wait_s: float) -> list[SpeechEvent]:
    """The events of 16 kHz `audio` and 3 s of silence behind it."""
    padded = np.pad(audio, (0, -len(audio) % CHUNK + 94 * CHUNK))
    endpointer = Endpointer(wait_s=wait_s)
    return [event for one in VoiceDetector().probabilities(padded) for event in endpointer.feed(float(one))]


@pytest.mark.engines
def test_real_speech_is_one_utterance_that_ends_where_the_speech_does():
    for sample in speech.samples():
        events = listen(sample.audio, wait_s=2.0)
        assert kinds(events).count(Started) == kinds(events).count(Ended) == 1, sample.name
        ended = events[-1]
        assert isinstance(ended, Ended)
        spans = speech_spans(np.pad(sample.audio, (0, 3 * ASR_RATE)))
        assert ended.speech_start == pytest.approx(spans[0][0], abs=0.1), sample.name
        assert ended.speech_end == pytest.approx(spans[-1][1], abs=0.1), sample.name
        assert ended.position - ended.speech_end == pytest.approx(2.0, abs=CHUNK_S), sample.name


@pytest.mark.engines
@pytest.mark.parametrize("language", ["en", "zh"])
def test_two_real_utterances_with_a_second_and_a_half_between_them_are_two_turns(language):
    audio = speech.spoken(language).audio
    spans = speech_spans(audio)
    spoken = audio[round(spans[0][0] * ASR_RATE) : round(spans[-1][1] * ASR_RATE)]
    silence = np.zeros(round(1.5 * ASR_RATE), np.float32)
    events = listen(np.concatenate([silence, spoken, silence, spoken]), wait_s=1.2)
    assert kinds(events).count(Started) == kinds(events).count(Ended) == 2
