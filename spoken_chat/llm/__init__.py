"""The language model: one small interface, one file per engine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Message = dict[str, Any]
"""One chat message in the OpenAI form: `role`, and `content` as text or as a list of parts."""


@dataclass(frozen=True)
class Usage:
    """The server's own token counts of one request; None where it did not say.

    `prefix_tokens`: how many of the prompt's a warm cache holds at least, by what is known of the persona prefix.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    prefix_tokens: int | None = None

    @property
    def prefix_missed(self) -> bool | None:
        """Whether the cache did not hold the persona prefix; None where that is not known."""
        if self.cached_tokens is None or self.prefix_tokens is None:
            return None
        return self.cached_tokens < self.prefix_tokens


@dataclass(frozen=True)
class RequestSent:
    """The request left, at `at` seconds on the monotonic clock."""

    at: float


@dataclass(frozen=True)
class TextDelta:
    """One non-empty content chunk as the server sent it, stamped when it was received."""

    text: str
    at: float


@dataclass(frozen=True)
class StreamEnd:
    """The stream ended by itself. `usage` is None when the server sent none."""

    at: float
    usage: Usage | None
    finish_reason: str | None


ChatEvent = RequestSent | TextDelta | StreamEnd


class ChatModel(Protocol):
    """Streams one reply."""

    @property
    def name(self) -> str:
        """The served model's name."""
        ...

    @property
    def vision(self) -> bool | None:
        """Whether the model sees images; None while nobody knows."""
        ...

    @property
    def reads_alone(self) -> bool:
        """Whether `read` makes the server read and no more, so that it may be done whenever nobody waits."""
        ...

    def stream(self, messages: Sequence[Message]) -> AsyncGenerator[ChatEvent, None]:
        """Send `messages`, yield RequestSent, the TextDeltas, then StreamEnd.

        Closing the generator closes the HTTP stream, so that the server stops too. Raises ChatError, also after
        some text was yielded.
        """
        ...

    async def read(self, messages: Sequence[Message]) -> Usage | None:
        """Have the server read `messages` for its cache; the last one is the user's, still empty.

        The server's counts, None where it gives none. Raises ChatError.
        """
        ...
