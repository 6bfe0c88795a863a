"""The reply filter: no thinking and no mood tag reaches the listener, however the stream is cut."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoken_chat.llm.reply_filter import TagReader, ThinkFilter

MOODS = ("happy", "sad", "sadly", "开心")

_THINKING = ("<think>", "</think>", "<THINK>", "<thi", "</", "<", ">")
_BRACKETED = ("[happy]", "【开心】", "( sad )", "[sigh]", "[ SADLY ]", "[happy】", "[     happy]", "[", "（", "]")
_TEXT = (" ", "\n", "sad", "hi", "你好", "😀", "İ", "ß")
_FRAGMENTS = st.sampled_from([*_THINKING, *_BRACKETED, *_TEXT])
_REPLIES = st.lists(_FRAGMENTS, max_size=12).map("".join)


def think(pieces: Iterable[str]) -> str:
    reader = ThinkFilter()
    return "".join(reader.feed(piece) for piece in pieces) + reader.finish()


def read_tags(pieces: Iterable[str]) -> tuple[str, str | None, bool | None]:
    reader = TagReader(MOODS)
    text = "".join(reader.feed(piece) for piece in pieces) + reader.finish()
    return text, reader.tag, reader.compliant


def cut(text: str, data: st.DataObject) -> list[str]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@pytest.mark.parametrize(
    ("reply", "heard"),
    [
        ("<think>\n\n</think>\n\nHello.", "Hello."),
        ("<Think>they greet me</THINK>Hello.", "Hello."),
        ("Hello. <think>more?</think>Bye.", "Hello. Bye."),
        ("<think>one</think> <think>two</think> Hello.", "Hello."),
        ("Hello. <think>never closed", "Hello. "),
        ("<think>never closed", ""),
        ("</think>\n\nHello.", "Hello."),
        ("Hello.</think> Bye.", "Hello. Bye."),
        ("  \n Hello. ", "Hello. "),
        ("1 < 2 and <b>", "1 < 2 and <b>"),
        ("it ends with <thi", "it ends with <thi"),
        ("", ""),
    ],
)
def test_thinking_is_dropped(reply: str, heard: str) -> None:
    assert think([reply]) == heard
    assert think(reply) == heard


@given(_REPLIES, st.data())
def test_any_cut_of_a_reply_gives_the_same_text_without_thinking(reply: str, data: st.DataObject) -> None:
    assert think(cut(reply, data)) == think([reply])


def test_only_what_may_become_a_tag_is_held_back() -> None:
    reader = ThinkFilter()
    assert reader.feed("Hello") == "Hello"
    assert reader.feed(" <") == " "
    assert reader.feed("3 you") == "<3 you"
    assert reader.feed("</thin") == ""
    assert reader.feed("g>") == "</thing>"


@pytest.mark.parametrize(
    ("reply", "text", "tag", "compliant"),
    [
        ("[happy] Hello.", "Hello.", "happy", True),
        ("  [ Happy ]Hello.", "Hello.", "happy", True),
        ("【开心】你好。", "你好。", "开心", True),
        ("（sad）Oh.", "Oh.", "sad", True),
        ("(SADLY) Oh.", "Oh.", "sadly", True),
        ("[happy】Hello.", "Hello.", "happy", True),
        ("Hello.", "Hello.", None, False),
        ("[sigh] Well.", "[sigh] Well.", None, False),
        ("[sigh] [happy] Well.", "[sigh] Well.", None, False),
        ("[happy][sad] Hello.", "Hello.", "happy", True),
        ("[happy] One. [sad] Two.", "One. Two.", "happy", True),
        ("[happy] I am (happy) and (quite) fine.", "I am and (quite) fine.", "happy", True),
        ("Hello. [happy]", "Hello. ", None, False),
        ("[happy", "[happy", None, False),
        ("[happy and more] Hello.", "[happy and more] Hello.", None, False),
        ("happy: Hello.", "happy: Hello.", None, False),
        ("[happy]", "", "happy", True),
        ("", "", None, None),
        ("  ", "", None, None),
    ],
)
def test_the_mood_tag_is_read_and_never_part_of_the_text(
    reply: str, text: str, tag: str | None, compliant: bool | None
) -> None:
    assert read_tags([reply]) == (text, tag, compliant)
    assert read_tags(reply) == (text, tag, compliant)


@given(_REPLIES, st.data())
def test_any_cut_of_a_reply_gives_the_same_text_and_tag(reply: str, data: st.DataObject) -> None:
    assert read_tags(cut(reply, data)) == read_tags([reply])


@given(_REPLIES)
def test_no_bracketed_tag_is_left_in_the_text(reply: str) -> None:
    text, _, _ = read_tags([reply])
    assert not any(f"[{mood}]" in text.lower() for mood in MOODS)


@given(
    st.text(alphabet=st.characters(exclude_characters="[【(（［<"), min_size=1).filter(lambda text: text.strip()),
    st.data(),
)
def test_a_reply_without_brackets_flows_at_once(reply: str, data: st.DataObject) -> None:
    reader, filtered = TagReader(MOODS), ThinkFilter()
    received = given_out = ""
    for piece in cut(reply, data):
        received += piece
        given_out += reader.feed(filtered.feed(piece))
        assert given_out == received.lstrip()


def test_a_tag_is_known_as_soon_as_its_bracket_closes() -> None:
    reader = TagReader(MOODS)
    assert reader.feed("[hap") == ""
    early = reader.compliant
    assert reader.feed("py]") == ""
    assert (early, reader.tag, reader.compliant) == (None, "happy", True)


def test_a_bracket_is_given_out_as_soon_as_it_can_be_no_tag() -> None:
    reader = TagReader(MOODS)
    assert reader.feed("[s") == ""
    assert reader.feed("i") == "[si"
    assert reader.compliant is False
    assert reader.feed("gh] [sad") == "gh] "
    assert reader.feed("ness]") == "[sadness]"
