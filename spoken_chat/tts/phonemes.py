"""Text to the phonemes the Kokoro voice reads, in Chinese, English and mixtures of both."""

from __future__ import annotations

import re
import threading
import unicodedata
from pathlib import Path
from typing import Final

from spoken_chat.tts.english import EnglishPhonemes
from spoken_chat.tts.mandarin import MandarinPhonemes
from spoken_chat.tts.mandarin_numbers import read_numbers

_HAN: Final = "〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HAN_RUN: Final = re.compile(f"([{_HAN}]+)")
_LETTER: Final = "A-Za-z\u00c0-\u024f"
_LATIN_RUN: Final = re.compile(rf"([{_LETTER}]+(?:[ '’&-]{{1,2}}[{_LETTER}]+)*)")
_LATIN_WORD: Final = re.compile(f"[{_LETTER}]{{2}}")
_SINGLE_LETTERS: Final = re.compile(r"[A-Za-z](?:[ &-]{1,2}[A-Za-z])*")

_PUNCTUATION: Final = str.maketrans(
    {
        "，": ", ",
        "、": ", ",
        "。": ". ",
        "．": ".",
        "！": "! ",
        "？": "? ",
        "；": "; ",
        "「": " “",
        "」": "” ",
        "『": " “",
        "』": "” ",
        "《": " “",
        "》": "” ",
        "〈": " “",
        "〉": "” ",
        "【": " “",
        "】": "” ",
        "（": " (",
        "）": ") ",
        "·": " ",
        "・": " ",
        "’": "'",
        "‘": "'",
        "‐": "-",
        "‑": "-",
        "−": "-",
    }
)
_COLON_IN_NUMBER: Final = re.compile(r"(?<=\d)：(?=\d)")
_MIXED_FRACTION: Final = re.compile(r"(?<=\d)(?=[¼½¾⅐-⅞])")
_ELLIPSIS: Final = re.compile(r"(?:\.{2,}|…)(?:\s*(?:\.{2,}|…))*")
_DASH: Final = re.compile(r"\s*(?:—+|–|--+)\s*")
_SPACE: Final = re.compile(r"\s+")
_NOT_A_PAUSE: Final = re.compile(r"[^;:,.!?—…\"()“” ]")


class Phonemizer:
    """Kokoro phonemes of any text. Each language is loaded when its first character comes.

    Loading is safe from several threads; `phonemes` is for one thread at a time.
    """

    def __init__(self, cache_dir: Path) -> None:
        """Nothing is loaded yet; `cache_dir` is where the Chinese word list is kept in its parsed form."""
        self._cache_dir = cache_dir
        self._lock = threading.Lock()
        self._english: EnglishPhonemes | None = None
        self._mandarin: MandarinPhonemes | None = None

    def load(self, language: str) -> None:
        """Load what `language` (ISO 639-1) needs: Chinese for `zh`, English for any other. Raises ChatError."""
        if language == "zh":
            self._load_mandarin()
        else:
            self._load_english()

    def phonemes(self, text: str, language: str) -> str:
        """The phonemes and punctuation of `text`; empty when it holds nothing that can be said.

        Numbers are read in `language`; words of the other script are read in theirs. Text in `zh` that has Latin
        words and no Chinese character is read as English. Raises ChatError when a package is missing.
        """
        text = _plain(text)
        if language == "zh" and (_HAN_RUN.search(text) or not _LATIN_WORD.search(text)):
            said = self._chinese(read_numbers(text))
        else:
            said = self._mixed_english(text)
        return _tidy(said)

    def _chinese(self, text: str) -> str:
        parts: list[str] = []
        for index, run in enumerate(_HAN_RUN.split(text)):
            parts.append(self._load_mandarin().phonemes(run) if index % 2 else self._foreign(run))
        return "".join(parts)

    def _foreign(self, text: str) -> str:
        """What stands between Chinese characters: Latin words, spoken in English, and punctuation."""
        parts: list[str] = []
        for index, run in enumerate(_LATIN_RUN.split(text)):
            parts.append(f" {self._latin(run)} " if index % 2 else _NOT_A_PAUSE.sub(" ", run))
        return "".join(parts)

    def _latin(self, words: str) -> str:
        english = self._load_english()
        # A lone "A" is the article to an English dictionary, but a letter's name in Chinese text, as in A型.
        return english.spelled(words) if _SINGLE_LETTERS.fullmatch(words) else english.phonemes(words)

    def _mixed_english(self, text: str) -> str:
        parts: list[str] = []
        for index, run in enumerate(_HAN_RUN.split(text)):
            if index % 2:
                parts.append(f" {self._load_mandarin().phonemes(run)} ")
            elif run.strip():
                parts.append(self._load_english().phonemes(run))
        return "".join(parts)

    def _load_english(self) -> EnglishPhonemes:
        with self._lock:
            if self._english is None:
                self._english = EnglishPhonemes()
            return self._english

    def _load_mandarin(self) -> MandarinPhonemes:
        with self._lock:
            if self._mandarin is None:
                self._mandarin = MandarinPhonemes(self._cache_dir)
            return self._mandarin


def _plain(text: str) -> str:
    """`text` in Unicode form NFKC with Western punctuation."""
    text = _COLON_IN_NUMBER.sub(":", text).replace("：", ": ")
    text = _ELLIPSIS.sub("…", _MIXED_FRACTION.sub(" ", text)).translate(_PUNCTUATION)
    # NFKC would write an ellipsis as three full stops, which the voice takes for three ends of a sentence.
    text = "…".join(unicodedata.normalize("NFKC", part) for part in text.split("…"))
    return _SPACE.sub(" ", text.replace("⁄", "/"))


def _tidy(phonemes: str) -> str:
    """No double spaces, none before punctuation, and nothing at all when only punctuation is left."""
    phonemes = _SPACE.sub(" ", _DASH.sub("—", phonemes)).strip()
    phonemes = re.sub(r" (?=[,.!?;:…)”])", "", phonemes)
    return phonemes if _NOT_A_PAUSE.search(phonemes) else ""
