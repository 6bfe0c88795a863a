"""History, its token budget, and what was heard of a reply."""

from __future__ import annotations

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


def test_images_count_against_the_budget() -> None:
    plain = Conversation(1000, [Exchange("q", "a")] * 20)
    seen = Conversation(1000, [Exchange("q", "a", IMAGE)] * 20)
    assert len(seen.messages("p", "now", None)) < len(plain.messages("p", "now", None))


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
