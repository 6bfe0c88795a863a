"""A prefix is filled up to whole blocks, by asking the server for its tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoken_chat.llm import Message
from spoken_chat.server.padding import CLOSING, HEAD, UNIT, padding_for

PREFIX = [{"role": "system", "content": "x" * 700}, {"role": "user", "content": ""}]


class Counts:
    """Counts a letter as a token, and the padding by `padding`: how many tokens so many units are."""

    def __init__(self, padding: Callable[[int], int]) -> None:
        self.padding = padding
        self.asked = 0

    async def count(self, messages: Sequence[Message], *, opened: bool = True) -> int:
        assert not opened
        self.asked += 1
        content = messages[0]["content"]
        return content.count("x") + CLOSING + (self.padding(content.count(UNIT)) + 1 if HEAD in content else 0)


@pytest.mark.parametrize("block", [16, 128, 544, 1056])
@pytest.mark.parametrize(
    "padding", [lambda n: n, lambda n: (n + 1) // 2, lambda n: 2 * n, lambda n: n - n % 3], ids=["1", "1/2", "2", "3s"]
)
async def test_the_prefix_fills_whole_blocks_and_the_search_ends(block: int, padding: Callable[[int], int]) -> None:
    counts = Counts(padding)
    before = await counts.count(PREFIX, opened=False)
    found = await padding_for(counts, PREFIX, before, block)
    after = await counts.count([{**PREFIX[0], "content": PREFIX[0]["content"] + found}], opened=False) - CLOSING
    assert after >= -(-700 // block) * block
    assert after - -(-700 // block) * block <= 3, "hardly a token too many"
    assert counts.asked < 10


async def test_a_prefix_that_fills_its_blocks_is_left_alone() -> None:
    counts = Counts(lambda n: n)
    assert await padding_for(counts, PREFIX, 700 + CLOSING, 100) == ""
    assert counts.asked == 0


@given(unpadded=st.integers(1, 3000), block=st.sampled_from([16, 128, 528, 544, 1056]))
async def test_where_every_unit_is_a_token_no_token_is_too_many(unpadded: int, block: int) -> None:
    counts = Counts(lambda n: n)
    prefix = [{"role": "system", "content": "x" * unpadded}, *PREFIX[1:]]
    padding = await padding_for(counts, prefix, unpadded + CLOSING, block)
    missing = -unpadded % block
    after = await counts.count([{**prefix[0], "content": prefix[0]["content"] + padding}], opened=False) - CLOSING
    assert after == unpadded + missing + (missing == 1), "the head and a unit are two tokens at least"
    assert (padding == "") is (missing == 0)


@given(
    share=st.floats(0.2, 2),
    merged=st.integers(-3, 3),
    unpadded=st.integers(20, 2000),
    block=st.sampled_from([16, 128, 544, 1056]),
)
async def test_the_search_ends_and_never_takes_less_than_the_block(
    share: float, merged: int, unpadded: int, block: int
) -> None:
    counts = Counts(lambda n: max(0, int(n * share) + merged))
    prefix = [{"role": "system", "content": "x" * unpadded}, *PREFIX[1:]]
    padding = await padding_for(counts, prefix, unpadded + CLOSING, block)
    asked = counts.asked
    after = await counts.count([{**prefix[0], "content": prefix[0]["content"] + padding}], opened=False) - CLOSING
    assert after >= -(-unpadded // block) * block
    assert asked < 10


async def test_a_server_whose_count_does_not_grow_is_not_sent_ever_more_text() -> None:
    longest = 0

    class Still:
        async def count(self, messages: Sequence[Message], *, opened: bool = True) -> int:
            nonlocal longest
            assert not opened
            longest = len(messages[0]["content"])
            assert longest < 100_000
            return 700 + CLOSING

    assert await padding_for(Still(), PREFIX, 700 + CLOSING, 544) == ""


async def test_the_padding_stands_behind_the_first_message_alone() -> None:
    seen: list[Sequence[Message]] = []

    class Watched(Counts):
        async def count(self, messages: Sequence[Message], *, opened: bool = True) -> int:
            seen.append(messages)
            return await super().count(messages, opened=opened)

    messages = [*PREFIX[:1], {"role": "user", "content": "an example"}, *PREFIX[1:]]
    padding = await padding_for(Watched(lambda n: n), messages, 700 + CLOSING, 544)
    assert set(padding.removeprefix(HEAD)) == set(UNIT)
    assert [*seen[-1]] == [{**messages[0], "content": messages[0]["content"] + padding}, *messages[1:]]
    assert messages[0] == PREFIX[0], "what was given is not changed"
