"""Which words over a reply ask for the floor."""

import pytest

from spoken_chat.talk.barge_in import is_interruption

REPLY = "Well, the weather is fine today, and tomorrow it may rain."


@pytest.mark.parametrize(
    "text", ["", "...", "Mhm.", "mm-hmm", "Uh huh", "Yeah, yeah.", "OK", "嗯。", "嗯嗯", "哦，好的。", "对对对"]
)
def test_a_listeners_noises_do_not(text: str) -> None:
    assert not is_interruption(text, REPLY)


@pytest.mark.parametrize("text", ["Stop!", "Wait a moment.", "No.", "yeah but why", "等一下", "不对", "what?"])
def test_words_with_a_meaning_do(text: str) -> None:
    assert is_interruption(text, REPLY)


@pytest.mark.parametrize("text", ["the weather is fine", "Tomorrow it may", "MAY RAIN"])
def test_the_replys_own_words_do_not(text: str) -> None:
    assert not is_interruption(text, REPLY)


def test_the_replys_words_in_another_order_do() -> None:
    assert is_interruption("rain today?", REPLY)


def test_one_word_of_the_reply_may_be_the_persons_own() -> None:
    assert is_interruption("tomorrow", REPLY)
