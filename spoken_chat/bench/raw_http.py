"""The plainest streaming client there is: one kept socket, no library between it and the clock."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class RawTimes:
    """What the wire showed of one streamed reply: seconds, and the server's token count."""

    ttft: float
    first_to_last: float
    completion_tokens: int

    @property
    def ms_per_token(self) -> float:
        """By the design's definition."""
        return self.first_to_last * 1000 / (self.completion_tokens - 1)


class RawClient:
    """Streams chat completions from `base_url` over one connection that stays open."""

    def __init__(self, base_url: str, model: str) -> None:
        parts = urlsplit(base_url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._path = parts.path.rstrip("/") + "/chat/completions"
        self._model = model
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def reply(self, messages: Sequence[dict[str, Any]], **fields: Any) -> RawTimes:
        """Time one reply. Raises OSError, and ValueError when the reply has no text or no usage."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        body = json.dumps(
            {
                "model": self._model,
                "messages": list(messages),
                "stream": True,
                "stream_options": {"include_usage": True},
                **fields,
            }
        ).encode()
        head = (
            f"POST {self._path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode()
        sent = time.monotonic()
        writer.write(head + body)
        first = last = None
        tokens = None
        while True:
            line = await reader.readline()
            at = time.monotonic()
            if not line or line.startswith(b"data: [DONE]"):
                break
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if event.get("usage"):
                tokens = event["usage"]["completion_tokens"]
            if event["choices"] and event["choices"][0]["delta"].get("content"):
                first, last = first or at, at
        await self._finish_body(reader)
        if first is None or last is None or tokens is None:
            raise ValueError("the reply had no text or no usage")
        return RawTimes(first - sent, last - first, tokens)

    async def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            await self._streams[1].wait_closed()
            self._streams = None

    async def _finish_body(self, reader: asyncio.StreamReader) -> None:
        """Read up to the last, empty chunk, so that the next reply starts clean."""
        while (line := await reader.readline()) and line != b"0\r\n":
            continue
        await reader.readline()
