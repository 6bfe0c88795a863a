"""The spoken-text cleaning: what a voice is given for a clause."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spoken_chat.tts.spoken_text import SpokenText, spoken


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("Nice to meet you, Ann.", "Nice to meet you, Ann."),
        ("**Hello** *big* ~~bad~~ __world__!", "Hello big bad world!"),
        ("**Hello, ", "Hello,"),
        ("world!** ", "world!"),
        ("## A title ##\n", "A title"),
        ("- Buy milk\n", "Buy milk"),
        ("  * [x] Buy milk\n", "Buy milk"),
        ("1. Buy milk\n", "1. Buy milk"),
        ("> She said so.", "She said so."),
        ("One\nTwo.\nThree", "One, Two. Three"),
        ("Run `make test` now.", "Run make test now."),
        ("Read [the manual](https://a.b/c_(d)), please.", "Read the manual, please."),
        ("![a cat](cat.png) sits here.", "a cat sits here."),
        ("the manual](https://a.b) helps.", "the manual helps."),
        ("|Name|Age|\n|:---|---:|\n|Ann|7|\n", "Name, Age, Ann, 7"),
        ("See <https://a.b/c> now.", "See link now."),
        ("<b>Hi</b> there<br>Ann &amp; Bob", "Hi there Ann and Bob"),
        ("snake_case stays legible", "snake case stays legible"),
    ],
)
def test_markup_is_not_spoken_but_its_words_are(clause: str, said: str) -> None:
    assert spoken(clause, "en") == said


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("See https://a.b/c?d=1,2. Then go.", "See link. Then go."),
        ("Look at www.example.org, or example.com/x!", "Look at link, or link!"),
        ("It is on example.com today.", "It is on example dot com today."),
        ("Write to ann_b@mail.co.uk.", "Write to ann underscore b at mail dot co dot uk."),
    ],
)
def test_addresses_are_said_shortly_in_english(clause: str, said: str) -> None:
    assert spoken(clause, "en") == said


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("请看https://a.b/c。", "请看链接。"),
        ("写信到ann.b@mail.com。", "写信到ann点b艾特mail点com。"),
        ("打开example.com吧。", "打开example点com吧。"),
    ],
)
def test_addresses_are_said_shortly_in_chinese(clause: str, said: str) -> None:
    assert spoken(clause, "zh") == said


@pytest.mark.parametrize(
    "emoji",
    [
        "😀",
        "❤️",
        "👍🏽",
        "👨‍👩‍👧‍👦",
        "🏳️‍🌈",
        "🇨🇳",
        "🏴󠁧󠁢󠁳󠁣󠁴󠁿",
        "1️⃣",
        "#️⃣",
        "☀",
        "✨✨",
        ":)",
        ":-D",
        "T_T",
        "^_^",
        "(^_^)",
        "(￣▽￣)",
        "(≧▽≦)/",
        "ʕ•ᴥ•ʔ",
    ],
)
def test_emoji_and_faces_are_not_spoken(emoji: str) -> None:
    assert spoken(f"Hi {emoji} Ann! {emoji}", "en") == "Hi Ann!"
    assert spoken(emoji, "zh") == ""


def test_an_emoji_between_chinese_words_is_a_pause() -> None:
    assert spoken("你好😊今天怎么样？😊", "zh") == "你好，今天怎么样？"


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("[happy] Hi Ann.", "Hi Ann."),
        ("[laughs] Hi Ann.", "Hi Ann."),
        ("(sighs) Fine.", "Fine."),
        ("(softly laughing) Fine.", "Fine."),
        ("(smiles at the cat) Fine.", "Fine."),
        ("*smiles* Hello.", "Hello."),
        ("[开心]你好。", "你好。"),
        ("（笑）你好。", "你好。"),
        ("（轻轻地叹了口气）好吧。", "好吧。"),
        ("*微笑* 你好。", "你好。"),
        ("【点头】好的（笑）。", "好的。"),
    ],
)
def test_stage_directions_are_not_spoken(clause: str, said: str) -> None:
    assert spoken(clause, "zh") == said


@pytest.mark.parametrize(
    "clause",
    [
        "The cat (a grey one) sleeps.",
        "(Just between us) I like it.",
        "(A wave is not a particle.)",
        "（开玩笑的）别当真。",
        "北京（中国的首都）很大。",
        "她说：“你好！”",
    ],
)
def test_what_really_stands_in_brackets_is_spoken(clause: str) -> None:
    assert spoken(clause, "zh") == clause


def test_emphasis_is_no_stage_direction() -> None:
    assert spoken("*Really* good, *not* bad.", "en") == "Really good, not bad."


@pytest.mark.parametrize(
    ("clause", "english", "chinese"),
    [
        ("25°C", "25 degrees Celsius", "25摄氏度"),
        ("25 ℃", "25 degrees Celsius", "25摄氏度"),
        ("60 km/h", "60 kilometres per hour", "60公里每小时"),
        ("20m²", "20 square metres", "20平方米"),
        ("x^2", "x to the power of 2", "x的2次方"),
        ("3~5", "3 to 5", "3到5"),
        ("3–5", "3 to 5", "3到5"),
        ("~20", "about 20", "约20"),
        ("1 + 1 = 2", "1 plus 1 equals 2", "1加1等于2"),
        ("3 * 4", "3 times 4", "3乘4"),
        ("3 × 4 ÷ 2", "3 times 4 divided by 2", "3乘4除以2"),
        ("5 - 3", "5 minus 3", "5减3"),
        ("5 > 3", "5 is greater than 3", "5大于3"),
        ("5 ≤ 8", "5 is at most 8", "5小于等于8"),
        ("π ≈ 3.14", "π is about 3.14", "π约等于3.14"),
        ("A → B", "A to B", "A到B"),
        ("A & B", "A and B", "A和B"),
        ("#1", "number 1", "第1"),
        ("$\\frac{1}{2} \\times x$", "1/2 times x", "1/2乘x"),
    ],
)
def test_symbols_are_said_as_words(clause: str, english: str, chinese: str) -> None:
    assert spoken(clause, "en") == english
    assert spoken(clause, "zh-CN") == chinese


def test_a_range_of_days_or_counts_is_said_in_chinese() -> None:
    assert spoken("周一～周五，3-5天，1月~3月", "zh") == "周一到周五，3到5天，1月到3月"


def test_a_language_without_words_for_symbols_leaves_them_out() -> None:
    assert spoken("a & b = c", "fr") == "a b c"


@pytest.mark.parametrize(
    "clause",
    [
        "It is 3.5 or 22,1 or 1,000,000 at 10:30.",
        "It is -5 degrees, 50% off, $5.",
        "2020-05-01",
        "Use C++ and app.py v1.2.3, and/or both.",
        "Dr. Smith of the U.S. said so, e.g. twice.",
        "圆周率是3.14，现在10:30。",
    ],
)
def test_numbers_and_names_stay_as_they_are(clause: str) -> None:
    assert spoken(clause, "en") == clause


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("No!!! Why??? Really?!?!", "No! Why? Really?"),
        ("太好了！！！真的？！", "太好了！真的？"),
        ("Well..... I see", "Well… I see"),
        ("嗯…………好的。。。", "嗯…好的…"),
        ("好呀～我们走吧～", "好呀，我们走吧"),
        ("” Hello  ,  world .", "Hello, world."),
        ("a\u200bb\ufffd\x07c\ud800d", "ab cd"),
        ("One\u2028two\r\nthree", "One, two, three"),
    ],
)
def test_punctuation_and_spaces_are_tidied(clause: str, said: str) -> None:
    assert spoken(clause, "zh" if "好" in clause else "en") == said


@pytest.mark.parametrize(
    "clause", ["", " \n", "...", "！？", "---", "***", "😊😊", "()", "“”", "|---|---|", "<br>", "[happy]", "（笑）"]
)
def test_a_clause_with_nothing_to_say_is_empty(clause: str) -> None:
    assert spoken(clause, "en") == ""
    assert spoken(clause, "zh") == ""


def test_a_code_block_is_skipped_over_several_clauses() -> None:
    text = SpokenText("en")
    clauses = ["Try this:\n", "```python\n", "x = 1, ", "y = 2\n", "```\nThen run it.\n", "It prints 3."]
    assert [text.clean(clause) for clause in clauses] == ["Try this:", "", "", "", "Then run it.", "It prints 3."]


def test_a_code_block_that_starts_in_the_middle_of_a_line_is_skipped_too() -> None:
    assert spoken("Try this: ```py\nx = 1\n``` and run it.", "en") == "Try this: and run it."


def test_a_longer_fence_holds_a_shorter_one() -> None:
    assert spoken("Look.\n````\n```\ncode\n```\n````\nDone.", "en") == "Look. Done."
    assert spoken("Look.\n~~~\ncode\n~~~\nDone.", "en") == "Look. Done."


def test_code_fenced_within_one_line_keeps_its_words() -> None:
    assert spoken("Run ```make test``` now.", "en") == "Run make test now."


MARKS = " .,!?:;…—–-*_`~#>|[](){}<>=+&@/\\^°²√×\"'\n。，！？、；：～“”（）【】%$\t\r\u200b\ufffd\ud800\u20e3\ufe0f½℃→"
WORDS = (
    "a b I 3 15 你 好 笑 周一 Dr. e.g. 3.5 10:30 a@b.com x.com http://a.b/c C# km/h 😊 ❤️ 👍🏽 🇨🇳 1️⃣ ^_^ :) \\frac{ \\["
)
MARKUP = [
    "**",
    "```",
    "~~~\n",
    "[happy]",
    "(sighs)",
    "（笑）",
    "*smiles*",
    "1. ",
    "- ",
    "&amp;",
    "&lt;",
    "&#38;",
    "<b>",
    "|---|",
]
REPLIES = st.lists(st.sampled_from([*MARKS, *WORDS.split(), *MARKUP]), max_size=40).map("".join)
LANGUAGES = st.sampled_from(["en", "zh", "zh-CN", "fr", ""])


@given(REPLIES | st.text(alphabet=st.characters()), LANGUAGES)
@settings(max_examples=500, deadline=None)
def test_cleaning_takes_any_text_and_changes_clean_text_no_more(text: str, language: str) -> None:
    said = spoken(text, language)
    assert spoken(said, language) == said
    assert said == said.strip()
    assert not set(said) & set("\n\r*`#|[]<>~\ufffd\ud800")
    assert not said or any(char.isalnum() for char in said)


@given(st.lists(REPLIES, max_size=6), LANGUAGES)
@settings(max_examples=100, deadline=None)
def test_words_after_a_closed_code_block_are_spoken_again(clauses: list[str], language: str) -> None:
    text = SpokenText(language)
    for clause in ["```\n", *(clause.replace("`", "").replace("~", "") for clause in clauses)]:
        assert text.clean(clause) == ""
    assert text.clean("```\n") == ""
    assert text.clean("Hello.") == "Hello."
