"""Splits a streamed reply into clauses, so that the first one is spoken while the rest is still being generated.

One pass over the characters: a mark that may end a clause is held until the next character shows what it was, so the
clauses do not depend on how the stream was cut, and a clause waits for one character at most (two after "etc.").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import regex

from spoken_chat.tts.abbreviations import DotRule, dot_rule, words

STRONG: Final = frozenset("!?。！？｡‼⁇⁈⁉")
DOTS: Final = frozenset(".．")
COMMAS: Final = frozenset(",;:，、；：､—―…⋯")
MARKS: Final = STRONG | DOTS | COMMAS
LISTING: Final = frozenset("、､")
LISTING_STEPS: Final = 2
"""The items of a list are spoken in one breath: a mark between them asks for the length of two clauses later."""
TIGHT: Final = frozenset(".,;:!?")
"""ASCII marks also stand inside numbers, names and addresses: they end something only before a space or CJK text."""

OPENERS: Final = frozenset("([{（［｛【「『《〈〔“‘«")
CLOSERS: Final = frozenset(")]}）］｝】」』》〉〕”’»'")
BRACKETS: Final = frozenset("([（【")
EMOTICON_EYES: Final = frozenset(":;=-")
SYMMETRIC: Final = frozenset('"*_~`')
"""Marks that open and close alike; which it is follows from how many came before in the line."""

CONJUNCTIONS: Final = words(
    "and but because so which that when while where if or who though although since unless until"
)
LONGEST_CONJUNCTION: Final = max(map(len, CONJUNCTIONS))
LONGEST_ABBREVIATION: Final = 24
LONGEST_BRACKET: Final = 60
LONGEST_MARKER: Final = 12
WIDE_UNITS: Final = 3

_LIST_MARKER = regex.compile(r"\s*[(（]?\d{1,3}[.)）、．]\s*")
_EMOJI = regex.compile(r"[\p{Extended_Pictographic}\p{Emoji_Modifier}\p{Regional_Indicator}\u200D\u20E3\uFE0E\uFE0F]")


@dataclass(frozen=True)
class ClauseLengths:
    """How long a clause must be before a mark may end it, for the first, second, ... clause; the last value stays.

    Units: 1 for a Latin letter or digit, 3 for a CJK character (about the ratio of their speaking times); spaces and
    marks count 0. Kokoro needs 0.6 to 0.9 s per second of sound and gives nothing before the whole clause is done, so
    the sound of one clause must last while the next is made: a lone "Well," would be followed by a hole. Hence the
    first clause has about three words or four CJK characters, and each later minimum at most doubles.
    """

    sentence: int = 4
    """At a sentence's end, any clause: "Sure!" and "好的。" stand alone, "Hi!" and "嗯。" join what follows."""

    comma: Sequence[int] = (12, 24, 48, 72)
    """At a comma-like mark."""

    conjunction: Sequence[int] = (36, 60, 110)
    """Before an English "and", "because", ... when no mark came: a speaker breathes there too."""

    space: Sequence[int] = (90, 130, 165)
    """At any space (or between CJK characters) when nothing else came; 165 letters are about 200 characters."""


class _Level(Enum):
    COMMA = auto()
    SENTENCE = auto()


class _Verdict(Enum):
    HOLD = auto()
    CUT_BEFORE = auto()
    CUT_AFTER = auto()
    NO_CUT = auto()


def is_wide(char: str) -> bool:
    """Whether `char` belongs to CJK text, its punctuation included."""
    return (
        "\u2e80" <= char <= "\ua4cf"
        or "\uac00" <= char <= "\ud7a3"
        or "\uf900" <= char <= "\ufaff"
        or ("\uff00" <= char <= "\uffef" or "\U00020000" <= char <= "\U0003ffff")
    )


def _is_hangul(char: str) -> bool:
    return "\uac00" <= char <= "\ud7a3"


def _at(ladder: Sequence[int], step: int) -> int:
    return ladder[min(step, len(ladder) - 1)]


class ClauseSplitter:
    """Takes one reply as it streams in; a new reply takes a new splitter.

    The clauses joined are the text fed, to the character. Every clause but the last has something to say.
    """

    def __init__(self, lengths: ClauseLengths | None = None) -> None:
        self._lengths = lengths or ClauseLengths()
        self._ready: list[str] = []
        self._count = 0
        self._last_ordinal = 0
        self._solid = ""
        self._start_line()
        self._start_clause()

    def feed(self, text: str) -> list[str]:
        """The clauses that `text` completed, in order."""
        for char in text:
            self._step(char)
        return self._take()

    def finish(self) -> list[str]:
        """The rest: at most one clause."""
        if self._buffer:
            self._cut()
        return self._take()

    def _take(self) -> list[str]:
        ready, self._ready = self._ready, []
        return ready

    def _start_line(self) -> None:
        self._line_units = 0
        self._open_marks: set[str] = set()

    def _start_clause(self) -> None:
        self._buffer: list[str] = []
        self._units = 0
        self._bracket_at: int | None = None
        self._end_word()
        self._forget_mark()

    def _end_word(self) -> None:
        self._word_at: int | None = None
        self._word_leads_line = False
        self._before_word = ""
        self._word_has_dot = False
        self._in_address = False

    def _forget_mark(self) -> None:
        self._level: _Level | None = None
        self._mark_at = 0
        self._strong = False
        self._tight = False
        self._dot = DotRule.ENDS
        self._spaced = False

    def _cut(self) -> None:
        self._ready.append("".join(self._buffer))
        self._count += 1
        self._start_clause()

    def _step(self, char: str) -> None:
        if self._level is not None:
            verdict = self._judge(char, self._level)
            if verdict is _Verdict.HOLD:
                self._append(char)
                return
            if verdict is _Verdict.CUT_AFTER:
                self._append(char)
                self._cut()
                return
            if verdict is _Verdict.CUT_BEFORE:
                self._cut()
            self._forget_mark()
        if char == "\n":
            self._end_line()
        elif char.isspace():
            self._cut_before_conjunction()
            self._append(char)
            self._end_word()
        else:
            self._solid_char(char)

    def _append(self, char: str) -> None:
        previous = self._buffer[-1] if self._buffer else ""
        self._buffer.append(char)
        if char in SYMMETRIC and char != previous:
            self._open_marks ^= {char}
        if char in CLOSERS:
            self._bracket_at = None
        if not char.isspace():
            self._solid = char

    def _end_line(self) -> None:
        self._append("\n")
        self._end_word()
        self._start_line()
        only_marker = len(self._buffer) <= LONGEST_MARKER and _LIST_MARKER.fullmatch("".join(self._buffer))
        if self._units and not only_marker:
            self._cut()

    def _solid_char(self, char: str) -> None:
        """Any character but white space that does not belong to a held mark."""
        if self._units >= _at(self._lengths.space, self._count) and self._may_break_before(char):
            self._cut()
        wide = is_wide(char)
        if wide or char in OPENERS or char in "—―…⋯":
            self._end_word()
        elif self._word_at is None:
            self._word_at = len(self._buffer)
            self._word_leads_line = self._line_units == 0
            self._before_word = self._solid
        if char in BRACKETS and self._bracket_at is None and self._solid not in EMOTICON_EYES:
            self._bracket_at = len(self._buffer)
        if char == "/" and self._word_at is not None:
            self._in_address |= self._word_has_dot or self._buffer[-2:] == [":", "/"]
        if char in MARKS:
            self._hold_mark(char)
        if char.isalnum():
            units = WIDE_UNITS if wide else 1
            self._units += units
            self._line_units += units
        self._append(char)

    def _hold_mark(self, char: str) -> None:
        self._level = _Level.COMMA if char in COMMAS else _Level.SENTENCE
        self._mark_at = len(self._buffer)
        self._strong = char in STRONG
        self._tight = char in TIGHT
        if char not in DOTS or self._word_at is None:
            return
        word = "".join(self._buffer[self._word_at : self._word_at + LONGEST_ABBREVIATION])
        self._dot = dot_rule(word, self._word_leads_line, self._before_word, self._last_ordinal)
        if self._dot is DotRule.ORDINAL:
            self._last_ordinal = int(word.strip("*_~`\"'"))
        self._in_address |= word == "www"
        self._word_has_dot = True

    def _judge(self, char: str, level: _Level) -> _Verdict:
        """What `char` makes of the mark that is held."""
        if char == "\n":
            return _Verdict.NO_CUT
        if self._spaced:
            if char.isspace():
                return _Verdict.HOLD
            return self._cut_if_allowed(_Verdict.CUT_BEFORE, level, self._dot.ends_before(char))
        if char in MARKS:
            self._extend_mark(char, level)
            return _Verdict.HOLD
        if self._closes(char):
            return _Verdict.HOLD
        if _EMOJI.match(char):
            self._tight = False
            return _Verdict.HOLD
        if char.isspace():
            if self._dot.needs_next:
                self._spaced = True
                return _Verdict.HOLD
            return self._cut_if_allowed(_Verdict.CUT_AFTER, level, self._dot is DotRule.ENDS)
        return self._cut_if_allowed(_Verdict.CUT_BEFORE, level, self._ends_unspaced(char, level))

    def _extend_mark(self, char: str, level: _Level) -> None:
        """`char` continues a run of marks: an ellipsis, "?!", "e.g.,"."""
        if char in STRONG:
            self._level = _Level.SENTENCE
            self._strong = True
            self._dot = DotRule.ENDS
        elif self._solid in DOTS and not self._strong:
            self._level = _Level.COMMA
            self._dot = DotRule.ENDS
        else:
            self._level = level
        self._tight = char in TIGHT

    def _closes(self, char: str) -> bool:
        if char in SYMMETRIC:
            return char in self._open_marks or char == self._buffer[-1]
        return char in CLOSERS

    def _ends_unspaced(self, char: str, level: _Level) -> bool:
        """Whether the held mark may end a clause right before `char`, without a space between."""
        if char == "(" and self._buffer[-1] == "]":
            return False
        if self._tight:
            return (is_wide(char) or char in "“‘") and not self._in_address and self._dot.ends_before(char)
        before = self._buffer[self._mark_at - 1] if self._mark_at else ""
        in_number = before.isdigit() and char.isdigit() and len(self._buffer) == self._mark_at + 1
        return not in_number or (level is _Level.SENTENCE and self._buffer[-1] not in DOTS)

    def _cut_if_allowed(self, cut: _Verdict, level: _Level, ends: bool) -> _Verdict:
        if level is _Level.SENTENCE:
            long_enough = self._units >= self._lengths.sentence
        else:
            step = self._count + (LISTING_STEPS if self._buffer[self._mark_at] in LISTING else 0)
            long_enough = self._units >= _at(self._lengths.comma, step) and not self._in_bracket()
        return cut if ends and long_enough else _Verdict.NO_CUT

    def _in_bracket(self) -> bool:
        """Whether a bracket is open: a link's label or a stage direction reaches the cleaning whole."""
        return self._bracket_at is not None and len(self._buffer) - self._bracket_at < LONGEST_BRACKET

    def _may_break_before(self, char: str) -> bool:
        """Whether a clause that is too long may end here: never inside a word, a number or after "Dr."."""
        previous = self._buffer[-1]
        if previous.isspace():
            return not (self._solid in DOTS or (self._solid.isdigit() and char.isdigit()))
        breakable = is_wide(previous) and previous.isalpha() and char.isalpha()
        return breakable and not (_is_hangul(previous) or _is_hangul(char))

    def _cut_before_conjunction(self) -> None:
        start = self._word_at
        if not start or len(self._buffer) - start > LONGEST_CONJUNCTION or self._in_bracket():
            return
        word = self._buffer[start:]
        before = self._units - len(word)
        if before < _at(self._lengths.conjunction, self._count) or "".join(word) not in CONJUNCTIONS:
            return
        if self._buffer[start - 1].isspace() and self._before_word not in DOTS:
            del self._buffer[start:]
            self._cut()
            self._buffer = word
            self._units = len(word)
