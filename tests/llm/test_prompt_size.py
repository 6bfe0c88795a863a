"""The most tokens that a prompt can have, known without asking."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spoken_chat.llm import Message
from spoken_chat.llm.prompt_size import TEMPLATE_TOKENS, PromptSizes

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64," + "A" * 1000}}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_no_tokeniser_that_works_on_bytes_makes_more(texts: list[str]) -> None:
    most = PromptSizes(196).bound([user(text) for text in texts])
    assert most >= sum(len(text.encode("utf-8", "replace")) for text in texts) + TEMPLATE_TOKENS * len(texts)


def test_of_a_prompt_that_begins_with_a_counted_one_only_the_rest_is_bounded() -> None:
    sizes = PromptSizes(196)
    start = [user("好" * 100), {"role": "assistant", "content": "嗯"}]
    sizes.remember(start, 120)
    assert sizes.bound(start) == 120
    assert sizes.bound([*start, user("abc")]) == 120 + TEMPLATE_TOKENS + 3
    assert sizes.bound([user("好" * 101), *start[1:]]) > 300, "another beginning was never counted"


def test_the_longest_beginning_that_was_counted_decides() -> None:
    sizes = PromptSizes(196)
    messages = [user("x" * 50), user("y" * 50), user("z" * 50)]
    sizes.remember(messages[:1], 20)
    sizes.remember(messages[:2], 35)
    assert sizes.bound(messages) == 35 + TEMPLATE_TOKENS + 50


def test_an_image_counts_as_the_most_it_can_be_and_not_by_its_bytes() -> None:
    sizes = PromptSizes(196)
    message: Message = {"role": "user", "content": [IMAGE, {"type": "text", "text": "abc"}]}
    assert sizes.bound([message]) == TEMPLATE_TOKENS + 196 + 3
    assert sizes.images([message, user("x")]) == 196


def test_prompts_of_long_ago_are_forgotten() -> None:
    sizes = PromptSizes(196)
    sizes.remember([user("first " * 50)], 7)
    for number in range(1000):
        sizes.remember([user(str(number))], 1)
    assert sizes.bound([user("first " * 50)]) > 300
    assert sizes.bound([user("999")]) == 1


TURNS = st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), st.text(max_size=50)), min_size=1)


@given(TURNS, st.data())
def test_the_bound_holds_with_any_beginning_counted_before(turns: list[tuple[str, str]], data: st.DataObject) -> None:
    def tokens(messages: list[Message]) -> int:
        return sum(4 + len(str(message["content"]).encode()) for message in messages)

    messages: list[Message] = [{"role": role, "content": text} for role, text in turns]
    sizes = PromptSizes(196)
    for known in data.draw(st.lists(st.integers(1, len(messages)), max_size=3)):
        sizes.remember(messages[:known], tokens(messages[:known]))
    assert sizes.bound(messages) >= tokens(messages)


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_counted_prompt_says_nothing_of_another(one: str, other: str) -> None:
    sizes = PromptSizes(196)
    sizes.remember([user(one)], 0)
    bound = sizes.bound([user(other), user("x")])
    assert (bound == TEMPLATE_TOKENS + 1) is (one == other)


def test_who_said_it_and_what_image_it_was_are_part_of_a_beginning() -> None:
    sizes = PromptSizes(196)
    seen: Message = {"role": "user", "content": [IMAGE, {"type": "text", "text": "abc"}]}
    other: Message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:other"}}]}
    sizes.remember([user("hi")], 1)
    sizes.remember([seen], 50)
    assert sizes.bound([seen]) == 50
    assert sizes.bound([other]) == TEMPLATE_TOKENS + 196
    assert sizes.bound([{"role": "assistant", "content": "hi"}]) == TEMPLATE_TOKENS + 2


def test_a_beginning_that_is_used_again_is_kept() -> None:
    sizes = PromptSizes(196)
    for start in (0, 100):
        sizes.remember([user("persona " * 50)], 7)
        for number in range(start, start + 100):
            sizes.remember([user(str(number))], 1)
    assert sizes.bound([user("persona " * 50)]) == 7
    assert sizes.bound([user("0")]) == TEMPLATE_TOKENS + 1, "what was not is forgotten"


def test_a_prompt_without_messages_has_no_tokens_and_is_not_kept() -> None:
    sizes = PromptSizes(196)
    sizes.remember([], 5)
    assert sizes.bound([]) == 0
