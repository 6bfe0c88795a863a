"""Symbols that voices skip or misread, said as words in English and Chinese."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import regex

ENGLISH: Final = "en"
CHINESE: Final = "zh"

_LEFT: Final = r"(?<=[\p{L}\p{N})²³%°])\s*"
_RIGHT: Final = r"\s*(?=[\p{L}\p{N}(√$¥€£−])"
_COUNTERS: Final = "天个年岁月日号点人次分秒小周星只公米斤块元倍页层章步本件张句位种"


@dataclass(frozen=True)
class _Said:
    """A pattern and what is said for it; `\\1` is its first group."""

    pattern: regex.Pattern[str]
    english: str
    chinese: str


def _said(pattern: str, english: str, chinese: str) -> _Said:
    return _Said(regex.compile(pattern), english, chinese)


def _between(symbol: str, english: str, chinese: str) -> _Said:
    """A sign between two operands."""
    return _said(_LEFT + f"(?:{symbol})" + _RIGHT, english, chinese)


_LATEX: Final = tuple(
    (regex.compile(pattern), plain)
    for pattern, plain in (
        (r"\$\$?(?=[^$\n]*[\\^_=])([^$\n]+)\$\$?", r"\1"),
        (r"\\[()\[\]]", " "),
        (r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2"),
        (r"\\sqrt\{([^{}]*)\}", r"√\1"),
        (r"\\(?:text|mathrm|mathbf)\{([^{}]*)\}", r"\1"),
        (r"\\(?:times|cdot)(?![A-Za-z])", "×"),
        (r"\\div(?![A-Za-z])", "÷"),
        (r"\\leq?(?![A-Za-z])", "≤"),
        (r"\\geq?(?![A-Za-z])", "≥"),
        (r"\\neq?(?![A-Za-z])", "≠"),
        (r"\\approx(?![A-Za-z])", "≈"),
        (r"\\pm(?![A-Za-z])", "±"),
        (r"\\(?:to|rightarrow)(?![A-Za-z])", "→"),
        (r"\\(?:left|right)(?![A-Za-z])", ""),
        (r"\^\{([^{}]*)\}", r"^\1"),
    )
)

_SYMBOLS: Final = (
    _said(r"(?<=\d)\s*(?:°\s*C|℃)(?![A-Za-z])", " degrees Celsius", "摄氏度"),
    _said(r"(?<=\d)\s*(?:°\s*F|℉)(?![A-Za-z])", " degrees Fahrenheit", "华氏度"),
    _said(r"(?<=\d)\s*°", " degrees ", "度"),
    _said(r"(?<=\d)\s*km/h(?![A-Za-z])", " kilometres per hour", "公里每小时"),
    _said(r"(?<=\d)\s*m/s(?![A-Za-z])", " metres per second", "米每秒"),
    _said(r"(?<=\d)\s*km²", " square kilometres", "平方公里"),
    _said(r"(?<=\d)\s*(?:m²|㎡)", " square metres", "平方米"),
    _said(r"(?<=\d)\s*m³", " cubic metres", "立方米"),
    _said(r"²", " squared", "的平方"),
    _said(r"³", " cubed", "的立方"),
    _said(r"(?<=[\p{L}\p{N})])\^(-?[\p{L}\p{N}]+)", r" to the power of \1", r"的\1次方"),
    _said(r"(?<=\d%?)\s*[~～〜–—]\s*(?=\d)", " to ", "到"),
    _said(r"(?<=[月日号点年岁元])\s*[~～〜–]\s*(?=\d)", " to ", "到"),
    _said(r"(?<=(?:周|星期|礼拜)[一二三四五六日天])\s*[~～〜–—]\s*(?=周|星期|礼拜)", " to ", "到"),
    _said(r"(?<![\p{L}\p{N}])[~～〜]\s*(?=\d)", "about ", "约"),
    _said(r"\s*(?:<-+>|↔)\s*", " and ", "和"),
    _said(r"\s*(?:-+>|=+>|[→⇒⟶])\s*", " to ", "到"),
    _said(r"\s*(?:<-+(?!\d)|[←⇐])\s*", ", ", "，"),
    _between(r"≈", " is about ", "约等于"),
    _between(r"≠|!=", " is not equal to ", "不等于"),
    _between(r"≤|<=", " is at most ", "小于等于"),
    _between(r"≥|>=", " is at least ", "大于等于"),
    _between(r"<", " is less than ", "小于"),
    _between(r">", " is greater than ", "大于"),
    _between(r"={1,3}", " equals ", "等于"),
    _said(r"≈\s*", "about ", "约"),
    _said(r"\s*±\s*", " plus or minus ", "正负"),
    _said(r"\s*×\s*", " times ", "乘"),
    _said(r"(?<=\d)(\s*)\*\1(?=\d)", " times ", "乘"),
    _said(r"\s*÷\s*", " divided by ", "除以"),
    _between(r"\+", " plus ", "加"),
    _between(r"−", " minus ", "减"),
    _said(r"(?<=\d)\s+-\s+(?=\d)", " minus ", "减"),
    _said(r"−", " minus ", "负"),
    _said(r"√\s*", " the square root of ", "根号"),
    _said(r"\s*∞\s*", " infinity ", "无穷大"),
    _said(r"\s*[&＆]\s*", " and ", "和"),
    _said(r"(?<![A-Za-z])([CF])#", r"\1 sharp", r"\1 sharp"),
    _said(r"[#＃]\s?(?=\d)", "number ", "第"),
    _said(r"\s*@\s*", " at ", " "),
)

_HYPHEN_RANGE = regex.compile(rf"(?<![\p{{L}}\d.-])(\d+)-(?=\d+[{_COUNTERS}])|(?<=\p{{Han}})(\d+)-(?=\d+[{_COUNTERS}])")


def say_symbols(text: str, language: str) -> str:
    """`text` with symbols as words of `language`; in a language without words here they become spaces."""
    for latex, plain in _LATEX:
        text = latex.sub(plain, text)
    if language == CHINESE:
        text = _HYPHEN_RANGE.sub(lambda match: f"{match[1] or match[2]}到", text)
    for symbol in _SYMBOLS:
        said = {ENGLISH: symbol.english, CHINESE: symbol.chinese}.get(
            language, r" \1" if symbol.pattern.groups else " "
        )
        text = symbol.pattern.sub(said, text)
    return text
