"""24 kHz made 16 kHz: what is speech is kept, what would fold back is gone, and nothing is held back for long."""

import numpy as np
import pytest

from spoken_chat.audio import FloatPcm
from spoken_chat.realtime.rate import LOOK_AHEAD_S, ToAsrRate


def tone(hertz: float, rate: int, seconds: float = 0.5) -> FloatPcm:
    return np.sin(2 * np.pi * hertz * np.arange(round(rate * seconds)) / rate).astype(np.float32) * np.float32(0.5)


def middle(samples: FloatPcm) -> FloatPcm:
    return samples[400:-400]


@pytest.mark.parametrize("hertz", [50, 440, 1000, 3000, 6000])
def test_a_tone_of_speech_is_the_same_sample_for_sample(hertz: float) -> None:
    made = ToAsrRate().feed(tone(hertz, 24_000))
    assert np.abs(middle(made) - middle(tone(hertz, 16_000)[: len(made)])).max() < 0.005


@pytest.mark.parametrize("hertz", [8300, 9000, 11_000])
def test_what_would_fold_back_is_gone(hertz: float) -> None:
    assert np.abs(middle(ToAsrRate().feed(tone(hertz, 24_000)))).max() < 0.001


def test_a_constant_stays_what_it_is() -> None:
    made = ToAsrRate().feed(np.full(24_000, 0.9, np.float32))
    assert middle(made) == pytest.approx(0.9, abs=1e-5)


@pytest.mark.parametrize("sizes", [(1,), (7,), (480,), (128,), (1, 2, 3, 1000)])
def test_the_pieces_make_no_difference(sizes: tuple[int, ...]) -> None:
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, 6000).astype(np.float32)
    whole = ToAsrRate().feed(noise)
    resampler, pieces, start = ToAsrRate(), [], 0
    while start < len(noise):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(resampler.feed(noise[start : start + size]))
        start += size
    assert np.allclose(np.concatenate(pieces), whole, atol=1e-6)


def test_next_to_nothing_is_held_back() -> None:
    made = len(ToAsrRate().feed(np.zeros(2400, np.float32)))
    assert (1600 - made) / 16_000 <= LOOK_AHEAD_S + 2 / 16_000 and LOOK_AHEAD_S < 0.002


def test_loud_noise_is_clipped_not_wrapped() -> None:
    square = np.sign(tone(1000, 24_000))
    assert np.abs(ToAsrRate().feed(square)).max() <= 1.0
