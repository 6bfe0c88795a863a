from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.audio.end_of_turn import SmartTurn, wait_for
from spoken_chat.audio.vad import speech_spans
from spoken_chat.errors import ChatError
from spoken_chat.weights import package_file
from tests.support import speech

MODEL = "audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx"


def noise(seconds: float) -> FloatPcm:
    return np.random.default_rng(1).standard_normal(round(seconds * ASR_RATE)).astype(np.float32) * 0.1


def theirs() -> Callable[[FloatPcm], Any]:
    """The features as the model's makers compute them: one file of their package, loaded by itself."""
    try:
        path = package_file("pipecat", "audio/turn/smart_turn/_whisper_features.py")
    except ChatError as missing:
        pytest.skip(missing.message)
    spec = importlib.util.spec_from_file_location("their_features", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[[FloatPcm], Any] = module.compute_whisper_log_mel_features
    return function


@pytest.mark.parametrize("seconds", [0.5, 8, 11.3])
def test_the_features_are_those_the_model_was_trained_on(seconds):
    audio = noise(seconds)
    window = np.zeros(8 * ASR_RATE, np.float32)
    kept = min(len(audio), len(window))
    window[-kept:] = audio[-kept:]
    np.testing.assert_allclose(SmartTurn().features(audio), theirs()(window), atol=1e-4)


@pytest.mark.parametrize("seconds", [0, 0.01, 1, 8, 60])
def test_speech_of_any_length_gives_the_same_number_of_features(seconds):
    features = SmartTurn().features(noise(seconds))
    assert features.shape == (80, 800)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()


def test_speech_is_at_the_end_of_the_window_and_silence_before_it():
    features = SmartTurn().features(noise(2))
    assert features[:, :590].max() < features[:, 610:].min()


def test_only_the_last_eight_seconds_count():
    model, last = SmartTurn(), noise(8)
    np.testing.assert_array_equal(model.features(np.concatenate([noise(3) * 5, last])), model.features(last))


def test_loudness_does_not_count():
    model, audio = SmartTurn(), noise(8)
    np.testing.assert_allclose(model.features(audio), model.features(audio * 0.2), atol=1e-3)


@pytest.mark.parametrize(("probability", "wait"), [(1.0, 0.4), (0.5, 0.4), (0.3, 0.95), (0.1, 1.5), (0.0, 1.5)])
def test_the_surer_that_the_speaker_is_done_the_shorter_the_wait(probability, wait):
    assert wait_for(probability, 0.4, 1.5) == pytest.approx(wait)


def test_a_verdict_that_is_no_number_waits_long():
    assert wait_for(float("nan"), 0.4, 1.5) == 1.5


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 2), st.floats(0, 2))
def test_the_wait_never_grows_with_the_probability_nor_leaves_its_bounds(one, other, finished_s, extra_s):
    unfinished_s = finished_s + extra_s
    longer, shorter = (wait_for(p, finished_s, unfinished_s) for p in sorted((one, other)))
    assert finished_s <= shorter <= longer + 1e-9
    assert longer <= unfinished_s + 1e-9


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, model: bytes | None) -> None:
    """A package pipecat in `folder` with `model` as its weights, instead of the one that is installed."""
    file = folder / "pipecat" / MODEL
    file.parent.mkdir(parents=True)
    (folder / "pipecat" / "__init__.py").write_text("raise RuntimeError('the package was imported')\n")
    if model is not None:
        file.write_bytes(model)
    monkeypatch.delitem(sys.modules, "pipecat", raising=False)
    monkeypatch.syspath_prepend(folder)


def test_without_its_package_it_says_what_to_install(tmp_path, monkeypatch):
    installed(tmp_path, monkeypatch, None)
    with pytest.raises(ChatError, match=r"pipecat.*make install") as caught:
        SmartTurn().load()
    assert caught.value.code == "weights_missing"


@pytest.mark.parametrize("content", [b"", b"not a network"])
def test_damaged_weights_are_named_with_what_to_do(tmp_path, monkeypatch, content):
    installed(tmp_path, monkeypatch, content)
    with pytest.raises(ChatError, match="make install") as caught:
        SmartTurn().load()
    assert caught.value.code == "weights_damaged"
    assert str(tmp_path) in str(caught.value.details["file"])


def cut(audio: FloatPcm, end_s: float) -> FloatPcm:
    """`audio` up to `end_s` and 0.2 s of a quiet room behind it: what the model hears when a pause begins."""
    room = np.random.default_rng(2).standard_normal(round(0.2 * ASR_RATE)).astype(np.float32) * 3e-4
    return np.concatenate([audio[: round(end_s * ASR_RATE)], room])


@pytest.mark.engines
def test_a_whole_utterance_sounds_finished():
    model = SmartTurn()
    model.load()
    for language in ("en", "zh"):
        audio = max(
            (one.audio for one in speech.samples() if one.language == language),
            key=lambda audio: model.finished(cut(audio, speech_spans(audio)[-1][1])),
        )
        assert model.finished(cut(audio, speech_spans(audio)[-1][1])) > 0.9, language


@pytest.mark.engines
def test_in_the_middle_of_an_english_sentence_there_are_places_that_do_not_sound_finished():
    model = SmartTurn()
    audio = speech.spoken("en").audio
    start, end = speech_spans(audio)[0][0], speech_spans(audio)[-1][1]
    verdict = min(model.finished(cut(audio, start + share * (end - start))) for share in np.linspace(0.3, 0.9, 7))
    assert wait_for(verdict, 0.4, 1.5) == 1.5


@pytest.mark.engines
def test_silence_and_a_moment_of_sound_give_a_probability_too():
    model = SmartTurn()
    for audio in (np.zeros(0, np.float32), np.zeros(ASR_RATE, np.float32), noise(0.01)):
        assert 0 <= model.finished(audio) <= 1


@pytest.mark.engines
def test_several_threads_get_the_answers_they_would_get_alone():
    model = SmartTurn()
    sounds = [cut(speech.spoken(language).audio, 1.0 + 0.3 * step) for language in ("en", "zh") for step in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(model.finished, sounds))
    alone = SmartTurn()
    assert together == [alone.finished(audio) for audio in sounds]
