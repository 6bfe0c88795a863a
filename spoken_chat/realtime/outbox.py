"""What waits to be sent to one client: bounded in bytes and in time, written by one task."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from spoken_chat.realtime.events import Event

log = logging.getLogger(__name__)

MOST_BYTES: Final = 16_000_000
"""Four minutes of sound as it travels: no reply that was waited for is as long."""

STALLED_S: Final = 10.0
"""A client that takes nothing for this long is given up."""

CLOSE_S: Final = 2.0
"""How long the close frame may take to leave."""

TRY_AGAIN_LATER: Final = 1013

AT_ONCE: Final = 32
"""Messages sent before others on the event loop get their turn."""

SOUND: Final = "response.output_audio.delta"
ENVELOPE: Final = 300
"""Bytes around the sound of such an event, and a few more."""

_encode = json.JSONEncoder(separators=(",", ":")).encode


class Outbox:
    """Events of one connection, in order. `send` takes one message as text, `close` a close code and its reason."""

    def __init__(
        self,
        send: Callable[[str], Awaitable[None]],
        close: Callable[[int, str], Awaitable[None]],
        *,
        most_bytes: int = MOST_BYTES,
        stalled_s: float = STALLED_S,
    ) -> None:
        self._send = send
        self._close = close
        self._most_bytes = most_bytes
        self._stalled_s = stalled_s
        self._waiting: deque[tuple[str | Event, int]] = deque()
        self._bytes = 0
        self._ready = asyncio.Event()
        self._ending: tuple[int, str] | None = None

    @property
    def waiting_bytes(self) -> int:
        """Bytes that were not sent yet."""
        return self._bytes

    def put(self, event: Event) -> None:
        """Send `event` when those before it have left. A client too far behind is given up instead."""
        if self._ending is not None:
            return
        # Sound is encoded when it leaves: a clause comes as many events at once, and its first must not wait for all.
        sound = event["type"] == SOUND
        message = event if sound else _encode(event)
        size = len(event["delta"]) + ENVELOPE if sound else len(message)
        if self._bytes + size > self._most_bytes:
            log.warning("a client reads too slowly; %d bytes wait for it", self._bytes)
            self.forget()
            self.finish(TRY_AGAIN_LATER, "the client reads too slowly")
            return
        self._waiting.append((message, size))
        self._bytes += size
        self._ready.set()

    def finish(self, code: int, reason: str) -> None:
        """Close the connection when what waits has left; nothing more is taken."""
        if self._ending is None:
            self._ending = (code, reason)
            self._ready.set()

    async def run(self) -> None:
        """Send until `finish`, or until the client stalls; then close. Raises what `send` raises when it is gone."""
        sent = 0
        while True:
            if self._waiting:
                await self._send_next()
                sent += 1
                if sent % AT_ONCE == 0:
                    await asyncio.sleep(0)
            elif self._ending is not None:
                break
            else:
                self._ready.clear()
                await self._ready.wait()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._close(*self._ending)
        except TimeoutError:
            log.info("a client did not take its close frame either")

    async def _send_next(self) -> None:
        message, size = self._waiting.popleft()
        text = message if isinstance(message, str) else _encode(message)
        try:
            async with asyncio.timeout(self._stalled_s):
                await self._send(text)
        except TimeoutError:
            log.warning("a client took nothing for %g s and was given up", self._stalled_s)
            self.forget()
            self._ending = (TRY_AGAIN_LATER, "the client reads too slowly")
        self._bytes = max(0, self._bytes - size)

    def forget(self) -> None:
        """Drop what waits."""
        self._waiting.clear()
        self._bytes = 0
