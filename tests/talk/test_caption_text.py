"""Words of captions: some stay, some may still change."""

from hypothesis import given
from hypothesis import strategies as st

from spoken_chat.talk.caption_text import CaptionText, words_of

WORDS = st.lists(st.sampled_from(["what", "is", "your", "name", "and", "mine", "天", "气"]), max_size=8)


def test_what_two_drafts_agree_on_stays_but_for_the_last_word() -> None:
    text = CaptionText()
    text.update("what is")
    assert (text.stable, text.tail) == ("", "what is")
    text.update("what is your")
    assert (text.stable, text.tail) == ("what is", " your")
    text.update("what is your name")
    assert (text.stable, text.tail) == ("what is your", " name")


def test_case_and_punctuation_do_not_count_as_another_word() -> None:
    text = CaptionText()
    text.update("What is, your")
    text.update("what is your name")
    assert text.stable == "what is your"


def test_chinese_is_compared_by_characters_and_has_no_spaces() -> None:
    text = CaptionText()
    text.update("今天天")
    text.update("今天天气怎么")
    assert text.stable == "今天天" and text.tail == "气怎么"
    assert words_of("今天，天气") == ["今", "天，", "天", "气"]


def test_a_frozen_piece_stays_whole_and_the_next_one_follows_it() -> None:
    text = CaptionText()
    text.update("it was the")
    text.freeze("it was the first.", sentence_may_end=False)
    assert text.stable == "it was the first" and text.tail == ""
    text.update("great sorrow")
    text.update("great sorrow of")
    assert text.stable == "it was the first great sorrow" and text.tail == " of"


def test_a_full_stop_stays_where_the_speaker_paused() -> None:
    text = CaptionText()
    text.freeze("that is all.", sentence_may_end=True)
    assert text.stable == "that is all."


@given(st.lists(st.tuples(WORDS, st.booleans()), max_size=8))
def test_stable_only_ever_grows(drafts: list[tuple[list[str], bool]]) -> None:
    text = CaptionText()
    before = ""
    for words, whole in drafts:
        if whole:
            text.freeze(" ".join(words), sentence_may_end=False)
        else:
            text.update(" ".join(words))
        assert text.stable.startswith(before)
        before = text.stable
