from __future__ import annotations

import io
import wave
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spoken_chat.audio import FloatPcm
from spoken_chat.audio.pcm import Resampler, downmix, from_pcm16, levelled, to_mono, to_pcm16, wav_bytes

RATES = [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000]


def tone(frequency: float, rate: int, seconds: float = 1.0, amplitude: float = 0.5) -> FloatPcm:
    return (amplitude * np.sin(2 * np.pi * frequency * np.arange(round(rate * seconds)) / rate)).astype(np.float32)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (np.array([-32768, 0, 16384], np.int16), [-1, 0, 0.5]),
        (np.array([-(2**31), 0, 2**30], np.int32), [-1, 0, 0.5]),
        (np.array([0, 128, 192], np.uint8), [-1, 0, 0.5]),
        (np.array([-1, 0, 0.5], np.float32), [-1, 0, 0.5]),
        (np.array([-1, 0, 0.5], np.float64), [-1, 0, 0.5]),
    ],
    ids=["int16", "int32", "uint8", "float32", "float64"],
)
def test_every_sample_type_becomes_float32_between_minus_one_and_one(samples, expected):
    mono = to_mono(samples, 16_000, 16_000)
    assert mono.dtype == np.float32
    np.testing.assert_allclose(mono, expected, atol=1e-7)


def test_nan_is_silence_and_infinity_and_overload_are_clipped():
    samples = np.array([np.nan, np.inf, -np.inf, 3.0, -3.0, 0.25])
    np.testing.assert_array_equal(to_mono(samples, 16_000, 16_000), np.array([0, 1, -1, 1, -1, 0.25], np.float32))


@pytest.mark.parametrize("samples", [np.zeros(4, np.complex64), np.zeros(4, np.int64), np.zeros((2, 2, 2), np.int16)])
def test_what_is_no_audio_array_is_refused(samples):
    with pytest.raises(ValueError, match="audio"):
        to_mono(samples, 16_000, 16_000)


def test_channels_are_averaged_whichever_axis_they_are_on():
    left, right = tone(440, 16_000), tone(1000, 16_000)
    stereo = np.stack([left, right], axis=1)
    np.testing.assert_allclose(to_mono(stereo, 16_000, 16_000), (left + right) / 2, atol=1e-6)
    np.testing.assert_allclose(to_mono(stereo.T, 16_000, 16_000), (left + right) / 2, atol=1e-6)


def test_a_short_stereo_piece_is_not_taken_for_many_channels():
    assert to_mono(np.zeros((3, 2), np.int16), 16_000, 16_000).shape == (3,)
    assert to_mono(np.zeros((1, 2), np.int16), 16_000, 16_000).shape == (1,)


def test_channels_in_opposite_phase_do_not_cancel_out():
    left = tone(440, 16_000)
    np.testing.assert_array_equal(downmix(np.stack([left, -left], axis=1)), left)


@pytest.mark.parametrize("rate", RATES)
def test_a_tone_survives_resampling_with_its_amplitude_and_place(rate):
    heard = to_mono(tone(1000, rate, 5.0), rate, 16_000)
    expected = tone(1000, 16_000, 5.0)
    assert len(heard) == len(expected)
    np.testing.assert_allclose(heard[400:-400], expected[400:-400], atol=1e-4)


def test_what_the_new_rate_cannot_hold_vanishes_instead_of_folding_back():
    heard = to_mono(tone(10_000, 48_000), 48_000, 16_000)
    assert np.abs(heard[400:-400]).max() < 1e-3


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("count", [0, 1, 2, 159, 16_001])
def test_the_length_follows_the_rates_exactly(rate, count):
    assert len(to_mono(np.zeros(count, np.int16), rate, 16_000)) == round(count * 16_000 / rate)


@given(
    rate_in=st.sampled_from(RATES),
    rate_out=st.sampled_from([16_000, 24_000]),
    length=st.integers(0, 6000),
    cuts=st.lists(st.integers(0, 6000), max_size=12),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_any_chunking_of_a_stream_gives_the_same_samples(rate_in, rate_out, length, cuts, seed):
    audio = np.random.default_rng(seed).uniform(-1, 1, length).astype(np.float32)
    whole = Resampler(rate_in, rate_out)
    expected = np.concatenate([whole.feed(audio), whole.finish()])
    stream = Resampler(rate_in, rate_out)
    edges = [0, *sorted(min(cut, length) for cut in cuts), length]
    pieces = [stream.feed(audio[start:end]) for start, end in pairwise(edges)]
    np.testing.assert_array_equal(np.concatenate([*pieces, stream.finish()]), expected)
    assert len(expected) == round(length * rate_out / rate_in)


def test_a_stream_gives_its_samples_as_they_come():
    stream = Resampler(48_000, 16_000)
    given_back = sum(len(stream.feed(tone(440, 48_000, 0.02))) for _ in range(50))
    assert given_back > 16_000 - 2 * 320


@pytest.mark.parametrize("rates", [(0, 16_000), (16_000, -1)])
def test_a_rate_that_is_none_is_refused(rates):
    with pytest.raises(ValueError, match="rates"):
        Resampler(*rates)


def test_pcm16_and_float_are_each_others_inverse():
    samples = np.arange(-32768, 32768, 7).astype(np.int16)
    np.testing.assert_array_equal(to_pcm16(from_pcm16(samples)), samples)


def test_floats_beyond_the_range_of_pcm16_are_clipped():
    np.testing.assert_array_equal(
        to_pcm16(np.array([1.0, 2.0, -2.0, np.nan, np.inf], np.float32)), [32767, 32767, -32768, 0, 32767]
    )


def test_wav_bytes_are_a_wav_file_with_these_samples():
    samples = to_pcm16(tone(440, 24_000, 0.1))
    with wave.open(io.BytesIO(wav_bytes(samples, 24_000))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 24_000)
        np.testing.assert_array_equal(np.frombuffer(file.readframes(file.getnframes()), "<i2"), samples)


def test_levelling_raises_quiet_sound_and_removes_the_offset():
    quiet = tone(300, 16_000, amplitude=0.01) + np.float32(0.3)
    raised = levelled(quiet, 16_000)
    assert abs(float(raised.mean())) < 1e-3
    assert np.sqrt(np.square(raised).mean()) == pytest.approx(0.1, rel=0.02)


def test_levelling_does_not_turn_down_loud_sound_nor_fall_for_a_click():
    loud = tone(300, 16_000, amplitude=0.9)
    np.testing.assert_allclose(levelled(loud, 16_000), loud, atol=1e-3)
    clicking = tone(300, 16_000, amplitude=0.01)
    clicking[8000] = 0.9
    assert np.sqrt(np.square(levelled(clicking, 16_000)[:4000]).mean()) > 0.08


def test_levelling_leaves_silence_and_nothing_alone():
    np.testing.assert_array_equal(levelled(np.zeros(1000, np.float32), 16_000), np.zeros(1000))
    assert len(levelled(np.zeros(0, np.float32), 16_000)) == 0
