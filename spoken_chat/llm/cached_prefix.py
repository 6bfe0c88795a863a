"""What is known of persona prefixes in one server's cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spoken_chat.llm import Message, Usage


@dataclass(frozen=True)
class CachedPrefix:
    """A persona prefix on one server: the tokens that a warm cache holds of it, None where unknown; what pads it.

    The padding fills the server's last block, where a prefix is cached in whole blocks only.
    """

    tokens: int | None
    padding: str = ""


class CachedPrefixes:
    """Prefixes by their text, which is the content of a prompt's first message."""

    def __init__(self) -> None:
        self._known: dict[str, CachedPrefix] = {}

    def hold(self, prefix: str, known: CachedPrefix) -> None:
        """Keep what is known of `prefix`."""
        self._known[prefix] = known

    def padded(self, messages: Sequence[Message]) -> list[Message]:
        """`messages` as they are sent: the prefix, whoever asks, with the same padding behind it."""
        sent = list(messages)
        known = self._of(sent)
        if known is not None and known.padding:
            sent[0] = {**sent[0], "content": sent[0]["content"] + known.padding}
        return sent

    def noted(self, messages: Sequence[Message], usage: Usage) -> Usage:
        """`usage` with what a warm cache would have held."""
        known = self._of(messages)
        return usage if known is None else replace(usage, prefix_tokens=known.tokens)

    def _of(self, messages: Sequence[Message]) -> CachedPrefix | None:
        return self._known.get(messages[0]["content"]) if messages and messages[0]["role"] == "system" else None
