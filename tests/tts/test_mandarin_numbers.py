"""Figures in Chinese text are read as a Mandarin speaker reads them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoken_chat.tts.mandarin_numbers import read_numbers


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("现在是10:30", "现在是十点三十分"),
        ("10:00开会", "十点整开会"),
        ("7:05出发", "七点零五分出发"),
        ("2026年11月30日", "二零二六年十一月三十日"),
        ("2026-11-30", "二零二六年十一月三十日"),
        ("5000年历史", "五千年历史"),
        ("涨了50%", "涨了百分之五十"),
        ("10%-20%", "百分之十到百分之二十"),
        ("3.14", "三点一四"),
        ("1,000元", "一千元"),
        ("12345.678", "一万二千三百四十五点六七八"),
        ("-5度", "零下五度"),
        ("温度是-5°C", "温度是零下五摄氏度"),
        ("等于-3", "等于负三"),
        ("3月-5月", "三月到五月"),
        ("20°C", "二十摄氏度"),
        ("3-5天", "三到五天"),
        ("1/2", "二分之一"),
        ("比分3:2", "比分三比二"),
        ("$3.5亿", "三点五亿美元"),
        ("¥20", "二十元"),
        ("电话13812345678", "电话幺三八幺二三四五六七八"),
        ("007", "零零七"),
        ("第3名", "第三名"),
        ("60km/h", "六十公里每小时"),
        ("1+1=2", "一加一等于二"),
        ("v1.2.3", "v一点二点三"),
        ("GPT4", "GPT四"),
        ("RTX 5090", "RTX 五零九零"),
        ("Qwen3.6-35B", "Qwen三点六-三十五B"),
        ("100000000", "一亿"),
        ("12345678901234567890", "一二三四五六七八九零一二三四五六七八九零"),
    ],
)
def test_a_figure_is_read_aloud(written: str, read: str) -> None:
    assert read_numbers(written) == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2个人", "两个人"),
        ("2小时", "两小时"),
        ("2万", "两万"),
        ("第2个", "第二个"),
        ("12个", "十二个"),
        ("2月2号", "二月二号"),
    ],
)
def test_two_of_something_has_its_own_word(written: str, read: str) -> None:
    assert read_numbers(written) == read


def test_text_without_figures_stays_as_it_is() -> None:
    assert read_numbers("今天天气真好,我们走吧。") == "今天天气真好,我们走吧。"


@given(st.text("0123456789.,:/-%$¥°Cab第个年月日 ", max_size=30))
def test_no_digit_is_left_whatever_the_form(text: str) -> None:
    assert not re.search(r"\d", read_numbers(text))
