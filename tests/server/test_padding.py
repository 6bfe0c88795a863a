"""A prefix is filled up to whole blocks, by asking the server for its tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

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
