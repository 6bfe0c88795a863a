"""From spelling to sound, for English words that no dictionary has.

A character-level GRU encoder and decoder in plain numpy. The weights are those of the package `g2p-en` (Apache-2.0),
which is not imported: doing so downloads NLTK data. Architecture: one-layer encoder over letter embeddings, greedy
decoding into ARPABET (https://github.com/Kyubyong/g2p).
"""

from __future__ import annotations

import string
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spoken_chat.weights import package_file

Weights = NDArray[np.float32]

_LETTERS: Final = {letter: index for index, letter in enumerate(string.ascii_lowercase, start=3)}
_UNKNOWN_LETTER: Final = 1
_END_OF_WORD: Final = 2

_VOWELS: Final = {
    "AA": "ɑ",
    "AE": "æ",
    "AH": "ʌ",
    "AO": "ɔ",
    "AW": "W",
    "AY": "I",
    "EH": "ɛ",
    "ER": "ɜɹ",
    "EY": "A",
    "IH": "ɪ",
    "IY": "i",
    "OW": "O",
    "OY": "Y",
    "UH": "ʊ",
    "UW": "u",
}
"""ARPABET vowels as Kokoro writes them; capitals are its diphthongs."""

_UNSTRESSED: Final = {"AH": "ə", "ER": "əɹ"}
_STRESS_MARKS: Final = {"0": "", "1": "ˈ", "2": "ˌ"}

_CONSONANTS: Final = {
    "B": "b",
    "CH": "ʧ",
    "D": "d",
    "DH": "ð",
    "F": "f",
    "G": "ɡ",
    "HH": "h",
    "JH": "ʤ",
    "K": "k",
    "L": "l",
    "M": "m",
    "N": "n",
    "NG": "ŋ",
    "P": "p",
    "R": "ɹ",
    "S": "s",
    "SH": "ʃ",
    "T": "t",
    "TH": "θ",
    "V": "v",
    "W": "w",
    "Y": "j",
    "Z": "z",
    "ZH": "ʒ",
}

_START: Final = "<s>"
_STOP: Final = "</s>"


def _output_symbols() -> list[str]:
    """ARPABET in the order of the decoder's 74 outputs: alphabetical, vowels with their three stresses."""
    plain = sorted([*_VOWELS, *_CONSONANTS])
    symbols = ["<pad>", "<unk>", _START, _STOP]
    for symbol in plain:
        if symbol == "UW":
            symbols.append(symbol)
        symbols.extend([symbol + mark for mark in _STRESS_MARKS] if symbol in _VOWELS else [symbol])
    return symbols


class LetterToSound:
    """Guesses how a word is said from its letters."""

    def __init__(self) -> None:
        """Load the weights (3 MB). Raises ChatError when their package is missing."""
        with np.load(package_file("g2p_en", "checkpoint20.npz"), allow_pickle=False) as stored:
            self._weights: dict[str, Weights] = {name: stored[name] for name in stored.files}
        self._symbols = _output_symbols()

    def arpabet(self, word: str) -> list[str]:
        """The ARPABET symbols of `word`, which should be lower-case a to z; other characters count as unknown."""
        hidden = np.zeros(self._weights["enc_w_hh"].shape[1], dtype=np.float32)
        for index in [*(_LETTERS.get(letter, _UNKNOWN_LETTER) for letter in word), _END_OF_WORD]:
            hidden = self._step("enc", self._weights["enc_emb"][index], hidden)
        symbols: list[str] = []
        previous = self._symbols.index(_START)
        # English has fewer sounds than letters, "x" aside; the bound only stops a decoder that loops.
        for _ in range(2 * len(word) + 2):
            hidden = self._step("dec", self._weights["dec_emb"][previous], hidden)
            previous = int((self._weights["fc_w"] @ hidden + self._weights["fc_b"]).argmax())
            if self._symbols[previous] == _STOP:
                break
            symbols.append(self._symbols[previous])
        return symbols

    def phonemes(self, word: str) -> str:
        """The sounds of `word` in the phoneme letters of Kokoro, stress marked before the vowel."""
        return "".join(_to_kokoro(symbol) for symbol in self.arpabet(word.lower()))

    def _step(self, side: str, value: Weights, hidden: Weights) -> Weights:
        """One step of a GRU (reset, update and candidate gates stacked in that order), shape (128,)."""
        inner = self._weights[f"{side}_w_ih"] @ value + self._weights[f"{side}_b_ih"]
        outer = self._weights[f"{side}_w_hh"] @ hidden + self._weights[f"{side}_b_hh"]
        size = len(hidden)
        gates = 1 / (1 + np.exp(-(inner[: 2 * size] + outer[: 2 * size])))
        reset, update = gates[:size], gates[size:]
        candidate = np.tanh(inner[2 * size :] + reset * outer[2 * size :])
        step: Weights = (1 - update) * candidate + update * hidden
        return step


def _to_kokoro(symbol: str) -> str:
    if symbol in _CONSONANTS:
        return _CONSONANTS[symbol]
    vowel, mark = symbol.rstrip("012"), symbol[-1]
    if vowel not in _VOWELS:
        return ""
    if mark == "0" and vowel in _UNSTRESSED:
        return _UNSTRESSED[vowel]
    return _STRESS_MARKS.get(mark, "") + _VOWELS[vowel]
