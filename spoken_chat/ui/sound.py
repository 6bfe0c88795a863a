"""The reply's sound on its way to the page: one HTTP stream of raw PCM16, 24 kHz mono, for each turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from spoken_chat.audio import Pcm16

MOST_KEPT = 64
"""Streams that were opened and never fetched are dropped, oldest first, beyond this many."""


class ReplySounds:
    """Sound of running turns, by turn id. The id is the key to it: long and random."""

    def __init__(self) -> None:
        self._streams: dict[str, asyncio.Queue[bytes | None]] = {}
        self._listening: set[str] = set()

    def open(self, turn_id: str) -> None:
        """Prepare the stream of a turn."""
        unheard = [key for key in self._streams if key not in self._listening]
        for key in unheard[: max(0, len(unheard) - MOST_KEPT + 1)]:
            del self._streams[key]
        self._streams[turn_id] = asyncio.Queue()

    def push(self, turn_id: str, pcm: Pcm16) -> None:
        """Add samples to the stream of a turn."""
        if (stream := self._streams.get(turn_id)) is not None:
            stream.put_nowait(pcm.astype("<i2", copy=False).tobytes())

    def end(self, turn_id: str) -> None:
        """No more samples come."""
        if (stream := self._streams.get(turn_id)) is not None:
            stream.put_nowait(None)

    def take(self, turn_id: str) -> AsyncIterator[bytes] | None:
        """The stream of a turn, for the one listener it has; None for an unknown or already taken one."""
        if turn_id not in self._streams or turn_id in self._listening:
            return None
        self._listening.add(turn_id)
        return self._drain(turn_id)

    async def _drain(self, turn_id: str) -> AsyncIterator[bytes]:
        stream = self._streams[turn_id]
        try:
            while (chunk := await stream.get()) is not None:
                yield chunk
        finally:
            self._listening.discard(turn_id)
            self._streams.pop(turn_id, None)
