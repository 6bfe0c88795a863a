"""Metrics are pure functions of marks; what was not measured is None."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoken_chat.timeline import (
    MARKS,
    METRIC_NAMES,
    Metrics,
    Timeline,
    figure_text,
    measure,
    medians,
    percentile,
    percentiles,
)

FULL = {
    "speech_start": 1.0,
    "speech_end": 2.0,
    "endpoint": 2.5,
    "asr_start": 2.2,
    "asr_done": 2.6,
    "request_sent": 2.61,
    "first_content": 2.66,
    "first_clause": 2.70,
    "tts_first_byte": 2.80,
    "first_audio_sent": 2.801,
    "browser_received": 2.815,
    "browser_play": 2.85,
    "last_content": 2.752,
    "stream_end": 2.76,
    "audio_done": 3.0,
}


def test_each_metric_is_the_span_the_design_defines() -> None:
    assert measure(FULL, prompt_tokens=1212, cached_tokens=1200, completion_tokens=24) == Metrics(
        endpoint_delay_ms=500.0,
        asr_ms=400.0,
        ttft_ms=50.0,
        ms_per_token=4.0,
        llm_turn_ms=150.0,
        first_clause_ms=40.0,
        tts_ms=100.0,
        first_audio_ms=301.0,
        wire_ms=14.0,
        playback_ms=35.0,
        v2v_ms=850.0,
        prompt_tokens=1212,
        cached_tokens=1200,
        completion_tokens=24,
    )


def test_v2v_is_the_sum_of_its_four_parts() -> None:
    metrics = measure(FULL)
    parts = (metrics.endpoint_delay_ms, metrics.first_audio_ms, metrics.wire_ms, metrics.playback_ms)
    assert sum(part for part in parts if part is not None) == metrics.v2v_ms


@pytest.mark.parametrize("tokens", [None, 0, 1])
def test_ms_per_token_is_blank_when_the_server_counted_no_second_token(tokens: int | None) -> None:
    assert measure(FULL, completion_tokens=tokens).ms_per_token is None


def test_ms_per_token_is_blank_when_one_chunk_held_the_whole_reply() -> None:
    assert measure({**FULL, "last_content": FULL["first_content"]}, completion_tokens=24).ms_per_token is None


def test_v2v_without_a_detected_speech_end_counts_from_the_endpoint() -> None:
    marks = {name: at for name, at in FULL.items() if not name.startswith("speech")}
    metrics = measure(marks)
    assert metrics.endpoint_delay_ms is None
    assert metrics.v2v_ms == 350.0


@given(st.dictionaries(st.sampled_from(MARKS), st.floats(0, 1e6)))
def test_contradicting_marks_give_blanks_and_never_a_negative_figure(marks: dict[str, float]) -> None:
    values = measure(marks, completion_tokens=5).as_dict()
    assert all(value is None or value >= 0 for value in values.values())


@given(st.sets(st.sampled_from(MARKS)))
def test_a_metric_is_blank_exactly_when_a_mark_of_it_is_missing(kept: set[str]) -> None:
    full = measure(FULL, completion_tokens=24).as_dict()
    needed = {
        "asr_ms": {"asr_start", "asr_done"},
        "ttft_ms": {"request_sent", "first_content"},
        "ms_per_token": {"first_content", "last_content"},
        "llm_turn_ms": {"request_sent", "stream_end"},
        "first_audio_ms": {"endpoint", "first_audio_sent"},
        "wire_ms": {"first_audio_sent", "browser_received"},
        "playback_ms": {"browser_received", "browser_play"},
        "tts_ms": {"first_clause", "tts_first_byte"},
    }
    some = measure({name: FULL[name] for name in kept}, completion_tokens=24).as_dict()
    for name, marks in needed.items():
        assert some[name] == (full[name] if marks <= kept else None)


def test_the_first_value_of_a_mark_stays_but_the_last_content_and_the_last_request_count() -> None:
    timeline = Timeline()
    for at in (1.0, 2.0, 3.0):
        for name in ("first_content", "last_content", "request_sent"):
            timeline.mark(name, at)
    assert dict(timeline.marks) == {"first_content": 1.0, "last_content": 3.0, "request_sent": 3.0}


def test_an_unknown_mark_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        Timeline().mark("first_contend", 1.0)


def test_marks_are_told_in_ms_after_the_first_one_and_in_their_own_order() -> None:
    timeline = Timeline()
    timeline.mark("first_content", 10.0505)
    timeline.mark("endpoint", 10.0)
    assert timeline.since_start() == {"endpoint": 0.0, "first_content": 50.5}
    assert list(timeline.since_start()) == ["endpoint", "first_content"]


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e5).map(lambda value: round(value, 1))), max_size=9))
def test_medians_rest_on_the_turns_that_have_the_figure_and_say_how_many(values: list[float | None]) -> None:
    middle, counts = medians([Metrics(ttft_ms=value) for value in values])
    known = [value for value in values if value is not None]
    assert counts["ttft_ms"] == len(known)
    assert middle.ttft_ms == (round(statistics.median(known), 1) if known else None)
    assert set(counts) == set(METRIC_NAMES)


@pytest.mark.parametrize(
    "values, share, expected",
    [
        ([], 0.95, None),
        ([7.0], 0.95, 7.0),
        ([1.0, 2.0, 3.0], 0.5, 2.0),
        ([0.0, 10.0], 0.95, 9.5),
        ([3.0, 1.0], 1.0, 3.0),
    ],
)
def test_a_percentile_lies_between_the_values_around_it(values: list[float], share: float, expected: float) -> None:
    found = percentile(values, share)
    assert found == (None if expected is None else pytest.approx(expected))


@given(st.lists(st.floats(0, 1e5), min_size=1), st.floats(0, 1), st.floats(0, 1))
def test_percentiles_grow_with_their_share_and_stay_within_the_values(values: list[float], a: float, b: float) -> None:
    low, high = percentile(values, min(a, b)), percentile(values, max(a, b))
    assert low is not None and high is not None
    assert min(values) - 1e-6 <= low <= high + 1e-6 <= max(values) + 2e-6


def test_percentiles_of_turns_leave_out_what_was_not_measured() -> None:
    turns = [Metrics(ttft_ms=10.0), Metrics(), Metrics(ttft_ms=20.0)]
    assert percentiles(turns, 0.95).ttft_ms == 19.5
    assert percentiles(turns, 0.95).v2v_ms is None


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("ttft_ms", 25.7, "25.7"),
        ("ttft_ms", 25.0, "25.0"),
        ("ttft_ms", 0.0, "0.0"),
        ("ttft_ms", 12345.6, "12345.6"),
        ("ms_per_token", 4.11, "4.11"),
        ("ms_per_token", 4.0, "4.00"),
        ("cached_tokens", 0, "0"),
        ("prompt_tokens", 1212, "1212"),
        ("ttft_ms", None, ""),
        ("ms_per_token", None, ""),
        ("completion_tokens", None, ""),
    ],
)
def test_a_figure_keeps_its_digits_as_text_and_is_blank_when_it_was_not_measured(
    name: str, value: float | None, text: str
) -> None:
    assert figure_text(name, value) == text
