"""Kokoro v1.0's phoneme vocabulary: symbols to token ids, and long phoneme strings to pieces the model takes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

log = logging.getLogger(__name__)

_SYMBOLS: Final = {
    1: ";:,.!?",
    9: '—…"()“” \u0303ʣʥʦʨᵝ\uab67AI',
    31: "O",
    33: "Q",
    35: "ST",
    39: "W",
    41: "Yᵊabcdef",
    50: "hijklmnopqrstuvwxyzɑɐɒæ",
    75: "βɔɕç",
    80: "ɖðʤə",
    85: "ɚɛɜ",
    90: "ɟ",
    92: "ɡ",
    99: "ɥ",
    101: "ɨɪʝ",
    110: "ɯɰŋɳɲɴø",
    118: "ɸθœ",
    123: "ɹ",
    125: "ɾɻ",
    128: "ʁɽʂʃʈʧ",
    135: "ʊʋ",
    138: "ʌɣɤ",
    142: "χʎ",
    147: "ʒʔ",
    156: "ˈˌː",
    162: "ʰ",
    164: "ʲ",
    169: "↓",
    171: "→↗↘",
    177: "ᵻ",
}
"""Runs of symbols by the id of their first one; 114 of the 178 ids are in use, 0 is the padding at either end."""

VOCABULARY: Final[Mapping[str, int]] = MappingProxyType(
    {symbol: first + offset for first, run in _SYMBOLS.items() for offset, symbol in enumerate(run)}
)
"""Token id of each phoneme symbol."""

SENTENCE_ENDS: Final = ".!?…"
_BREAKS: Final = (SENTENCE_ENDS, ";:,—", " ")
"""Where a long string is cut: the first kind of which one stands in the later half of what fits."""


def encode(phonemes: str) -> list[int]:
    """The token ids of `phonemes`, without padding. Unknown symbols are left out and counted in the debug log."""
    ids = [VOCABULARY[symbol] for symbol in phonemes if symbol in VOCABULARY]
    if len(ids) < len(phonemes):
        unknown = sorted({symbol for symbol in phonemes if symbol not in VOCABULARY})
        log.debug("%d phoneme symbols are not in the vocabulary: %s", len(phonemes) - len(ids), unknown)
    return ids


def split_phonemes(phonemes: str, longest: int) -> list[str]:
    """`phonemes` in pieces of at most `longest` symbols, cut behind punctuation or a space where there is one.

    The pieces joined give back `phonemes`.
    """
    pieces: list[str] = []
    rest = phonemes
    while len(rest) > longest:
        cut = _cut(rest[:longest])
        pieces.append(rest[:cut])
        rest = rest[cut:]
    return [*pieces, rest] if rest else pieces


def _cut(window: str) -> int:
    for marks in _BREAKS:
        cut = max(window.rfind(mark) for mark in marks) + 1
        if cut > len(window) // 2:
            return cut
    return max(window.rfind(" ") + 1, 0) or len(window)
