"""How many tokens a prompt can have at most, from what the server has counted before and the bytes of the rest.

Byte-level tokenisers, which is what Qwen's and most others are, make no more tokens of a text than it has bytes in
UTF-8. So the bound holds for any text, digits, emoji and noise included, and only a prompt near the window has to be
counted by the server.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from spoken_chat.llm import Message

TEMPLATE_TOKENS: Final = 16
"""Around one message, the marks of an image and the opening of the reply included."""

_REMEMBERED: Final = 128


class PromptSizes:
    """Remembers the counted size of prompts; a longer prompt that begins with one of them need not be counted whole.

    `image_tokens`: the most that one image takes.
    """

    def __init__(self, image_tokens: int) -> None:
        self._image_tokens = image_tokens
        self._known: OrderedDict[int, int] = OrderedDict()

    def remember(self, messages: Sequence[Message], tokens: int) -> None:
        """The server counted `messages` as `tokens`."""
        if messages:
            key = _keys(messages)[-1]
            self._known[key] = tokens
            self._known.move_to_end(key)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)

    def bound(self, messages: Sequence[Message]) -> int:
        """The most tokens that `messages` can be."""
        keys = _keys(messages)
        rest = 0
        for key, message in zip(reversed(keys), reversed(messages), strict=True):
            if (known := self._known.get(key)) is not None:
                return known + rest
            rest += self._most(message)
        return rest

    def images(self, messages: Sequence[Message]) -> int:
        """The most tokens that the images of `messages` can be: a server's count of the text may leave them out."""
        return sum(self._image_tokens for message in messages for part in _parts(message) if "image_url" in part)

    def _most(self, message: Message) -> int:
        texts = [str(part["text"]) for part in _parts(message) if "text" in part]
        return TEMPLATE_TOKENS + sum(len(text.encode("utf-8", "replace")) for text in texts) + self.images([message])


def _parts(message: Message) -> Sequence[dict[str, Any]]:
    content = message["content"]
    parts: Sequence[dict[str, Any]] = [{"text": content}] if isinstance(content, str) else content
    return parts


def _keys(messages: Sequence[Message]) -> list[int]:
    """One key for each beginning of `messages`."""
    keys, key = [], 0
    for message in messages:
        content = tuple(str(value) for part in _parts(message) for value in part.values())
        key = hash((key, message["role"], content))
        keys.append(key)
    return keys
