"""One streamed chat completion chunk read, and the reply's text picked out of a stream of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spoken_chat.llm import TextDelta, Usage


@dataclass(frozen=True)
class Chunk:
    """What one event of the stream says. `error` is the server's error object where the event is one."""

    content: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    error: Mapping[str, Any] | None = None


def parse_chunk(data: str) -> Chunk:
    """Read one event. Raises ValueError when it is not a chat completion chunk."""
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")
    if document.get("error"):
        return Chunk(error=error_object(document))
    choices = document.get("choices") or []
    usage = parse_usage(document.get("usage"))
    if not isinstance(choices, list):
        raise ValueError("choices is not a list")
    if not choices:
        return Chunk(usage=usage)
    choice = choices[0]
    message = (choice.get("delta") or {}) if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise ValueError("a choice or its delta is not an object")
    return Chunk(
        content=_text(message.get("content")),
        reasoning=_text(message.get("reasoning") or message.get("reasoning_content")),
        finish_reason=choice.get("finish_reason"),
        usage=usage,
    )


def error_object(document: object) -> Mapping[str, Any]:
    """The error of an error answer: servers send `{"error": {...}}`, `{"error": "text"}` or the object itself."""
    error = document.get("error", document) if isinstance(document, dict) else document
    return error if isinstance(error, dict) else {"message": str(error or "")}


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError("text is not a string")
    return value


def parse_usage(value: object) -> Usage | None:
    """The `usage` object of an answer; None where there is none."""
    if not isinstance(value, dict):
        return None
    details = value.get("prompt_tokens_details")
    return Usage(
        prompt_tokens=_count(value.get("prompt_tokens")),
        completion_tokens=_count(value.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else None,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None


class _SurrogateJoiner:
    """Joins a JSON-escaped surrogate pair that was split over two chunks; a lone surrogate becomes U+FFFD."""

    def __init__(self) -> None:
        self._high = ""

    def feed(self, text: str) -> str:
        if not text:
            return ""
        text, self._high = self._high + text, ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._high = text[:-1], text[-1]
        return _whole(text)

    def finish(self) -> str:
        text, self._high = self._high, ""
        return _whole(text)


def _whole(text: str) -> str:
    """`text` with surrogate pairs joined: they count as two characters to json.loads when a pair is split."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class ReplyText:
    """Picks the reply out of a stream that may carry text under `content` and under `reasoning`.

    We ask for thinking off, but vLLM's reasoning parser then files the whole reply under `reasoning`, because it waits
    for a `</think>` that never comes; and a model that thinks all the same must not be heard thinking. So reasoning is
    held back until content arrives (it was thinking: dropped) or the stream ends (it was the reply: given with its
    original stamps). Once a server has shown that its replies come as reasoning, pass `reasoning_is_reply` to
    have it at once; content that follows it takes that back.
    """

    def __init__(self, reasoning_is_reply: bool) -> None:
        self.reasoning_is_reply = reasoning_is_reply
        """What to believe of the next stream of this server."""
        self.spoke = False
        """Whether any text but whitespace was given out."""
        self._held: list[TextDelta] = []
        self._has_content = False
        self._reasoned = False
        self._content = _SurrogateJoiner()
        self._reasoning = _SurrogateJoiner()

    def feed(self, chunk: Chunk, at: float) -> list[TextDelta]:
        """The reply's text in `chunk`, which was received at `at`."""
        given: list[TextDelta] = []
        if reasoning := self._reasoning.feed(chunk.reasoning):
            self._reasoned = True
            # Reasoning after content is thinking between two pieces of the reply: neither given nor held.
            if not self._has_content:
                (given if self.reasoning_is_reply else self._held).append(TextDelta(reasoning, at))
        if content := self._content.feed(chunk.content):
            # Some servers send the blank lines around the thinking as content: they decide nothing.
            if content.strip() and not self._has_content:
                self._has_content = True
                self._held.clear()
                self.reasoning_is_reply = self.reasoning_is_reply and not self._reasoned
            given.append(TextDelta(content, at))
        return self._noted(given)

    def finish(self, at: float, finish_reason: str | None) -> list[TextDelta]:
        """What was still held back when the stream ended at `at`."""
        given: list[TextDelta] = []
        if not self._has_content:
            given += self._held
            # A stream cut by its length may have been cut while thinking: it proves nothing.
            if any(delta.text.strip() for delta in self._held) and finish_reason == "stop":
                self.reasoning_is_reply = True
            if (self.reasoning_is_reply or self._held) and (rest := self._reasoning.finish()):
                given.append(TextDelta(rest, at))
        if rest := self._content.finish():
            given.append(TextDelta(rest, at))
        return self._noted(given)

    def _noted(self, given: list[TextDelta]) -> list[TextDelta]:
        self.spoke = self.spoke or any(delta.text.strip() for delta in given)
        return given
