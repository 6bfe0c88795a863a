"""What is left to say after a voice broke off: never less than what was not heard, seldom more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoken_chat.tts.interruption import WORD_END_MARGIN, AnnouncedWord, remaining_text, speakable


def after(count: int, text: str, *announced: str) -> str:
    """What remains of `text` when `count` of the `announced` words, one a second, have been heard in full."""
    words = [AnnouncedWord(word, index + 1.0) for index, word in enumerate(announced)]
    return remaining_text(text, words, count + WORD_END_MARGIN + 0.01)


def test_the_text_goes_on_with_the_first_word_not_heard_in_full() -> None:
    text = "Hello there, my good friend."

    assert after(2, text, "Hello", "there", "my", "good", "friend") == "my good friend."


def test_a_word_whose_end_has_only_just_come_is_said_again() -> None:
    words = [AnnouncedWord("one", 1.0), AnnouncedWord("two", 2.0)]

    assert remaining_text("one two three", words, 2.0 + WORD_END_MARGIN / 2) == "two three"


def test_chinese_words_are_found_without_spaces() -> None:
    assert after(3, "今天天气很好，我们去公园吧。", "今天", "天气", "很好", "我们") == "我们去公园吧。"
    assert after(1, "是的是的是的", "是的", "是的", "是的") == "是的是的"


def test_words_that_were_not_announced_yet_remain() -> None:
    assert after(1, "one two three", "one") == "two three"


def test_without_any_announced_word_everything_remains() -> None:
    assert after(5, " one two three") == " one two three"


def test_nothing_remains_when_only_punctuation_is_left() -> None:
    assert after(2, "“Well done!” …", "Well", "done") == ""


@pytest.mark.parametrize(
    ("text", "announced", "count", "expected"),
    [
        ("I have 22 cats and dogs", ("I", "have", "twenty", "two", "cats", "and", "dogs"), 3, "22 cats and dogs"),
        ("I have 22 cats and dogs", ("I", "have", "twenty", "two", "cats", "and", "dogs"), 4, "22 cats and dogs"),
        ("I have 22 cats and dogs", ("I", "have", "twenty", "two", "cats", "and", "dogs"), 5, "and dogs"),
        ("我在2023年认识了他们", ("我", "在", "二零", "二三", "年", "认识", "了", "他们"), 6, "了他们"),
        ("我在2023年认识了他们", ("我", "在", "二零", "二三", "年", "认识", "了", "他们"), 3, "2023年认识了他们"),
        ("1 day or one year", ("one", "day", "or", "one", "year"), 1, "1 day or one year"),
        ("1 day or one year", ("one", "day", "or", "one", "year"), 3, "one year"),
        (
            "The lot is $5 or less now",
            ("The", "lot", "is", "five", "dollars", "or", "less", "now"),
            4,
            "$5 or less now",
        ),
        ("101 dogs or one dogs", ("hundred", "and", "one", "dogs", "or", "one", "dogs"), 4, "101 dogs or one dogs"),
        ("101 dogs or one dogs", ("hundred", "and", "one", "dogs", "or", "one", "dogs"), 5, "one dogs"),
        ("Only 50% of it", ("Only", "50", "percent", "of", "it"), 2, "50% of it"),
        ("It is 3.5 metres", ("It", "is", "3", "point", "5", "metres"), 3, "3.5 metres"),
        ("I don't know it", ("I", "don", "t", "know", "it"), 2, "don't know it"),
        ("A bad cat", ("a", "BAD", "ca"), 3, "cat"),
        ("see the catalogue cat", ("see", "the", "cat"), 3, "catalogue cat"),
        ("他说ＡＢＣ好", ("他", "说", "ABC", "好"), 3, "好"),
    ],
)
def test_a_word_announced_otherwise_than_written_is_repeated_rather_than_lost(
    text: str, announced: tuple[str, ...], count: int, expected: str
) -> None:
    assert after(count, text, *announced) == expected


def test_a_word_left_out_of_the_announcements_does_not_stop_the_search() -> None:
    assert after(3, "one two three four five", "one", "three", "four", "five") == "five"


def test_a_mark_that_opens_stays_with_what_it_opens() -> None:
    assert after(1, "Hola, ¿qué tal?", "Hola", "qué", "tal") == "¿qué tal?"
    assert after(1, "她说：“你好”", "她说", "你好") == "“你好”"


NUMBERS = {"1": ["one"], "22": ["twenty", "two"], "101": ["hundred", "and", "one"], "50%": ["fifty", "percent"]}
PLAIN = ["the", "cat", "a", "catalogue", "don't", "一", "我们", "的", "and"]


@given(
    st.lists(st.sampled_from([*NUMBERS, *PLAIN]), min_size=1, max_size=12),
    st.sampled_from([" ", ", ", " … "]),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_no_text_is_ever_lost(tokens: list[str], gap: str, heard: int, announced: int) -> None:
    """Whatever was heard, the rest starts no later than the first token that was not heard in full."""
    text = gap.join(tokens)
    spoken = [(word, index) for index, token in enumerate(tokens) for word in NUMBERS.get(token, [token])]
    heard = min(heard, len(spoken))
    words = [word for word, _ in spoken[:announced]]
    rest = after(heard, text, *words)
    unheard = tokens[spoken[heard][1] :] if heard < len(spoken) else []

    assert text.endswith(rest)
    assert rest.endswith(gap.join(unheard))


@given(st.lists(st.sampled_from(PLAIN[:5]), min_size=1, max_size=12), st.data())
def test_words_announced_as_written_are_neither_lost_nor_repeated(tokens: list[str], data: st.DataObject) -> None:
    heard = data.draw(st.integers(0, len(tokens)))

    assert after(heard, " ".join(tokens) + ".", *tokens) == (" ".join(tokens[heard:]) + "." if tokens[heard:] else "")


@pytest.mark.parametrize(
    ("text", "expected"), [("Hi", True), ("好", True), ("7", True), ("…?! 😀", False), ("", False)]
)
def test_speakable_text_has_a_letter_or_a_digit(text: str, expected: bool) -> None:
    assert speakable(text) is expected
