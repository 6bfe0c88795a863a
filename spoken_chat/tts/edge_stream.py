"""One request of the real edge-tts client: received in a task of its own, closed at once, its faults in plain words."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final

import aiohttp
import edge_tts
from edge_tts.exceptions import EdgeTTSException, NoAudioReceived
from edge_tts.typing import TTSChunk

from spoken_chat.errors import ChatError

_FAULTS: Final = (aiohttp.ClientError, OSError, EdgeTTSException, ValueError, LookupError, TypeError, AttributeError)
"""What edge-tts lets through: its own errors, those of its connection, and those of parsing a malformed message."""


class EdgeStream:
    """Receives what the service sends for one request; an async context manager that leaves nothing behind.

    edge-tts nests async generators, and a generator suspended in its loop is only closed when it is collected. In a
    task that never pauses between two messages, cancelling unwinds them all.
    """

    def __init__(self, communicate: edge_tts.Communicate) -> None:
        self._communicate = communicate
        self._messages: asyncio.Queue[TTSChunk | None] = asyncio.Queue()
        self._delivered = 0

    async def __aenter__(self) -> EdgeStream:
        self._task = asyncio.create_task(self._receive_all())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Cancelled, aiohttp drops the connection at once; only an undisturbed close waits for the server's answer.
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            # A fault after the end of what the listener needed is no longer of interest; asking marks it as seen.
            self._task.exception()

    @property
    def turn_ended(self) -> bool:
        """Whether the service said that it had finished, and all of its sound was received here.

        edge-tts ends its stream in the same way when the connection drops, but adds to this count only at `turn.end`.
        """
        return 0 < self._delivered == self._communicate.state["cumulative_audio_bytes"]

    async def receive(self) -> TTSChunk | None:
        """The next message, or None at the end. Raises ChatError when the service fails."""
        message = await self._messages.get()
        if message is None:
            try:
                await self._task
            except _FAULTS as error:
                raise _told(error) from error
        elif message["type"] == "audio":
            self._delivered += len(message["data"])
        return message

    async def _receive_all(self) -> None:
        try:
            async for message in self._communicate.stream():
                self._messages.put_nowait(message)
        finally:
            self._messages.put_nowait(None)


def _told(error: Exception) -> ChatError:
    """The fault in one sentence."""
    if isinstance(error, aiohttp.WSServerHandshakeError):
        return ChatError(
            "tts_refused",
            f"The voice service edge-tts refused the request with HTTP status {error.status}; "
            "check the clock of this machine, or update the package edge-tts.",
            status=error.status,
        )
    if isinstance(error, NoAudioReceived):
        return ChatError("tts_no_sound", "The voice service edge-tts sent no sound; try another voice or text.")
    if isinstance(error, aiohttp.ClientError | OSError):
        return ChatError(
            "tts_unreachable",
            f"The voice service edge-tts cannot be reached ({_reason(error)}); check the network connection.",
            error=_reason(error),
        )
    return ChatError(
        "tts_bad_reply",
        "The voice service edge-tts sent a reply that cannot be read; update the package edge-tts.",
        error=repr(error),
    )


def _reason(error: Exception) -> str:
    """Why, in the system's words: aiohttp's own put a raw SSL object among them."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
