"""The page speaks English and Chinese, and knows every fault that can reach it."""

from __future__ import annotations

import re

import pytest

from spoken_chat.errors import ChatError
from spoken_chat.settings import ROOT
from spoken_chat.timeline import METRIC_NAMES
from spoken_chat.ui.faults import FAULTS_ZH
from spoken_chat.ui.text import definition, fault, figure_name, i18n, language_of, sentence, word
from spoken_chat.ui.words import FIGURES

NOT_ON_THE_PAGE = {
    "address_unusable", "bad_persona", "bad_repeats", "bad_setting", "cannot_write", "key_not_set", "key_wrong",
    "no_persona", "no_such_file", "persona_unknown", "report_not_written", "voice_unknown",
}  # fmt: skip
"""Faults that end the program before there is a page, or belong to the command line or to programs as clients.

Those of the benchmarks have names of their own, `bench_...`.
"""


def codes_in_the_source() -> set[str]:
    raised = re.compile(r'(?:ChatError|SpeechInterrupted|SpeechNotice|_error|_notice)\(\s*"([a-z0-9_]+)"')
    files = [*(ROOT / "spoken_chat").rglob("*.py"), ROOT / "app.py"]
    return {code for file in files for code in raised.findall(file.read_text(encoding="utf-8"))}


def test_every_fault_that_can_reach_the_page_has_a_chinese_sentence() -> None:
    codes = codes_in_the_source()
    assert len(codes) > 50
    shown = {code for code in codes - NOT_ON_THE_PAGE if not code.startswith("bench_")}
    assert shown - set(FAULTS_ZH) == set()


def test_every_chinese_fault_is_one_sentence() -> None:
    for text in FAULTS_ZH.values():
        assert text.endswith("。")
        assert "\n" not in text


def test_both_languages_have_the_same_words() -> None:
    english, chinese = i18n().translations["en"], i18n().translations["zh"]
    assert set(english) == set(chinese)
    assert all(chinese.values())
    assert i18n().translations["zh-CN"] == chinese


def test_every_figure_of_a_turn_has_a_name_and_one_line_that_defines_it() -> None:
    assert set(FIGURES) == set(METRIC_NAMES)
    for name in METRIC_NAMES:
        for language in ("en", "zh"):
            assert figure_name(name, language)
            assert definition(name, language).endswith((".", "。"))
            assert "\n" not in definition(name, language)


@pytest.mark.parametrize(
    ("header", "language"),
    [("zh-CN,zh;q=0.9,en;q=0.8", "zh"), ("en-US,en;q=0.9,zh;q=0.8", "en"), ("fr", "en"), ("", "en"), (None, "en")],
)
def test_the_language_is_the_browsers_first(header: str | None, language: str) -> None:
    assert language_of(header) == language


def test_a_fault_without_translation_is_told_in_english() -> None:
    error = ChatError("brand_new", "Something new is wrong; try again.")
    assert fault(error, "zh") == error.message
    assert sentence("llm_empty", "x", "zh") == FAULTS_ZH["llm_empty"]
    assert sentence("llm_empty", "x", "en") == "x"
    assert word("restart", "zh") == "重新开始"
