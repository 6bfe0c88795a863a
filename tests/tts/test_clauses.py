"""The clause splitter: where a streamed reply is cut, and where it never is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spoken_chat.tts.clauses import ClauseLengths, ClauseSplitter

ANY_COMMA = ClauseLengths(sentence=1, comma=(1,))
"""Cuts at every mark that may end a clause, so that a test sees what the marks alone decide."""


def split(text: str, lengths: ClauseLengths | None = None) -> list[str]:
    splitter = ClauseSplitter(lengths)
    return splitter.feed(text) + splitter.finish()


def feed_all(splitter: ClauseSplitter, chunks: Sequence[str]) -> list[str]:
    return [clause for chunk in chunks for clause in splitter.feed(chunk)]


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("Hello there! How are you? I'm fine.", ["Hello there! ", "How are you? ", "I'm fine."]),
        ("你好呀！今天怎么样？我很好。", ["你好呀！", "今天怎么样？", "我很好。"]),
        ("你好!今天怎么样?我很好.再见", ["你好!", "今天怎么样?", "我很好.", "再见"]),
        ("I like Python.然后呢", ["I like Python.", "然后呢"]),
        ('He said "Come in." Then he left.', ['He said "Come in." ', "Then he left."]),
        ("他说：“你好！”然后走了。", ["他说：“你好！”", "然后走了。"]),
        ('他说:"你好!"然后走了。', ['他说:"你好!"', "然后走了。"]),
        ('你好！"再见"是什么意思', ["你好！", '"再见"是什么意思']),
        ("（你来了。）坐吧。", ["（你来了。）", "坐吧。"]),
        ("**Hello there!** Then go.", ["**Hello there!** ", "Then go."]),
        ("你好！**今天**很好。", ["你好！", "**今天**很好。"]),
        ("Great!😊 Next one.", ["Great!😊 ", "Next one."]),
        ("Great!😊Next one.", ["Great!😊", "Next one."]),
        ("你好！👨‍👩‍👧今天怎么样", ["你好！👨‍👩‍👧", "今天怎么样"]),
        ("Really?! Yes it is.", ["Really?! ", "Yes it is."]),
        ("真的？！是真的。", ["真的？！", "是真的。"]),
        ("Buy milk\nBuy bread\n", ["Buy milk\n", "Buy bread\n"]),
        ("Title\n\nText here.", ["Title\n", "\nText here."]),
        ("We had tea, cake, etc. Then we left.", ["We had tea, cake, ", "etc. Then we left."]),
        ("We left at 5 p.m. Then it rained.", ["We left at 5 p.m. ", "Then it rained."]),
        ("The answer is no. We know.", ["The answer is no. ", "We know."]),
        ("That was in 1990. What a year.", ["That was in 1990. ", "What a year."]),
        ("See https://a.b/c?d=1,2. Then go.", ["See https://a.b/c?d=1,2. ", "Then go."]),
        ("请看https://a.b/c。然后回来。", ["请看https://a.b/c。", "然后回来。"]),
    ],
)
def test_a_sentence_ends_a_clause(text: str, clauses: list[str]) -> None:
    assert split(text) == clauses


@pytest.mark.parametrize(
    "whole",
    [
        "3.5",
        "22,1",
        "1,000,000",
        "1，000",
        "3．5",
        "10:30",
        "10：30",
        "1990—2000",
        "Dr. Smith",
        "e.g. this",
        "(i.e. that)",
        "U.S. Congress",
        "J. R. R. Tolkien",
        "No. 5",
        "Jan. 5",
        "etc. and so on",
        "9 a.m. today",
        "3 tbsp. of sugar",
        "https://a.b/c?d=1,2.x:y;z!w",
        "https://a.b/c?你好",
        "http://localhost?你好",
        "example.com/x?你好",
        "www.example.com?你好",
        "a.b@c.co.uk",
        "app.py",
        "v1.2.3",
        "什么...",
        "...",
        "……",
        "?!",
        "!!!",
        "？！",
        ":)",
        ":-D",
        "^_^",
        "——",
        "[a label, with a comma](https://a.b/c)",
        "[标签，两个](https://a.b/c)",
        "[你好！](https://a.b/c)",
    ],
)
@pytest.mark.parametrize(("before", "after"), [("I say ", " to you"), ("我说", "给你"), ("", "")])
def test_what_belongs_together_is_never_cut(before: str, whole: str, after: str) -> None:
    inside = range(len(before) + 1, len(before) + len(whole))
    text = before + whole + after
    cuts, at = [], 0
    for clause in split(text, ANY_COMMA)[:-1]:
        at += len(clause)
        cuts.append(at)
    assert not set(cuts).intersection(inside), split(text, ANY_COMMA)


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("1. Foo is good.\n2. Bar is not.\n", ["1. Foo is good.\n", "2. Bar is not.\n"]),
        ("1.\nFoo is good.", ["1.\nFoo is good."]),
        ("Here: 1. Apples 2. Pears 3. Plums.", ["Here: 1. Apples 2. Pears 3. Plums."]),
        ("1.苹果\n2、香蕉\n", ["1.苹果\n", "2、香蕉\n"]),
        ("**1.** Foo is good.", ["**1.** Foo is good."]),
        ("a. Foo is good.", ["a. Foo is good."]),
    ],
)
def test_the_number_of_a_list_item_stays_with_the_item(text: str, clauses: list[str]) -> None:
    assert split(text) == clauses


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("That is a good question, and here is why.", "That is a good question, "),
        ("嗯，今天天气真好，我们去公园吧！", "嗯，今天天气真好，"),
        ("我觉得可以；你呢？", "我觉得可以；"),
        ("That one (the blue one) is really good, and cheap.", "That one (the blue one) is really good, "),
        ("Well, I think that is right, yes.", "Well, I think that is right, "),
        ("Hmm, well, yes, no, let us think.", "Hmm, well, yes, no, "),
        ("Let me think about it... I would say yes.", "Let me think about it... "),
        ("让我想一想……应该可以吧。", "让我想一想……"),
        ("It is what I wanted — a little rest.", "It is what I wanted — "),
    ],
)
def test_the_first_clause_ends_at_a_comma_once_its_sound_lasts_while_the_next_is_made(text: str, first: str) -> None:
    assert split(text)[0] == first


def test_the_items_of_a_short_list_stay_in_one_clause() -> None:
    assert split("植物用阳光、水和空气来长大，你看。")[0] == "植物用阳光、水和空气来长大，"


def test_a_lone_well_is_no_clause_but_a_lone_sure_is() -> None:
    assert split("Well, yes.") == ["Well, yes."]
    assert split("嗯。我知道了。") == ["嗯。我知道了。"]
    assert split("Sure! Let me tell you.") == ["Sure! ", "Let me tell you."]
    assert split("好的。我知道了。") == ["好的。", "我知道了。"]


def test_later_clauses_need_more_before_a_comma_ends_them() -> None:
    text = "We walked along the river, we talked about the sea, we drank coffee, we laughed, we danced, we sang."
    assert split(text) == [
        "We walked along the river, ",
        "we talked about the sea, we drank coffee, ",
        "we laughed, we danced, we sang.",
    ]


def test_a_long_clause_without_marks_ends_before_a_conjunction() -> None:
    text = "The most important thing about living in a big city is that you always find a friend"
    assert split(text) == [
        "The most important thing about living in a big city is ",
        "that you always find a friend",
    ]


def test_a_clause_without_any_mark_ends_at_a_space_before_it_gets_too_long() -> None:
    clauses = split("word " * 200)
    assert len(clauses) > 3
    assert all(clause.endswith("word ") and len(clause) <= 215 for clause in clauses)


def test_chinese_without_any_mark_ends_between_two_characters() -> None:
    clauses = split("好" * 300)
    assert max(map(len, clauses)) <= 60


def test_a_word_or_a_number_is_never_cut_for_its_length() -> None:
    assert split("x" * 500) == ["x" * 500]
    assert split("1 000 " * 100) == ["1 000 " * 100]


def test_a_clause_waits_for_one_character_after_its_mark_and_no_more() -> None:
    for text, following in (("你好呀！", "今"), ("How are you?", " "), ("It is good.", "\n")):
        splitter = ClauseSplitter()
        assert splitter.feed(text) == []
        assert len(splitter.feed(following)) == 1


def test_what_is_left_at_the_end_is_the_last_clause() -> None:
    splitter = ClauseSplitter()
    assert splitter.feed("Nice to meet you") == []
    assert splitter.finish() == ["Nice to meet you"]
    assert splitter.finish() == []


def test_an_empty_reply_has_no_clause() -> None:
    assert split("") == []


MARKS = " .,!?:;…—-*_`~#|()[]'\"/@\n\t。，！？、；：～“”（）【】\u200d\ufe0f\u20e3"
WORDS = "a B 9 0 你 好 笑 안 é 😊 🏽 3.5 22,1 10:30 Dr. e.g. U.S. etc. No. v1.2.3 app.py a.b@c.d www.a.b https://a.b/c?d=1,2"
HARD_CASES = ["...", "……", "——", "?!", "！”", '."', ":)", "^_^", "```", "**", "](x)", "\r\n", "\u2028", "\u3000", "1. "]
STRETCHES = [" and ", " because ", "a longer stretch of words ", "很长的一段没有标点的中文"]
PIECES = st.sampled_from([*MARKS, *WORDS.split(), *HARD_CASES, *STRETCHES])
REPLIES = st.lists(PIECES, max_size=60).map("".join)


@given(REPLIES)
@settings(max_examples=300, deadline=None)
def test_the_clauses_joined_are_the_reply(text: str) -> None:
    clauses = split(text)
    assert "".join(clauses) == text
    assert all(clauses)


@given(REPLIES, st.data())
@settings(max_examples=300, deadline=None)
def test_any_chunking_of_the_stream_gives_the_same_clauses(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    chunks = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    for stream in (chunks, list(text)):
        splitter = ClauseSplitter()
        assert feed_all(splitter, stream) + splitter.finish() == split(text)


@given(REPLIES)
@settings(max_examples=200, deadline=None)
def test_every_clause_but_the_last_has_something_to_say(text: str) -> None:
    for lengths in (None, ANY_COMMA):
        assert all(any(char.isalnum() for char in clause) for clause in split(text, lengths)[:-1])


@given(st.text(alphabet=st.characters()))
@settings(max_examples=200, deadline=None)
def test_any_text_at_all_comes_back_whole(text: str) -> None:
    assert "".join(split(text)) == text
