"""Numbers, dates, times and units of Chinese text in the characters they are read as."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import cn2an

_DIGITS: Final = "零一二三四五六七八九"
_LONGEST_CARDINAL: Final = 16
"""Digits; a longer number has no everyday reading and is said digit by digit."""

_NUMBER: Final = r"\d+(?:\.\d+)?"
_LARGE: Final = r"[万亿千百]*"
_CURRENCIES: Final = {"$": "美元", "¥": "元", "￥": "元", "€": "欧元", "£": "英镑"}
_UNITS: Final = {
    "km/h": "公里每小时",
    "km": "公里",
    "cm": "厘米",
    "mm": "毫米",
    "kg": "公斤",
    "ml": "毫升",
    "ms": "毫秒",
    "°C": "摄氏度",
    "°F": "华氏度",
    "°": "度",
}
_SYMBOLS: Final = {"+": "加", "=": "等于", "×": "乘", "÷": "除以", "<": "小于", ">": "大于"}
_COUNTED: Final = (
    "个位只名次天周年岁种件条张本块元毛斤倍杯碗瓶家台部辆句首门场遍步层点万千百亿人口双对支把片颗座段节页趟份组套顿秒"
)
_COUNTED_WORDS: Final = "小时|分钟|公里|公斤|厘米|毫米|毫升|毫秒|星期|美元|欧元|英镑"

_GROUPED: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_DATE: Final = re.compile(r"(?<![\d.-])(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?![\d.-])")
_YEAR: Final = re.compile(r"(?<!\d)(1[1-9]\d\d|20\d\d)(?=年)")
_TIME: Final = re.compile(r"(?<![\d:])(\d{1,2}):(\d{2})(?::(\d{2}))?(?![\d:])")
_RATIO: Final = re.compile(r"(?<=\d):(?=\d)")
_PERCENT: Final = re.compile(rf"({_NUMBER})([%‰])")
_CURRENCY: Final = re.compile(rf"([$¥￥€£])\s?({_NUMBER}{_LARGE})(?:元|美元)?")
_PHONE: Final = re.compile(r"(?<![\d-])(?:1[3-9]\d{9}|\d{3,4}-\d{4}-\d{4}|0\d{2,3}-\d{7,8})(?![\d-])")
_VERSION: Final = re.compile(r"(?<![\d.])\d+(?:\.\d+){2,}(?![\d.])")
_FRACTION: Final = re.compile(r"(?<![\d/.])(\d+)/(\d+)(?![\d/.])")
_RANGE: Final = re.compile(rf"(?<![A-Za-z\d.-])({_NUMBER}[%‰]?)\s*[-~–—]\s*(?={_NUMBER}(?![A-Za-z\d.-]))")
_SPAN: Final = re.compile(r"(?<=[年月日号点时分元])\s*[-~–—]\s*(?=\d)")
_BELOW_ZERO: Final = re.compile(r"(?<![A-Za-z\d%-])[-−](?=\d+(?:\.\d+)?\s?(?:度|°))")
_MINUS: Final = re.compile(r"(?<![A-Za-z\d%-])[-−](?=\d)")
_UNIT: Final = re.compile(rf"(?<=\d)\s?({'|'.join(map(re.escape, _UNITS))})(?![A-Za-z/])")
_MODEL_NAME: Final = re.compile(r"(?<=[A-Za-z])([ -]?)(\d{3,})(?![\d.年月日])")
_TWO: Final = re.compile(rf"(?<![\d.第十百千])2(?=[{_COUNTED}]|{_COUNTED_WORDS})(?!个?位数)")
_LEADING_ZERO: Final = re.compile(r"(?<![\d.])0\d+(?!\.?\d)")
_ANY_NUMBER: Final = re.compile(_NUMBER)


def read_numbers(text: str) -> str:
    """`text` (in Unicode form NFKC) with every digit and unit in the characters a Mandarin speaker reads."""
    for pattern, reading in _RULES:
        text = pattern.sub(reading, text)
    for symbol, word in _SYMBOLS.items():
        text = text.replace(symbol, word)
    return text


def by_digit(digits: str) -> str:
    """`digits` one by one: "2026" as 二零二六."""
    return "".join(_DIGITS[int(digit)] for digit in digits)


def cardinal(number: str) -> str:
    """A non-negative decimal number as an amount: "12.5" as 十二点五."""
    whole, _, fraction = number.partition(".")
    said = by_digit(whole) if len(whole) > _LONGEST_CARDINAL else cn2an.an2cn(int(whole), "low")
    return f"{said}点{by_digit(fraction)}" if fraction else said


def _date(match: re.Match[str]) -> str:
    year, month, day = match[1], int(match[3]), int(match[4])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return match[0]
    return f"{by_digit(year)}年{month}月{day}日"


def _time(match: re.Match[str]) -> str:
    hour, minute, second = int(match[1]), match[2], match[3]
    if hour > 24 or int(minute) > 59 or int(second or 0) > 59:
        return match[0]
    said = f"{hour}点"
    if second is None and minute == "00":
        return said + "整"
    said += f"{by_digit(minute) if minute[0] == '0' and minute != '00' else cardinal(minute)}分"
    return said + (f"{cardinal(second)}秒" if second else "")


def _percent(match: re.Match[str]) -> str:
    return ("百分之" if match[2] == "%" else "千分之") + cardinal(match[1])


def _phone(match: re.Match[str]) -> str:
    # One is said "yao" in telephone numbers, so that it is not taken for seven.
    return "，".join(by_digit(group) for group in match[0].split("-")).replace("一", "幺")


def _fraction(match: re.Match[str]) -> str:
    return f"{cardinal(match[2])}分之{cardinal(match[1])}"


_RULES: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (_GROUPED, lambda match: match[0].replace(",", "")),
    (_PHONE, _phone),
    (_DATE, _date),
    (_YEAR, lambda match: by_digit(match[1])),
    (_TIME, _time),
    (_RATIO, "比"),
    (_SPAN, "到"),
    (_BELOW_ZERO, "零下"),
    (_MINUS, "负"),
    (_RANGE, r"\1到"),
    (_PERCENT, _percent),
    (_CURRENCY, lambda match: match[2] + _CURRENCIES[match[1]]),
    (_VERSION, lambda match: "点".join(cardinal(part) for part in match[0].split("."))),
    (_FRACTION, _fraction),
    (_UNIT, lambda match: _UNITS[match[1]]),
    (_MODEL_NAME, lambda match: f"{match[1]}{by_digit(match[2])}"),
    (_TWO, "两"),
    (_LEADING_ZERO, lambda match: by_digit(match[0])),
    (_ANY_NUMBER, lambda match: cardinal(match[0])),
)
"""Applied in this order: what carries its meaning in its form first, plain numbers last."""
