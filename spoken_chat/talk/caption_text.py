"""What captions show: words that stay, and words that may still change. Pure text: no sound, no time.

Speech is drafted in pieces; the drafts of a piece hear ever more of it, and their first words soon come out alike. What
two drafts in a row agree on stays (the local agreement of streaming Whisper: Macháček, Dabre, Bojar, 2023).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_SPACELESS: Final = r"\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
"""Chinese and Japanese, and their punctuation: written without spaces."""

_UNIT: Final = re.compile(rf"[{_SPACELESS}]|[^\s{_SPACELESS}]+")
_WITHOUT_SPACE: Final = re.compile(rf"[{_SPACELESS}]")
_FULL_STOPS: Final = ".。…"


class CaptionText:
    """The captions of one utterance. `stable` only ever grows; `stable + tail` is the whole text."""

    def __init__(self) -> None:
        self.stable = ""
        """What will not change any more."""
        self._agreed: list[str] = []
        self._open: list[str] = []

    @property
    def tail(self) -> str:
        """What may still change; with the space that parts it from `stable`."""
        return _appended(self.stable, self._open)[len(self.stable) :]

    def update(self, heard: str) -> None:
        """`heard` is a new draft of the piece in progress.

        Its last word may be half spoken: that one does not stay yet, whatever the draft before said.
        """
        rest = self._rest(heard)
        alike = 0
        while alike < min(len(rest) - 1, len(self._open)) and _key(rest[alike]) == _key(self._open[alike]):
            alike += 1
        self.stable = _appended(self.stable, rest[:alike])
        self._agreed += rest[:alike]
        self._open = rest[alike:]

    def freeze(self, heard: str, *, sentence_may_end: bool) -> None:
        """`heard` is the whole of the piece in progress, of which earlier drafts may have heard more: the next one's
        beginning. All of it stays, but for a full stop where the speaker did not pause.
        """
        rest = self._rest(heard)
        if rest and not sentence_may_end:
            rest[-1] = rest[-1].rstrip(_FULL_STOPS)
        self.stable = _appended(self.stable, rest)
        self._open = self._open[_matching(rest, self._open) :]
        self._agreed = []

    def _rest(self, heard: str) -> list[str]:
        """The words of the piece that come after those that stay."""
        words = words_of(heard)
        return words[_matching(self._agreed, words) :]


def words_of(text: str) -> list[str]:
    """The words of `text` as written, each with the punctuation after it; each Chinese character is one."""
    words: list[str] = []
    for unit in _UNIT.findall(text):
        if words and not _key(unit):
            words[-1] = _appended(words[-1], [unit])
        elif _key(unit):
            words.append(unit)
    return words


def _key(word: str) -> str:
    """`word` as it is compared."""
    return "".join(char for char in word.casefold() if char.isalnum())


def appended(text: str, more: str) -> str:
    """`text` and then `more`, parted by a space where both are written with spaces."""
    return _appended(text, [more]) if more else text


def _appended(text: str, words: Sequence[str]) -> str:
    for word in words:
        spaced = text and not _WITHOUT_SPACE.match(text[-1]) and not _WITHOUT_SPACE.match(word)
        text += f" {word}" if spaced else word
    return text


def _matching(said: Sequence[str], words: Sequence[str]) -> int:
    """How many of the first `words` are what was `said`, perhaps with some words heard otherwise, missing or added."""
    distances = list(range(len(words) + 1))  # of nothing said to the first n words
    for count, one in enumerate(said, start=1):
        row = [count]
        for index, other in enumerate(words):
            replaced = distances[index] + (_key(one) != _key(other))
            row.append(min(replaced, distances[index + 1] + 1, row[index] + 1))
        distances = row
    return min(range(len(words) + 1), key=lambda length: (distances[length], abs(length - len(said))))
