from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spoken_chat.audio import FloatPcm
from spoken_chat.audio.history import AudioHistory


def counting(start: int, end: int) -> FloatPcm:
    """Samples whose values are their places."""
    return np.arange(start, end, dtype=np.float32)


def filled(*sizes: int) -> AudioHistory:
    history = AudioHistory()
    for size in sizes:
        history.append(counting(history.position, history.position + size))
    return history


def test_sound_is_found_by_its_place_in_the_stream():
    history = filled(300, 0, 512, 7)
    assert history.position == 819
    np.testing.assert_array_equal(history.slice(299, 301), [299, 300])
    np.testing.assert_array_equal(history.slice(0, 819), counting(0, 819))


def test_a_slice_is_clipped_to_what_is_kept():
    history = filled(100)
    history.trim(40)
    np.testing.assert_array_equal(history.slice(-5, 1000), counting(40, 100))
    assert history.slice(0, 40).shape == (0,)
    assert history.slice(100, 200).shape == (0,)
    assert history.slice(70, 60).shape == (0,)


def test_places_stay_the_same_after_a_trim():
    history = filled(100)
    history.trim(60)
    history.append(counting(100, 150))
    assert (history.kept_from, history.position) == (60, 150)
    np.testing.assert_array_equal(history.slice(95, 105), counting(95, 105))


def test_trimming_what_is_gone_already_changes_nothing():
    history = filled(100)
    history.trim(60)
    history.trim(30)
    history.trim(-1)
    assert history.kept_from == 60


def test_trimming_beyond_the_end_keeps_what_comes_later():
    history = filled(100)
    history.trim(10_000)
    history.append(counting(100, 110))
    np.testing.assert_array_equal(history.slice(0, 200), counting(100, 110))


def test_slices_and_sound_fed_are_copies():
    history = AudioHistory()
    samples = np.ones(4, np.float32)
    history.append(samples)
    samples[:] = 2
    history.slice(0, 4)[:] = 3
    np.testing.assert_array_equal(history.slice(0, 4), np.ones(4))


def test_what_is_not_mono_is_refused_and_changes_nothing():
    history = filled(10)
    with pytest.raises(ValueError, match="broadcast"):
        history.append(np.zeros((4, 2), np.float32))
    assert history.position == 10


def test_memory_stays_small_through_an_hour_and_is_given_back_after_a_long_utterance():
    second = np.zeros(16_000, np.float32)
    history = AudioHistory()
    tracemalloc.start()
    try:
        for _ in range(120):  # two minutes that nobody trims
            history.append(second)
        for _ in range(3600):
            history.trim(history.position - len(second))
            history.append(second)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 8 * second.nbytes


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 40_000)), st.tuples(st.just("trim"), st.integers(-10, 90_000))
        ),
        max_size=12,
    ),
    st.integers(-10, 90_000),
    st.integers(-10, 90_000),
)
def test_whatever_was_appended_and_trimmed_a_slice_holds_the_samples_of_its_places(steps, start, end):
    history = AudioHistory()
    oldest = 0
    for step, amount in steps:
        if step == "append":
            history.append(counting(history.position, history.position + amount))
        else:
            history.trim(amount)
            oldest = max(oldest, min(amount, history.position))
    assert history.kept_from == oldest
    np.testing.assert_array_equal(
        history.slice(start, end), counting(max(start, oldest), max(max(start, oldest), min(end, history.position)))
    )
