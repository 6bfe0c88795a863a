"""Whether words spoken over a reply are meant to stop it."""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"[a-z0-9']+|[\u3400-\u9fff]")

_LISTENING: Final = frozenset(
    {
        *("mhm", "mm", "mmm", "hm", "hmm", "hmmm", "uh", "um", "ah", "oh", "huh", "aha", "ha", "yeah", "yep", "yes"),
        *("ok", "okay", "right", "sure", "wow", "嗯", "哦", "啊", "噢", "喔", "呵", "哈", "唔", "对", "好", "是", "的"),
    }
)
"""Sounds and words by which a listener says no more than that they listen."""


def words_of(text: str) -> list[str]:
    """The words of `text` in small letters; each Chinese character is one."""
    return _WORD.findall(text.lower())


def is_interruption(text: str, reply: str) -> bool:
    """Whether `text`, heard while `reply` plays, asks for the floor.

    Not so: nothing at all, a listener's "mhm", and the reply's own words, which came back from the loudspeaker.
    """
    words = words_of(text)
    if all(word in _LISTENING for word in words):
        return False
    return not _holds(words_of(reply), words)


def _holds(words: list[str], part: list[str]) -> bool:
    """Whether `part` stands in `words`, in order and without gaps. One word alone could be anybody's."""
    if len(part) < 2:
        return False
    return any(words[start : start + len(part)] == part for start in range(len(words) - len(part) + 1))
