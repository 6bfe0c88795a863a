"""A client of `/v1/realtime` that speaks in real time and writes down when each event came."""

from __future__ import annotations

import asyncio
import base64
import bisect
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import websockets

from spoken_chat.audio import ASR_RATE, TTS_RATE, FloatPcm
from spoken_chat.audio.pcm import to_mono, to_pcm16
from spoken_chat.errors import ChatError

PIECE_S: Final = 0.02
"""Sound goes out in pieces of this length, as a browser sends it."""

PATIENCE_S: Final = 30.0
"""An event that does not come within this long never will."""

Event = dict[str, Any]


@dataclass
class VoiceClient:
    """One conversation. Times are seconds on this machine's monotonic clock."""

    socket: websockets.ClientConnection
    events: list[tuple[float, Event]] = field(default_factory=list)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _sent: list[tuple[float, float]] = field(default_factory=list)

    async def listen(self) -> None:
        """Write down what comes, until the connection ends."""
        async for message in self.socket:
            self.events.append((time.monotonic(), json.loads(message)))
            self._arrived.set()

    async def speak(self, audio: FloatPcm, *, then_silence: float = 0.0) -> float:
        """Say 16 kHz `audio` in real time, and silence behind it; returns when its last sample was sent.

        A piece is sent at the moment its last sample would have been recorded.
        """
        pcm = to_pcm16(to_mono(audio, ASR_RATE, TTS_RATE))
        silent = np.zeros(round(then_silence * TTS_RATE), np.int16)
        start = time.monotonic()
        await self._send(np.concatenate([pcm, silent]), start)
        return start + len(pcm) / TTS_RATE

    @property
    def position(self) -> float:
        """Seconds of sound sent so far."""
        return self._sent[-1][0] if self._sent else 0.0

    def sent_at(self, position: float) -> float:
        """When the sound at `position` seconds of the stream was sent, had it gone out sample by sample."""
        index = bisect.bisect_left(self._sent, (position, 0.0))
        end, at = self._sent[min(index, len(self._sent) - 1)]
        return at - (end - position)

    async def _send(self, pcm: np.ndarray[Any, np.dtype[np.int16]], start: float) -> None:
        step = round(PIECE_S * TTS_RATE)
        for first in range(0, len(pcm), step):
            piece = pcm[first : first + step]
            await _sleep_until(start + (first + len(piece)) / TTS_RATE)
            sound = base64.b64encode(piece.astype("<i2", copy=False).tobytes()).decode("ascii")
            await self.socket.send('{"type":"input_audio_buffer.append","audio":"' + sound + '"}')
            self._sent.append((self.position + len(piece) / TTS_RATE, time.monotonic()))

    async def silence_until(self, wanted: Callable[[Event], bool], since: int) -> tuple[float, Event]:
        """Send silence until an event that is `wanted` came, of those after the first `since`; it and its time."""
        quiet = asyncio.create_task(self._silence())
        try:
            return await self.until(wanted, since)
        finally:
            quiet.cancel()
            await asyncio.wait([quiet])

    async def until(self, wanted: Callable[[Event], bool], since: int) -> tuple[float, Event]:
        """The first event that is `wanted`, of those after the first `since`. Raises ChatError when none comes."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                seen = since
                while True:
                    for at, event in self.events[seen:]:
                        if event["type"] == "error":
                            raise ChatError("bench_refused", f"The app refused: {event['error']['message']}")
                        if wanted(event):
                            return at, event
                    seen = len(self.events)
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            kinds = ", ".join(dict.fromkeys(str(event["type"]) for _, event in self.events[since:])) or "nothing"
            raise ChatError("bench_no_answer", f"The app did not answer in time; it sent: {kinds}.") from None

    async def send(self, **event: Any) -> None:
        """Send one event."""
        await self.socket.send(json.dumps(event))

    async def _silence(self) -> None:
        while True:
            await self._send(np.zeros(round(0.5 * TTS_RATE), np.int16), time.monotonic())


def of_type(kind: str) -> Callable[[Event], bool]:
    """Whether an event is of a type."""
    return lambda event: bool(event["type"] == kind)


@asynccontextmanager
async def connected(url: str, token: str) -> AsyncIterator[VoiceClient]:
    """A client in the conversation that `token` opens on the app at `url`."""
    address = f"{url.replace('http', 'ws', 1)}/v1/realtime?token={token}"
    async with websockets.connect(address, compression=None, max_size=None) as socket:
        client = VoiceClient(socket)
        listening = asyncio.create_task(client.listen())
        try:
            yield client
        finally:
            listening.cancel()
            await asyncio.wait([listening])


async def _sleep_until(due: float) -> None:
    wait = due - time.monotonic()
    if wait > 0:
        await asyncio.sleep(wait)
