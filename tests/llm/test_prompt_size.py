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
