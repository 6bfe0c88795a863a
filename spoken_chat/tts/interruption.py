"""What is left to say when a voice breaks off in the middle of a clause."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from spoken_chat.errors import ChatError

WORD_END_MARGIN: Final = 0.1
"""Seconds of sound that must have come after the announced end of a word before it counts as spoken.

The coder's delay (46 ms for the mp3 of edge-tts) shifts the sound behind the announced times.
"""

_CLOSING_MARKS: Final = ".,;:!?…)]}\"'”’»。，、；：！？）】》」』"
_SPOKEN_SIGNS: Final = "%‰&@#°§/"
_APOSTROPHES: Final = "'’"
_NUMBER_MARKS: Final = ".,:"


class SpeechInterrupted(ChatError):
    """A voice failed within a clause; `remaining` is the text it did not speak in full, the whole clause at worst."""

    def __init__(self, code: str, message: str, remaining: str, **details: str | int | float) -> None:
        super().__init__(code, message, **details)
        self.remaining = remaining


@dataclass(frozen=True)
class AnnouncedWord:
    """A word as the voice service announced it, and when its sound ends, in seconds from the start of the clause."""

    text: str
    end: float


def speakable(text: str) -> bool:
    """Whether `text` holds anything a voice would say: a letter or a digit of any script."""
    return any(char.isalnum() for char in text)


def remaining_text(text: str, words: Sequence[AnnouncedWord], received: float) -> str:
    """The part of `text` that was not spoken in full after `received` seconds of sound.

    It is `text` from the first word whose sound did not fully come, "" when only punctuation would be left, and all of
    `text` when nothing is known. Announced words may differ from the text ("22" announced as "twenty", "two"), so each
    must stand where the one before ended; text that no announced word matches counts as spoken only once two words
    in a row, each found just once, match behind it. In doubt words are repeated; none is lost.
    """
    said = 0
    located = _ends(text, [word.text for word in words])
    for word, end in zip(words, located, strict=True):
        if word.end + WORD_END_MARGIN > received:
            break
        said = max(said, end)
    rest = text[said:]
    if not _voiced(rest):
        return ""
    return rest.lstrip(_CLOSING_MARKS).lstrip() if said else text


def _ends(text: str, words: Sequence[str]) -> list[int]:
    """For each word, up to where `text` is surely spoken once that word is."""
    folded = _fold(text)
    wanted = [_fold(word.strip()) for word in words]
    ends: list[int] = []
    cursor = 0
    for index, word in enumerate(wanted):
        end = _at(folded, cursor, word)
        if end is None and index + 1 < len(wanted):
            end = _landmark(folded, cursor, word, wanted[index + 1])
        cursor = cursor if end is None else end
        ends.append(cursor)
    return ends


def _at(text: str, cursor: int, word: str) -> int | None:
    """Where `word` ends when it is the next thing to say after `cursor`."""
    start = text.find(word, cursor) if speakable(word) else -1
    if start < 0 or _voiced(text[cursor:start]) or _splits_word(text, start + len(word)):
        return None
    return start + len(word)


def _landmark(text: str, cursor: int, word: str, following: str) -> int | None:
    """Where `word` ends when it and `following` are each found once behind `cursor`, side by side."""
    if not speakable(word) or text.count(word, cursor) != 1 or text.count(following, cursor) != 1:
        return None
    start = text.find(word, cursor)
    end = start + len(word)
    if _splits_word(text, start) or _splits_word(text, end) or _at(text, end, following) is None:
        return None
    return end


def _voiced(text: str) -> bool:
    """Whether a voice may say anything for `text`: like `speakable`, and "%" or "+" within a sentence."""
    return speakable(text) or any(_is_symbol(char) for char in text)


def _is_symbol(char: str) -> bool:
    return char in _SPOKEN_SIGNS or unicodedata.category(char) in ("Sc", "Sm")


def _splits_word(text: str, index: int) -> bool:
    """Whether a cut at `index` would fall within what is said as one: a word, "don't", "3.5", "50%"."""
    if not 0 < index < len(text):
        return False
    before, after, beyond = text[index - 1], text[index], text[index + 1 : index + 2]
    if _is_symbol(after) or (_spaced(before) and _spaced(after)):
        return True
    if after in _APOSTROPHES:
        return before.isalpha() and beyond.isalpha()
    return after in _NUMBER_MARKS and before.isdigit() and beyond.isdigit()


def _spaced(char: str) -> bool:
    """Whether `char` belongs to a script that puts spaces between words."""
    return char.isalnum() and ord(char) < 0x2E80


def _fold(text: str) -> str:
    """`text` with case and full-width forms levelled, character by character, so that positions stay."""
    return "".join(_fold_char(char) for char in text)


def _fold_char(char: str) -> str:
    folded = unicodedata.normalize("NFKC", char).casefold()
    return folded if len(folded) == 1 else char
