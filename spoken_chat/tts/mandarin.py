"""Mandarin text to Kokoro's phonemes: jieba's words, misaki's pinyin-to-sound table (the one of Kokoro v1.0)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

from spoken_chat.errors import package_missing

log = logging.getLogger(__name__)

_NON_SYLLABIC_BELOW: Final = "\u032f"
"""A diacritic of misaki's table that Kokoro was not trained with."""


class MandarinPhonemes:
    """Chinese characters in the phonemes Kokoro v1.0 was trained with. Not for several threads at once."""

    def __init__(self, cache_dir: Path) -> None:
        """Load the word list; its parsed form is kept in `cache_dir`. Raises ChatError when a package is missing."""
        try:
            import jieba
            from misaki import zh
        except ImportError as error:
            raise package_missing(error) from error
        # jieba reports its loading on stderr, and keeps its parsed word list in the shared temporary folder.
        jieba.setLogLevel(logging.WARNING)
        cache_dir.mkdir(parents=True, exist_ok=True)
        self._words: Any = jieba.Tokenizer()
        self._words.tmp_dir = str(cache_dir)
        self._words.initialize()
        self._say: Any = zh.ZHG2P.word2ipa

    def phonemes(self, characters: str) -> str:
        """The phonemes of a run of Chinese characters, a space between words."""
        words = (self._word(word) for word in self._words.lcut(characters))
        return " ".join(filter(None, words)).replace(_NON_SYLLABIC_BELOW, "")

    def _word(self, word: str) -> str:
        try:
            said: str = self._say(word)
        except ValueError:
            # Sixty-odd characters of the block are units and radicals without a Mandarin syllable of their own.
            if len(word) > 1:
                return "".join(self._word(character) for character in word)
            log.debug("no Mandarin reading for %r", word)
            return ""
        return said
