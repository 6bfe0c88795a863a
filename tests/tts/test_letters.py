"""Words that no dictionary has get a plausible sound."""

from __future__ import annotations

import pytest

from spoken_chat.tts.kokoro_tokens import VOCABULARY
from spoken_chat.tts.letters import LetterToSound

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def letters() -> LetterToSound:
    return LetterToSound()


@pytest.mark.parametrize(
    ("word", "sounds"),
    [("Qwen", "kwˈɛn"), ("Gradio", "ɡɹˈAdiO"), ("Zyxel", "zˈɪksəl"), ("llama", "lˈɑmə"), ("Wikipedia", "wˌɪkɪpˈidiə")],
)
def test_a_name_is_said_as_an_english_reader_would(letters: LetterToSound, word: str, sounds: str) -> None:
    assert letters.phonemes(word) == sounds


def test_the_decoder_gives_arpabet_with_stress(letters: LetterToSound) -> None:
    assert letters.arpabet("qwen") == ["K", "W", "EH1", "N"]


def test_a_word_longer_than_any_still_ends_and_stays_in_the_vocabulary(letters: LetterToSound) -> None:
    sounds = letters.phonemes("x" * 300)
    assert 0 < len(sounds) < 1500
    assert set(sounds) <= set(VOCABULARY)


def test_letters_outside_the_alphabet_do_no_harm(letters: LetterToSound) -> None:
    assert set(letters.phonemes("ñandú")) <= set(VOCABULARY)
