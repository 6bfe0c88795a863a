"""Silence goes from both ends of a stream of sound, and nothing else does."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spoken_chat.audio import TTS_RATE, Pcm16
from spoken_chat.audio.silence import FRAME_SECONDS, LEAD_SECONDS, TAIL_SECONDS, SilenceTrimmer

FRAME = round(TTS_RATE * FRAME_SECONDS)
LEAD = round(TTS_RATE * LEAD_SECONDS)
TAIL = round(TTS_RATE * TAIL_SECONDS)


def tone(seconds: float, amplitude: int = 8000) -> Pcm16:
    """A 440 Hz tone."""
    time = np.arange(round(TTS_RATE * seconds)) / TTS_RATE
    return (amplitude * np.sin(2 * np.pi * 440 * time)).astype(np.int16)


def silence(seconds: float) -> Pcm16:
    """Digital silence."""
    return np.zeros(round(TTS_RATE * seconds), dtype=np.int16)


def trim(pcm: Pcm16, *cuts: int) -> Pcm16:
    """`pcm` fed in pieces that end at `cuts`."""
    trimmer = SilenceTrimmer(TTS_RATE)
    pieces = np.split(pcm, sorted(cuts))
    return np.concatenate([*(trimmer.feed(piece) for piece in pieces), trimmer.finish()])


def test_leading_silence_goes_but_for_a_margin() -> None:
    sound = tone(0.2)
    assert np.array_equal(trim(np.concatenate([silence(0.5), sound])), np.concatenate([silence(LEAD_SECONDS), sound]))


def test_trailing_silence_goes_but_for_a_margin() -> None:
    sound = tone(0.2)
    assert np.array_equal(trim(np.concatenate([sound, silence(0.9)])), np.concatenate([sound, silence(TAIL_SECONDS)]))


def test_less_silence_than_the_margins_is_kept_as_it_is() -> None:
    pcm = np.concatenate([silence(0.01), tone(0.2), silence(0.03)])
    assert np.array_equal(trim(pcm), pcm)


def test_a_pause_between_sounds_survives_whole() -> None:
    pcm = np.concatenate([tone(0.1), silence(0.7), tone(0.1)])
    assert np.array_equal(trim(pcm), pcm)


def test_silence_alone_gives_nothing() -> None:
    assert len(trim(silence(1.0))) == 0
    assert len(trim(silence(0.0))) == 0


def test_faint_noise_counts_as_silence_and_a_quiet_consonant_as_sound() -> None:
    random = np.random.default_rng(1)
    noise = random.normal(0, 15, TTS_RATE // 2).astype(np.int16)
    consonant = random.normal(0, 120, TTS_RATE // 20).astype(np.int16)
    assert len(trim(noise)) == 0
    spoken = trim(np.concatenate([silence(0.5), consonant, tone(0.2)]))
    assert np.array_equal(spoken[LEAD:], np.concatenate([consonant, tone(0.2)]))


def test_an_onset_too_quiet_to_count_stays_within_the_margin() -> None:
    onset = np.full(LEAD, 20, dtype=np.int16)
    assert np.array_equal(trim(np.concatenate([silence(0.5), onset, tone(0.1)]))[:LEAD], onset)


def test_sound_shorter_than_a_frame_is_not_lost_at_the_end() -> None:
    pcm = tone(0.1)[: 2 * FRAME + 7]
    assert np.array_equal(trim(pcm), pcm)


def test_sound_comes_out_as_soon_as_its_frame_is_whole() -> None:
    trimmer = SilenceTrimmer(TTS_RATE)
    sound = tone(0.1)
    assert np.array_equal(trimmer.feed(sound[: 3 * FRAME + 5]), sound[: 3 * FRAME])


def test_silence_is_held_back_until_sound_follows() -> None:
    trimmer = SilenceTrimmer(TTS_RATE)
    trimmer.feed(tone(0.1))
    assert len(trimmer.feed(silence(0.5))) == TAIL
    assert len(trimmer.feed(tone(0.1))) == len(silence(0.5)) - TAIL + len(tone(0.1))


def test_the_buffer_given_may_be_reused_by_the_caller() -> None:
    trimmer = SilenceTrimmer(TTS_RATE)
    buffer = tone(0.1)[: FRAME + 9]
    first = trimmer.feed(buffer).copy()
    expected = buffer[FRAME:].copy()
    buffer[:] = 0
    assert len(first) == FRAME
    assert np.array_equal(trimmer.finish(), expected)


def test_a_finished_trimmer_takes_the_next_stream() -> None:
    trimmer = SilenceTrimmer(TTS_RATE)
    pcm = np.concatenate([silence(0.3), tone(0.1), silence(0.3)])
    first = np.concatenate([trimmer.feed(pcm), trimmer.finish()])
    second = np.concatenate([trimmer.feed(pcm), trimmer.finish()])
    assert np.array_equal(first, second)


segments = st.lists(st.tuples(st.integers(0, 3 * TAIL), st.sampled_from([0, 10, 300, 9000])), max_size=6)


@given(segments, st.data())
def test_any_chunking_gives_the_same_samples(parts: list[tuple[int, int]], data: st.DataObject) -> None:
    pcm = np.concatenate([np.zeros(0, np.int16), *(np.full(length, level, np.int16) for length, level in parts)])
    cuts = data.draw(st.lists(st.integers(0, len(pcm)), max_size=8))
    assert np.array_equal(trim(pcm, *cuts), trim(pcm))


@given(segments)
def test_what_comes_out_is_one_piece_of_what_went_in(parts: list[tuple[int, int]]) -> None:
    pcm = np.concatenate([np.zeros(0, np.int16), *(np.full(length, level, np.int16) for length, level in parts)])
    kept = trim(pcm)
    loud = np.flatnonzero(np.abs(pcm) >= 300)
    assert kept.tobytes() in pcm.tobytes()
    assert np.count_nonzero(np.abs(kept) >= 300) >= len(loud) - 2 * FRAME
