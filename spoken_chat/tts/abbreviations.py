"""What a full stop after a word means: the end of a sentence, or part of an abbreviation, initial or list number."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final


def words(text: str) -> frozenset[str]:
    """The words of `text`, which spaces divide."""
    return frozenset(text.split())


TITLES: Final = words("Dr Mr Mrs Ms Mx Prof St Gen Col Capt Lt Sgt Rev Hon Gov Sen Rep Pres Mt Messrs Mme")
NEVER_LAST: Final = TITLES | words("vs cf approx ca viz esp incl dept est resp")
BEFORE_NUMBERS: Final = words(
    "No Nos Fig fig Figs Vol vol Ch ch Sec Art Eq eq p pp Op op Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec"
)
SOMETIMES_LAST: Final = words(
    "etc Inc Ltd Co Corp Jr Sr Bros al Ave Blvd Rd a.m p.m A.M P.M Ph.D B.C A.D min max sec hr hrs oz lb lbs tbsp tsp"
)
LONGEST_ORDINAL: Final = 3
ORDINAL_LEAD: Final = frozenset(":;,.!?：；，。！？")


class DotRule(Enum):
    """What a full stop after one particular word does."""

    ENDS = auto()
    """Ends a sentence."""
    NEVER = auto()
    """Ends none: "Dr.", "e.g.", an initial."""
    ORDINAL = auto()
    """Ends none: it belongs to the number of a list item."""
    UNLESS_NUMBER = auto()
    """Ends one unless a number follows: "No. 5"."""
    UNLESS_LOWER = auto()
    """Ends one only before a capital or CJK: "etc."."""

    @property
    def needs_next(self) -> bool:
        """Whether the word after the space decides."""
        return self in (DotRule.UNLESS_NUMBER, DotRule.UNLESS_LOWER)

    def ends_before(self, char: str) -> bool:
        """Whether the full stop ends a sentence when `char` is what follows."""
        if self is DotRule.UNLESS_NUMBER:
            return not char.isdigit()
        if self is DotRule.UNLESS_LOWER:
            return char.isalpha() and not char.islower()
        return self is DotRule.ENDS


def dot_rule(word: str, leads_line: bool, before: str, last_ordinal: int) -> DotRule:
    """The rule for a full stop right after `word`.

    `leads_line`: nothing was said in its line before it. `before`: the last character before it that is no space.
    `last_ordinal`: the number of the list item before, 0 if none.
    """
    word = word.strip("*_~`\"'")
    if word.isascii() and word.isdigit():
        return _number_rule(word, leads_line, before, last_ordinal)
    if word in NEVER_LAST or _is_initial(word) or (leads_line and len(word) == 1):
        return DotRule.NEVER
    if word in BEFORE_NUMBERS:
        return DotRule.UNLESS_NUMBER
    if word in SOMETIMES_LAST:
        return DotRule.UNLESS_LOWER
    if "." in word and all(len(part) == 1 and part.isalpha() for part in word.split(".")):
        return DotRule.NEVER
    return DotRule.ENDS


def _is_initial(word: str) -> bool:
    return len(word) == 1 and word.isupper()


def _number_rule(word: str, leads_line: bool, before: str, last_ordinal: int) -> DotRule:
    if len(word) > LONGEST_ORDINAL:
        return DotRule.ENDS
    number = int(word)
    starts_list = leads_line or (number == 1 and before in ORDINAL_LEAD)
    return DotRule.ORDINAL if starts_list or number == last_ordinal + 1 else DotRule.ENDS
