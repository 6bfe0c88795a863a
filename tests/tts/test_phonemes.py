"""Text becomes the phonemes Kokoro was trained with, in Chinese, English and mixtures."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spoken_chat.tts.english import readable
from spoken_chat.tts.kokoro_tokens import VOCABULARY
from spoken_chat.tts.phonemes import Phonemizer

engines = pytest.mark.engines


@pytest.fixture(scope="module")
def phonemizer(tmp_path_factory: pytest.TempPathFactory) -> Phonemizer:
    return Phonemizer(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("It's 10:30 am.", "It's 10 30 am."),
        ("At 10:00, not 7:05 or 3:00 pm", "At 10 o'clock, not 7 oh 5 or 3 pm"),
        ("on 2026-11-30", "on November 30th, 2026"),
        ("Nov 30 and Sept. 2", "November 30 and September 2"),
        ("20°C at 3.5 km/h", "20 degrees Celsius at 3.5 kilometers per hour"),
        ("3-5 days, 1990-2000", "3 to 5 days, 1990 to 2000"),
        ("1/2 or 3/4, 24/7", "1 half or 3 quarters, 24 7"),
        ("call 555-1234", "call 5 5 5, 1 2 3 4"),
        ("won 3:2", "won 3 to 2"),
        ("naïve café", "naive cafe"),
        ("Qwen3.6-35B", "Qwen3.6-35B"),
        ("a < b → c = #5", "a less than b to c equals number 5"),
    ],
)
def test_english_figures_and_symbols_become_words(written: str, read: str) -> None:
    assert readable(written) == read


@engines
def test_plain_english(phonemizer: Phonemizer) -> None:
    assert phonemizer.phonemes("Hello there, how are you?", "en") == "həlˈO ðˈɛɹ, hˌW ɑɹ ju?"


@engines
def test_english_numbers_prices_and_years(phonemizer: Phonemizer) -> None:
    assert phonemizer.phonemes("$3.50", "en") == "θɹˈi dˈɑləɹz ænd fˈɪfti sˈɛnts"
    assert phonemizer.phonemes("50%", "en") == "fˈɪfti pəɹsˈɛnt"
    assert phonemizer.phonemes("in 1995", "en").endswith("nˌIntˈin nˈIndi fˈIv")


@engines
def test_a_word_of_no_dictionary_is_guessed_from_its_letters(phonemizer: Phonemizer) -> None:
    assert phonemizer.phonemes("Gradio and PyTorch", "en") == "ɡɹˈAdiO ænd pˈI tˈɔɹʧ"
    assert phonemizer.phonemes("Use Qwen3 now.", "en") == "jˈuz kwˈɛn θɹˈi nˈW."


@engines
def test_abbreviations_are_spelled_unless_they_are_words(phonemizer: Phonemizer) -> None:
    assert phonemizer.phonemes("GPU", "en") == "ʤˌipˌijˈu"
    assert phonemizer.phonemes("vLLM", "en") == "vˌiˌɛlˌɛlˈɛm"
    assert phonemizer.phonemes("NASA", "en") == "nˈæsə"


@engines
def test_plain_chinese(phonemizer: Phonemizer) -> None:
    assert phonemizer.phonemes("你好，我是小雨。", "zh") == "ni↓xau↓, wo↓ ʂɨ↘ ɕjau↓y↓."


@engines
def test_figures_in_chinese_text_are_read_in_chinese(phonemizer: Phonemizer) -> None:
    assert phonemizer.phonemes("现在10：30。", "zh") == phonemizer.phonemes("现在十点三十分。", "zh")
    assert phonemizer.phonemes("２℃", "zh") == phonemizer.phonemes("二摄氏度", "zh")
    assert phonemizer.phonemes("2½杯", "zh") == phonemizer.phonemes("二 二分之一杯", "zh")


@engines
def test_a_figure_alone_is_read_in_the_language_of_the_persona(phonemizer: Phonemizer) -> None:
    assert phonemizer.phonemes("50%。", "zh") == phonemizer.phonemes("百分之五十。", "zh")
    assert phonemizer.phonemes("50%.", "en") == "fˈɪfti pəɹsˈɛnt."


@engines
def test_latin_words_in_chinese_text_are_said_in_english(phonemizer: Phonemizer) -> None:
    said = phonemizer.phonemes("他打开了Gradio，用GPU。", "zh")
    assert "ɡɹˈAdiO" in said
    assert "ʤˌipˌijˈu" in said
    assert said.endswith(".")


@engines
def test_a_single_letter_in_chinese_text_is_its_name_not_the_article(phonemizer: Phonemizer) -> None:
    assert phonemizer.phonemes("A型", "zh").startswith("ˈA ")


@engines
def test_chinese_characters_in_english_text_are_said_in_mandarin(phonemizer: Phonemizer) -> None:
    assert phonemizer.phonemes("I love 你好 very much", "en") == "ˌI lˈʌv ni↓xau↓ vˈɛɹi mˈʌʧ"


@engines
def test_a_chinese_persona_that_says_an_english_sentence_says_it_in_english(phonemizer: Phonemizer) -> None:
    assert phonemizer.phonemes("I have 3 cats.", "zh") == phonemizer.phonemes("I have 3 cats.", "en")


@engines
@pytest.mark.parametrize("text", ["", "...", "！？", " — ", "%", "한국어"])
def test_what_holds_nothing_to_say_gives_nothing(phonemizer: Phonemizer, text: str) -> None:
    assert phonemizer.phonemes(text, "zh") == ""
    assert phonemizer.phonemes(text, "en") == ""


@engines
def test_an_ellipsis_is_one_pause(phonemizer: Phonemizer) -> None:
    assert phonemizer.phonemes("Wait... what?!", "en") == "wˈAt… wˌʌt?!"
    assert phonemizer.phonemes("等等……好", "zh") == phonemizer.phonemes("等等…好", "zh")


@engines
def test_a_character_without_a_reading_is_left_out_and_the_rest_is_said(phonemizer: Phonemizer) -> None:
    assert phonemizer.phonemes("龦好", "zh") == phonemizer.phonemes("好", "zh")


@engines
def test_chinese_alone_does_not_load_the_english_tagger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError("English was loaded")

    monkeypatch.setattr("spoken_chat.tts.phonemes.EnglishPhonemes", refuse)
    assert Phonemizer(tmp_path).phonemes("你好，10:30见！", "zh")


any_text = st.one_of(
    st.text(max_size=30),
    st.text("0123456789.,:/-%$£€°CkmhAaIi'’ \"()+&#@é½²你二两零年月日个，。、：～—…VsS", max_size=30),
)


@engines
@settings(max_examples=150, deadline=None)
@given(any_text, st.sampled_from(["zh", "en"]))
def test_any_text_gives_phonemes_of_the_vocabulary(phonemizer: Phonemizer, text: str, language: str) -> None:
    assert set(phonemizer.phonemes(text, language)) <= set(VOCABULARY)
