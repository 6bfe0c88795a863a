"""Fills a persona prefix up to the server's block, for servers that cache a prefix in whole blocks only.

The same text for every user and turn, behind the prefix, so that all of the prefix and of the persona's examples lies
in full blocks. Its length is found by asking the server, since how many tokens a text has depends on what stands
beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Protocol

from spoken_chat.llm import Message

UNIT: Final = " ."
"""A token of its own, however often it is repeated, and one that says nothing."""

HEAD: Final = "\n"

CLOSING: Final = 4
"""Tokens, at most, that close an empty message of the user: what follows the part that all turns share."""

_TRIES: Final = 6


class Counter(Protocol):
    """Counts the tokens of a prompt."""

    async def count(self, messages: Sequence[Message], *, opened: bool = True) -> int:
        """Tokens of `messages`."""
        ...


async def padding_for(chat: Counter, messages: Sequence[Message], tokens: int, block: int) -> str:
    """What to put behind the first message, so that `messages` fill whole blocks of `block` tokens.

    `messages` are `tokens` long, their last one the user's and still empty; its CLOSING marks are not shared with a
    turn, and so do not count. Where a block cannot be filled exactly, the smallest count above it is taken.
    """
    unpadded = tokens - CLOSING
    wanted = -(-unpadded // block) * block
    units = wanted - unpadded
    best, least = "", None
    for _ in range(_TRIES):
        if units <= 0:
            break
        padding = HEAD + UNIT * units
        shared = await chat.count(_with(messages, padding), opened=False) - CLOSING
        if shared >= wanted and (least is None or shared < least):
            best, least = padding, shared
        if shared == wanted or shared <= unpadded:  # it fits; or the count does not grow with what is added
            break
        each = (shared - unpadded) / units
        step = math.ceil((wanted - shared) / each)  # rather a token too many than a block that is not full
        units += step or -1
    return best


def _with(messages: Sequence[Message], padding: str) -> list[Message]:
    first = messages[0]
    return [{**first, "content": first["content"] + padding}, *messages[1:]]
