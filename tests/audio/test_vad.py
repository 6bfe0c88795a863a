from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from spoken_chat.audio import ASR_RATE
from spoken_chat.audio.vad import CHUNK, SpeechRule, VoiceDetector, spans_of, speech_only, speech_spans
from tests.support import sounds, speech

STEP = CHUNK / ASR_RATE


def spans(probabilities: list[float], rule: SpeechRule) -> list[tuple[int, int]]:
    """The spans counted in chunks."""
    found = spans_of(np.array(probabilities, np.float32), len(probabilities) * STEP, rule)
    return [(round(start / STEP), round(end / STEP)) for start, end in found]


RULE = SpeechRule(start=0.5, stop=0.35, gap_s=2 * STEP, minimum_s=2 * STEP)


def test_speech_starts_at_the_high_bound_and_lasts_to_the_low_one():
    assert spans([0.4, 0.6, 0.4, 0.4, 0.3, 0.3, 0.3], RULE) == [(1, 4)]


def test_what_never_reaches_the_high_bound_is_no_speech():
    assert spans([0.49] * 20, RULE) == []


def test_a_short_gap_is_part_of_speech_and_a_long_one_ends_it():
    assert spans([0.9, 0.9, 0.1, 0.9, 0.9], RULE) == [(0, 5)]
    assert spans([0.9, 0.9, 0.1, 0.1, 0.9, 0.9], RULE) == [(0, 2), (4, 6)]


def test_a_click_is_too_short_to_be_speech():
    assert spans([0.0, 0.9, 0.0, 0.0, 0.0, 0.9, 0.9, 0.0], RULE) == [(5, 7)]


def test_speech_at_the_very_end_ends_with_the_audio():
    found = spans_of(np.array([0.9, 0.9, 0.9], np.float32), 2.5 * STEP, RULE)
    assert found == [(0.0, 2.5 * STEP)]


@pytest.mark.parametrize("shape", [(511,), (513,), (2, 256)])
def test_a_chunk_of_another_size_is_refused(shape):
    with pytest.raises(ValueError, match="chunk"):
        VoiceDetector().feed(np.zeros(shape, np.float32))


@pytest.mark.parametrize("name", sounds.NAMES)
def test_what_is_not_speech_has_no_spans(name):
    audio = sounds.named(name)
    assert speech_spans(audio) == []
    assert len(speech_only(audio)) == 0


def test_nothing_has_no_spans():
    assert speech_spans(np.zeros(0, np.float32)) == []
    assert len(speech_only(np.zeros(0, np.float32))) == 0


@pytest.mark.engines
def test_chunk_by_chunk_and_all_at_once_give_the_same_probabilities():
    audio = speech.spoken("en").audio
    audio = audio[: len(audio) // CHUNK * CHUNK]
    one_by_one = VoiceDetector()
    probabilities = [one_by_one.feed(chunk) for chunk in audio.reshape(-1, CHUNK)]
    np.testing.assert_allclose(VoiceDetector().probabilities(audio), probabilities, atol=1e-6)


@pytest.mark.engines
def test_after_a_reset_the_detector_is_as_new():
    audio = speech.long_speech("en", 2)[: 40 * CHUNK]
    detector = VoiceDetector()
    first = detector.probabilities(audio)
    assert not np.array_equal(first, detector.probabilities(audio)), "the stream goes on"
    detector.reset()
    np.testing.assert_array_equal(first, detector.probabilities(audio))


@pytest.mark.engines
def test_detectors_in_several_threads_do_not_disturb_each_other():
    audio = speech.long_speech("en", 4)[: 100 * CHUNK]
    alone = VoiceDetector().probabilities(audio)
    with ThreadPoolExecutor(4) as pool:
        for together in pool.map(lambda _: VoiceDetector().probabilities(audio), range(8)):
            np.testing.assert_array_equal(together, alone)


@pytest.mark.engines
@pytest.mark.parametrize("language", ["en", "zh"])
def test_speech_in_long_silence_is_found_where_it_is(language):
    audio = speech.spoken(language).audio
    inside = speech_spans(audio)
    assert inside
    before = 6.4
    found = speech_spans(np.pad(audio, (round(before * ASR_RATE), 5 * ASR_RATE)))
    assert found[0][0] == pytest.approx(before + inside[0][0], abs=0.2)
    assert found[-1][1] == pytest.approx(before + inside[-1][1], abs=0.2)


@pytest.mark.engines
def test_long_silence_is_cut_away_and_short_pauses_stay():
    audio = speech.spoken("en").audio
    np.testing.assert_array_equal(speech_only(audio), audio)
    kept = speech_only(np.pad(audio, (10 * ASR_RATE, 10 * ASR_RATE)))
    assert len(audio) * 0.7 < len(kept) < len(audio) + ASR_RATE
