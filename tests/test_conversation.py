"""History, its token budget, and what was heard of a reply."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoken_chat.conversation import Conversation, Exchange, ImagePart, estimate_tokens, heard_text

IMAGE = ImagePart("data:image/jpeg;base64,AAAA", 192)


def talk(turns: int, budget: int = 8000) -> Conversation:
    return Conversation(budget, [Exchange(f"question {n} " * 10, f"answer {n} " * 10) for n in range(turns)])


def test_the_prompt_is_the_prefix_then_the_history_then_this_turn() -> None:
    messages = talk(1).messages("PREFIX", "now", None)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[0]["content"] == "PREFIX"
    assert messages[-1]["content"] == "now"


def test_a_history_over_budget_is_cut_in_one_large_step_and_then_left_alone() -> None:
    conversation = talk(40, budget=2000)
    first = conversation.messages("p", "now", None)
    conversation.add(Exchange("short", "short"))
    second = conversation.messages("p", "now", None)
    assert len(first) < 82 * 0.5
    assert second[1] == first[1], "the cached prefix of the conversation survives the next turn"


@given(st.integers(0, 60), st.integers(300, 4000))
def test_a_prompt_never_goes_over_budget_while_there_is_history_to_cut(turns: int, budget: int) -> None:
    messages = talk(turns, budget).messages("p", "now", None)
    assert sum(estimate_tokens(message["content"]) for message in messages) <= budget


def shown(conversation: Conversation, image: ImagePart | None = None) -> list[object]:
    """The contents of the user's messages of the next prompt."""
    return [one["content"] for one in conversation.messages("p", "now", image) if one["role"] == "user"]


def with_images(images: int, budget: int, most_images: int = 100) -> Conversation:
    return Conversation(budget, [Exchange(f"q{n}", "a", IMAGE) for n in range(images)], most_images=most_images)


def test_images_stay_while_the_budget_allows() -> None:
    assert [type(content) for content in shown(with_images(4, 2000))] == [list] * 4 + [str]


def test_when_it_does_not_all_become_a_word_at_once_and_no_turn_is_cut() -> None:
    conversation = with_images(10, 1200)
    assert shown(conversation) == [*(f"[image] q{n}" for n in range(10)), "now"]
    conversation.add(Exchange("new", "a", IMAGE))
    assert isinstance(shown(conversation)[10], list), "a new image is seen"
    assert shown(conversation)[:10] == [f"[image] q{n}" for n in range(10)], "what is cached is not changed"


def test_turns_are_cut_when_words_in_place_of_images_are_not_enough() -> None:
    conversation = with_images(100, 600)
    assert 1 < len(shown(conversation)) < 60


@pytest.mark.parametrize("now", [None, IMAGE])
def test_of_more_images_than_a_prompt_may_have_the_older_become_a_word(now: ImagePart | None) -> None:
    conversation = with_images(0, 10**6, most_images=4)
    replaced = []
    for number in range(12):
        before = shown(conversation, now)
        assert sum(isinstance(content, list) for content in before) <= 4
        conversation.add(Exchange(f"q{number}", "a", IMAGE))
        after = shown(conversation, now)
        replaced.append(before[:-1] != after[: len(before) - 1])
    assert 2 <= sum(replaced) <= 6, "in large steps"


def test_a_server_that_takes_fewer_images_gets_none_of_the_history() -> None:
    conversation = with_images(2, 10**6)
    assert conversation.hide_images()
    assert shown(conversation) == ["[image] q0", "[image] q1", "now"]
    assert not conversation.hide_images()


def test_the_word_is_that_of_the_conversation_and_forgetting_forgets_it() -> None:
    conversation = with_images(2, 10**6)
    conversation.image_word = "（图片）"
    conversation.hide_images()
    assert shown(conversation)[0] == "（图片） q0"
    conversation.clear()
    conversation.add(Exchange("q", "a", IMAGE))
    assert isinstance(shown(conversation)[0], list)


def test_shedding_hides_half_each_time_until_nothing_is_left() -> None:
    conversation = talk(5)
    seen = []
    while conversation.shed():
        seen.append(len(conversation.messages("p", "now", None)))
    assert seen == [6, 4, 2]
    assert len(conversation.exchanges) == 5, "what was said stays; the model only sees less of it"


def test_an_exchange_can_be_shortened_or_taken_back_after_it_was_added() -> None:
    conversation = talk(2)
    first, second = conversation.exchanges
    shorter = conversation.replace(second, "ans")
    assert shorter is not None
    assert conversation.exchanges == [first, shorter]
    assert conversation.replace(shorter, "") is None
    assert conversation.exchanges == [first]
    assert conversation.replace(second, "x") is None


def test_cjk_text_is_guessed_at_one_token_a_character() -> None:
    assert estimate_tokens("你好吗") == 3
    assert estimate_tokens("hello!") == 2


CLAUSES = [("Hello there, ", 1.0), ("my dear friend. ", 2.0), ("Goodbye.", 1.0)]


def test_heard_text_is_whole_clauses_then_a_share_of_the_next_cut_at_a_word() -> None:
    assert heard_text(CLAUSES, 0.0) == ""
    assert heard_text(CLAUSES, 1.0) == "Hello there,"
    assert heard_text(CLAUSES, 2.0) == "Hello there, my dear"
    assert heard_text(CLAUSES, 4.0) == "Hello there, my dear friend. Goodbye."
    assert heard_text([("你好，我是小禾。", 2.0)], 1.0) == "你好，我"


def test_a_clause_without_sound_was_not_heard_unless_one_behind_it_was() -> None:
    waiting = [("Hello there,", 1.0), (" my dear friend.", 0.0), (" Goodbye.", 0.0)]
    assert heard_text(waiting, 0.0) == ""
    assert heard_text(waiting, 1.0) == "Hello there,"
    assert heard_text(waiting, 9.0) == "Hello there,"
    assert heard_text([(" my dear", 0.0), *waiting], 0.0) == ""
    failed = [("Hello there,", 1.0), (" my dear friend.", 0.0), (" Goodbye.", 1.0)]
    assert heard_text(failed, 1.0) == "Hello there,"
    assert heard_text(failed, 2.0) == "Hello there, my dear friend. Goodbye."


@given(st.floats(0, 6), st.floats(0, 6))
def test_more_sound_is_never_less_text(one: float, other: float) -> None:
    shorter, longer = sorted((one, other))
    assert heard_text(CLAUSES, longer).startswith(heard_text(CLAUSES, shorter))


def test_after_the_older_half_of_the_images_became_a_word_the_beginning_stays_until_there_are_too_many_again() -> None:
    conversation = with_images(5, 10**6, most_images=4)
    first = shown(conversation)
    assert [isinstance(content, list) for content in first] == [False, False, False, True, True, False]
    for number in (5, 6):
        conversation.add(Exchange(f"q{number}", "a", IMAGE))
        assert shown(conversation)[:5] == first[:5]
    conversation.add(Exchange("q7", "a", IMAGE))
    assert [isinstance(content, list) for content in shown(conversation)[:8]] == [False] * 6 + [True] * 2


def test_a_server_that_takes_no_image_gets_none() -> None:
    assert shown(with_images(2, 10**6, most_images=0)) == ["[image] q0", "[image] q1", "now"]
    sent = shown(with_images(1, 10**6, most_images=1), IMAGE)
    assert [isinstance(content, list) for content in sent] == [False, True], "the image of now goes before older ones"


def test_an_image_without_words_becomes_the_word_alone() -> None:
    conversation = Conversation(10**6, [Exchange("", "a", IMAGE)])
    assert conversation.hide_images()
    assert shown(conversation) == ["[image]", "now"]


def test_images_that_nobody_sees_any_more_are_none_to_hide() -> None:
    conversation = with_images(1, 10**6)
    assert conversation.shed()
    assert not conversation.hide_images()
    assert not with_images(0, 10**6).hide_images()


def test_what_was_shortened_keeps_its_image_and_what_was_taken_back_takes_its_image_along() -> None:
    conversation = with_images(2, 10**6)
    first, second = conversation.exchanges
    conversation.replace(second, "b")
    assert [isinstance(content, list) for content in shown(conversation)] == [True, True, False]
    conversation.hide_images()
    conversation.replace(conversation.exchanges[1], "")
    conversation.add(Exchange("new", "a", IMAGE))
    assert shown(conversation)[0] == "[image] q0"
    assert isinstance(shown(conversation)[1], list), "the one after it is seen"
    assert conversation.exchanges[0] is first


@pytest.mark.parametrize("change", [Conversation.hide_images, Conversation.shed])
def test_taking_back_an_old_exchange_leaves_the_later_ones_as_they_were(change: Callable[[Conversation], bool]) -> None:
    conversation = with_images(3, 10**6)
    assert change(conversation)
    conversation.add(Exchange("q3", "a", IMAGE))
    conversation.add(Exchange("q4", "a", IMAGE))
    before = shown(conversation)
    conversation.replace(conversation.exchanges[0], "")
    assert shown(conversation)[-4:] == before[-4:]
