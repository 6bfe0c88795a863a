from __future__ import annotations

import asyncio
import sys
import threading
import unicodedata
from collections.abc import Iterator
from typing import Any

import ctranslate2
import numpy as np
import opencc
import pytest

from spoken_chat.asr import cuda, whisper
from spoken_chat.asr.whisper import NOTHING, WhisperRecognizer, is_made_up, without_echo, without_loop
from spoken_chat.asr.whisper_weights import model_folder
from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.bench.asr import errors, plain
from spoken_chat.errors import ChatError
from spoken_chat.settings import load
from tests.support import sounds, speech

BOTH = ("zh", "en")
WORST_CER = 0.25
"""Of any one sample; whisper base mishears one of five characters in the hardest."""


@pytest.fixture(scope="module")
def recognizer() -> Iterator[WhisperRecognizer]:
    recognizer = WhisperRecognizer(load(asr_device="cpu"))
    recognizer.load()
    yield recognizer
    recognizer.close()


def cer(heard: str, sample: Any) -> float:
    wrong, length = errors(heard, sample)
    return wrong / length


# Pure functions


def test_what_is_repeated_at_the_end_is_kept_once():
    assert without_loop([1, 2, 3, *[7, 8] * 6]) == [1, 2, 3, 7, 8]
    assert without_loop([1, 2, *[7] * 20]) == [1, 2, 7]


def test_a_loop_that_was_cut_in_its_middle_is_seen_too():
    assert without_loop([1, *[7, 8, 9] * 4, 7]) == [1, 7, 8, 9]


@pytest.mark.parametrize("tokens", [[], [1], [5, 5, 5], [1, 2, 3, 1, 2, 3, 1, 2, 3], [4, 4, 4, 4, 9], list(range(50))])
def test_speech_that_repeats_a_word_or_two_is_left_alone(tokens):
    assert without_loop(tokens) == tokens


@pytest.mark.parametrize(
    "tokens, kept",
    [
        ([1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7]),
        ([9, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5], [9, 1, 2, 3, 4, 5, 6, 7, 8]),
        ([9, 8, 1, 2, 3, 1, 2, 3, 1, 2, 3, 4], [9, 8, 1, 2, 3]),
        ([1, 2, 3, 1, 2, 3, 1, 2, 3, 4], []),
        ([7, 7, 7, 7, 7], []),
        ([5, 7, 7, 7, 7, 7], [5, 7]),
    ],
    ids=["a sentence twice", "its beginning again", "a word in a loop", "only a loop", "one syllable", "at the end"],
)
def test_a_draft_does_not_say_its_end_again(tokens, kept):
    assert without_echo(tokens) == kept


@pytest.mark.parametrize("tokens", [[], [1], [1, 2, 1, 2], [7, 7, 7], [1, 2, 3, 4, 9, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
def test_what_people_do_repeat_stays_in_a_draft(tokens):
    assert without_echo(tokens) == tokens


def test_only_doubtful_words_in_what_sounds_empty_are_made_up():
    assert is_made_up(0.6, -1.2)
    assert not is_made_up(0.53, -0.66)
    assert is_made_up(0.9, -0.7)
    assert is_made_up(0.5, -1.9)
    assert not is_made_up(0.9, -0.3)
    assert not is_made_up(0.1, -1.9)


# Weights and devices


def test_an_unknown_model_name_is_refused_with_the_known_ones():
    with pytest.raises(ChatError) as caught:
        model_folder(load(asr_model="enormous"))
    assert caught.value.code == "asr_model_unknown"
    assert "base" in caught.value.message


def test_a_model_folder_that_lacks_files_is_refused_and_they_are_named(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ChatError, match=r"lacks model\.bin, tokenizer\.json") as caught:
        model_folder(load(asr_model=str(tmp_path)))
    assert caught.value.code == "asr_model_incomplete"


def test_a_broken_model_is_refused_in_one_sentence(tmp_path):
    for name in ("model.bin", "config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"{}")
    recognizer = WhisperRecognizer(load(asr_model=str(tmp_path), asr_device="cpu"))
    with pytest.raises(ChatError) as caught:
        recognizer.load()
    assert caught.value.code == "asr_model_broken"
    recognizer.close()


@pytest.mark.engines
def test_packaged_weights_are_joined_once_and_load_without_the_hub(tmp_path):
    settings = load(cache_dir=tmp_path)
    folder = model_folder(settings)
    made = (folder / "model.bin").stat().st_mtime_ns
    assert model_folder(settings) == folder
    assert (folder / "model.bin").stat().st_mtime_ns == made
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.bin", "tokenizer.json", "vocabulary.txt"}


def test_without_a_gpu_the_probe_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 0)
    assert cuda.probe(tmp_path / "none") == cuda.Probe(False, "no CUDA GPU was found")


@pytest.mark.engines
def test_a_gpu_whose_libraries_do_not_load_is_found_out_in_another_process(monkeypatch, tmp_path):
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 1)
    found = cuda.probe(tmp_path / "no model here")
    assert not found.works
    assert found.reason


def test_a_probe_that_aborts_is_no_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 1)
    crash = tmp_path / "crash"
    crash.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'import os; os.abort()'\n")
    crash.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(crash))
    assert cuda.probe(tmp_path / "aborts") == cuda.Probe(False, "the trial run ended with SIGABRT")


@pytest.mark.engines
def test_cuda_asked_for_and_not_there_is_an_error_that_says_why(monkeypatch):
    monkeypatch.setattr(cuda, "probe", lambda _: cuda.Probe(False, "no cuDNN"))
    recognizer = WhisperRecognizer(load(asr_device="cuda"))
    with pytest.raises(ChatError, match="no cuDNN") as caught:
        recognizer.load()
    assert caught.value.code == "asr_no_cuda"
    recognizer.close()


# Real speech


@pytest.mark.engines
def test_the_name_says_engine_model_and_device(recognizer):
    assert recognizer.name == "faster-whisper base int8 cpu"


@pytest.mark.engines
def test_speech_is_recognised_in_its_language(recognizer):
    for sample in speech.samples():
        heard = recognizer.recognise(sample.audio, BOTH)
        assert heard.language == sample.language, sample.name
        assert cer(heard.text, sample) <= WORST_CER, f"{sample.name}: {heard.text}"


@pytest.mark.engines
def test_chinese_comes_out_simplified_and_without_spaces(recognizer):
    to_simplified = opencc.OpenCC("t2s")
    for sample in speech.samples():
        if sample.language == "zh":
            text = recognizer.recognise(sample.audio, ["zh"]).text
            assert text == to_simplified.convert(text)
            assert " " not in text


@pytest.mark.engines
@pytest.mark.parametrize("name", sounds.NAMES)
def test_what_nobody_said_is_nothing_heard(recognizer, name):
    assert recognizer.recognise(sounds.named(name), BOTH) == NOTHING


@pytest.mark.engines
@pytest.mark.parametrize("name", sounds.NAMES)
def test_even_past_the_voice_detector_noise_does_not_become_a_sentence(recognizer, monkeypatch, name):
    monkeypatch.setattr(whisper, "speech_only", lambda audio: audio)
    assert recognizer.recognise(sounds.named(name), BOTH) == NOTHING


@pytest.mark.engines
@pytest.mark.parametrize(("spoken", "allowed"), [("en", "zh"), ("zh", "en")])
def test_a_language_that_is_not_allowed_is_never_returned(recognizer, spoken, allowed):
    heard = recognizer.recognise(speech.spoken(spoken).audio, [allowed])
    assert heard.language in {allowed, None}


@pytest.mark.engines
@pytest.mark.parametrize("languages", [[], ["xx"]])
def test_languages_the_model_does_not_know_are_refused(recognizer, languages):
    with pytest.raises(ChatError) as caught:
        recognizer.recognise(speech.spoken("en").audio, languages)
    assert caught.value.code == "asr_language"


@pytest.mark.engines
@pytest.mark.parametrize(
    "spoil",
    [
        lambda audio: audio * np.float32(0.002),
        lambda audio: np.clip(audio * np.float32(6), -1, 1),
        lambda audio: np.clip(audio * np.float32(0.5) + np.float32(0.4), -1, 1),
        lambda audio: np.pad(audio, (20 * ASR_RATE, 20 * ASR_RATE)),
    ],
    ids=["very quiet", "clipped", "with a DC offset", "in long silence"],
)
def test_spoilt_speech_is_still_recognised(recognizer, spoil):
    for language in BOTH:
        sample = speech.spoken(language)
        heard = recognizer.recognise(spoil(sample.audio), BOTH)
        assert cer(heard.text, sample) <= WORST_CER, heard.text


@pytest.mark.engines
@pytest.mark.parametrize("before_s", [5, 40])
def test_silence_before_somebody_speaks_costs_no_words(recognizer, before_s):
    sample = speech.spoken("en")
    silence = np.zeros(before_s * ASR_RATE, np.float32)
    heard = recognizer.recognise(np.concatenate([silence, sample.audio, silence]), ["en"]).text
    assert cer(heard, sample) <= cer(recognizer.recognise(sample.audio, ["en"]).text, sample) + 0.02


@pytest.mark.engines
@pytest.mark.parametrize("milliseconds", [0, 1, 50, 200])
def test_a_blip_is_short_or_nothing(recognizer, milliseconds):
    audio = speech.spoken("en").audio
    heard = recognizer.recognise(audio[6000 : 6000 + 16 * milliseconds], BOTH)
    assert len(heard.text) <= 12


@pytest.mark.engines
def test_speech_over_25_s_takes_the_long_path_and_shorter_speech_does_not(recognizer, monkeypatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("transcribe() was called for short speech")

    monkeypatch.setattr(recognizer.model, "transcribe", refuse)
    # Without pauses to cut, or the speech would be shorter than the sound.
    monkeypatch.setattr(whisper, "speech_only", lambda audio: audio)
    audio = speech.long_speech("en", 31)
    assert recognizer.recognise(audio[: round(24.9 * ASR_RATE)], ["en"]).text
    with pytest.raises(AssertionError, match="short speech"):
        recognizer.recognise(audio[: round(25.1 * ASR_RATE)], ["en"])


@pytest.mark.engines
def test_thirty_seconds_of_speech_are_recognised_whole(recognizer):
    audio: FloatPcm = speech.long_speech("en", 30)[: 36 * ASR_RATE]
    heard = recognizer.recognise(audio, BOTH)
    assert heard.language == "en"
    sample = speech.spoken("en")
    assert len(plain(heard.text, "en")) > len(plain(sample.words, "en")) * 1.5


@pytest.mark.engines
async def test_utterances_wait_for_each_other_and_each_gets_its_own_text(recognizer):
    first, second = speech.spoken("en"), speech.spoken("zh")
    heard = await asyncio.gather(recognizer.transcribe(first.audio, BOTH), recognizer.transcribe(second.audio, BOTH))
    assert [each.language for each in heard] == ["en", "zh"]


# Decoder trouble, with a scripted decoder


class Script:
    """Replaces the decoder: the hypotheses it gives, in order, and what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *hypotheses: Any) -> None:
        self.left = list(hypotheses)
        self.limits: list[int] = []
        self.windows: list[float] = []
        encode = WhisperRecognizer._encode

        def decode(_: Any, __: Any, ___: Any, ____: str, limit: int) -> Any:
            self.limits.append(limit)
            return self.left.pop(0)

        def encode_and_note(recognizer: Any, model: Any, audio: FloatPcm, window_s: float) -> Any:
            self.windows.append(window_s)
            return encode(recognizer, model, audio, window_s)

        monkeypatch.setattr(WhisperRecognizer, "_decode", decode)
        monkeypatch.setattr(WhisperRecognizer, "_encode", encode_and_note)


def hypothesis(recognizer: WhisperRecognizer, text: str, *, capped: bool = False, repeats: int = 1) -> Any:
    tokens = recognizer.model.hf_tokenizer.encode(text, add_special_tokens=False).ids * repeats
    return whisper._Hypothesis(tokens=tokens, log_probability=-0.2, no_speech=0.0, capped=capped)


@pytest.mark.engines
def test_a_fast_speaker_is_not_cut_off(recognizer, monkeypatch):
    script = Script(
        monkeypatch, hypothesis(recognizer, " One two", capped=True), hypothesis(recognizer, " One two three")
    )
    assert recognizer.recognise(speech.spoken("en").audio, ["en"]).text == "One two three"
    assert script.limits[1] == 2 * script.limits[0]


@pytest.mark.engines
def test_a_decoder_that_loops_gets_the_full_window_once(recognizer, monkeypatch):
    script = Script(
        monkeypatch,
        hypothesis(recognizer, " again and", capped=True, repeats=20),
        hypothesis(recognizer, " Again and again."),
    )
    assert recognizer.recognise(speech.spoken("en").audio, ["en"]).text == "Again and again."
    assert script.windows[-1] == 30.0


@pytest.mark.engines
def test_a_decoder_that_still_loops_says_it_once(recognizer, monkeypatch):
    loop = hypothesis(recognizer, " again and", capped=True, repeats=20)
    Script(monkeypatch, loop, loop)
    assert recognizer.recognise(speech.spoken("en").audio, ["en"]).text == "again and"


@pytest.mark.engines
def test_who_says_the_same_thing_often_is_believed(recognizer, monkeypatch):
    Script(monkeypatch, hypothesis(recognizer, " ha ha", repeats=12))
    assert recognizer.recognise(speech.spoken("en").audio, ["en"]).text.count("ha") == 24


@pytest.mark.engines
def test_only_punctuation_is_nothing_heard(recognizer, monkeypatch):
    Script(monkeypatch, hypothesis(recognizer, " ..."))
    assert recognizer.recognise(speech.spoken("en").audio, ["en"]) == NOTHING


@pytest.mark.engines
def test_a_failing_decoder_is_one_clear_error(recognizer, monkeypatch):
    def fail(*_: Any) -> None:
        raise RuntimeError("CUDA failed with error out of memory")

    monkeypatch.setattr(WhisperRecognizer, "_decode", fail)
    with pytest.raises(ChatError, match="out of memory") as caught:
        recognizer.recognise(speech.spoken("en").audio, ["en"])
    assert caught.value.code == "asr_failed"


@pytest.mark.engines
async def test_cancelled_work_stops_at_its_next_step_and_the_next_utterance_is_heard(recognizer, monkeypatch):
    encoding, go_on = threading.Event(), threading.Event()
    decoded: list[str] = []
    encode, decode = WhisperRecognizer._encode, WhisperRecognizer._decode

    def held(*arguments: Any) -> Any:
        encoding.set()
        assert go_on.wait(30)
        return encode(*arguments)

    def noted(*arguments: Any) -> Any:
        decoded.append("decoded")
        return decode(*arguments)

    monkeypatch.setattr(WhisperRecognizer, "_encode", held)
    monkeypatch.setattr(WhisperRecognizer, "_decode", noted)
    audio = speech.spoken("en").audio
    dropped = asyncio.create_task(recognizer.transcribe(audio, ["en"]))
    await asyncio.to_thread(encoding.wait, 30)
    waiting = asyncio.create_task(recognizer.transcribe(audio, ["en"]))
    await asyncio.sleep(0)
    for task in (dropped, waiting):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    go_on.set()
    heard = await recognizer.transcribe(audio, ["en"])
    assert heard.text
    assert decoded == ["decoded"], "only the last utterance was decoded"


def test_traditional_text_with_pauses_becomes_simplified_without_spaces():
    recognizer = WhisperRecognizer(load())
    text = recognizer._transcript(" 廣州市 房地產 OK 嗎", "zh").text
    assert text == "广州市房地产 OK 吗"
    assert unicodedata.is_normalized("NFC", text)
    recognizer.close()
