"""The plainest streaming client there is: one kept socket, no library between it and the clock."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class RawTimes:
    """What the wire showed of one streamed reply: seconds, and the server's token counts (None where it said none)."""

    ttft: float
    first_to_last: float
    total: float
    completion_tokens: int
    prompt_tokens: int | None = None
    cached_tokens: int | None = None

    @property
    def ms_per_token(self) -> float | None:
        """By the design's definition; None of a single token."""
        return self.first_to_last * 1000 / (self.completion_tokens - 1) if self.completion_tokens > 1 else None


class RawClient:
    """Streams completions from `base_url` over one connection that stays open."""

    def __init__(self, base_url: str, model: str) -> None:
        parts = urlsplit(base_url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._path = parts.path.rstrip("/")
        self._model = model
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def reply(self, messages: Sequence[dict[str, Any]], **fields: Any) -> RawTimes:
        """Time one chat reply. Raises OSError, and ValueError when the reply has no text or no usage."""
        return await self._stream(f"{self._path}/chat/completions", {"messages": list(messages), **fields})

    async def complete(self, prompt: Sequence[int], **fields: Any) -> RawTimes:
        """Time the completion of a prompt given as token ids; raises as `reply` does."""
        return await self._stream(f"{self._path}/completions", {"prompt": list(prompt), **fields})

    async def _stream(self, path: str, fields: Mapping[str, Any]) -> RawTimes:
        reader, writer = await self._connected()
        usage = {"stream": True, "stream_options": {"include_usage": True}}
        body = json.dumps({"model": self._model, **usage, **fields}).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode()
        sent = time.monotonic()
        writer.write(head + body)
        first = last = at = None
        counts: dict[str, Any] = {}
        while True:
            line = await reader.readline()
            at = time.monotonic()
            if not line or line.startswith((b"data: [DONE]", b"HTTP/1.1 4", b"HTTP/1.1 5")):
                break
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            counts = event.get("usage") or counts
            if event.get("choices") and _text(event["choices"][0]):
                first, last = first or at, at
        if first is None or last is None or "completion_tokens" not in counts:
            await self.close()  # whatever else was answered is not read
            raise ValueError("the reply had no text or no usage")
        await self._finish_body(reader)
        details = counts.get("prompt_tokens_details") or {}
        return RawTimes(
            first - sent,
            last - first,
            at - sent,
            counts["completion_tokens"],
            counts.get("prompt_tokens"),
            details.get("cached_tokens"),
        )

    async def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            await self._streams[1].wait_closed()
            self._streams = None

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        return self._streams

    async def _finish_body(self, reader: asyncio.StreamReader) -> None:
        """Read up to the last, empty chunk, so that the next reply starts clean."""
        while (line := await reader.readline()) and line != b"0\r\n":
            continue
        await reader.readline()


def _text(choice: Mapping[str, Any]) -> str:
    """What one chunk of a chat or of a completion adds; a reasoning parser may file it elsewhere."""
    delta = choice.get("delta") or {}
    return str(
        delta.get("content") or delta.get("reasoning") or delta.get("reasoning_content") or choice.get("text") or ""
    )
