"""A local server that plays the protocol of Edge's voice service for the real edge-tts client, faults included.

    async with EdgeServer() as server:
        monkeypatch.setattr("edge_tts.communicate.WSS_URL", server.url)
        server.next(Behaviour.FORBIDDEN)              # for the next connection; those after it: server.default
        ...
        assert server.requests[0].text == "Hello."

Each announced word is a beep of WORD_SECONDS and a pause; see `announced_words` for how a text is cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
import socket
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction
from types import TracebackType
from xml.etree import ElementTree

import aiohttp
import av
import numpy as np
from aiohttp import web
from numpy.typing import NDArray

RATE = 24_000
BIT_RATE = 48_000
FRAME_SAMPLES = 576
FRAME_BYTES = 144
PIECE_BYTES = 1000
POLL_SECONDS = 0.005
TICKS = 10_000_000
LEAD_SECONDS = 0.12
WORD_SECONDS = 0.24
PAUSE_SECONDS = 0.12
CODER_DELAY_SECONDS = 0.072
"""At least what LAME adds before the first sample and the decoder needs after the last one: three frames."""


class Behaviour(Enum):
    """What the server does with one connection."""

    NORMAL = auto()
    FORBIDDEN = auto()  # HTTP 403 instead of the WebSocket
    STALL_BEFORE_HANDSHAKE = auto()  # accepts the connection and never answers
    STALL_BEFORE_SOUND = auto()  # says that the turn starts, then nothing
    STALL_MID_AUDIO = auto()  # speaks `fault_after` words and a bit of the next one, then nothing
    STALL_BEFORE_END = auto()  # speaks everything, but never says that the turn has ended
    DROP_BEFORE_SOUND = auto()  # closes the connection before any sound
    DROP_MID_AUDIO = auto()  # speaks `fault_after` words and a bit of the next one, then cuts the connection
    CLOSE_MID_AUDIO = auto()  # the same with a polite WebSocket close, which edge-tts takes for the end
    STALL_AFTER_END = auto()  # speaks everything and says so, but never answers the client's closing
    DROP_BEFORE_END = auto()  # speaks everything, then cuts the connection
    NO_AUDIO = auto()  # ends the turn without sound
    NOISE_FOR_AUDIO = auto()  # sends bytes that are not mp3
    UNKNOWN_PATH = auto()  # a text message with a path that the client does not know
    GARBAGE_TEXT = auto()  # a text message without headers
    GARBAGE_METADATA = auto()  # metadata that is not JSON
    GARBAGE_BINARY = auto()  # a binary message shorter than its header
    GARBAGE_FRAME = auto()  # bytes that are no WebSocket frame


@dataclass(frozen=True)
class EdgeRequest:
    """What the client asked for."""

    ssml: str
    text: str
    voice: str
    rate: str
    pitch: str
    config: str


def announced_words(text: str, spoken_as: Mapping[str, tuple[str, ...]] | None = None) -> list[str]:
    """The words the server announces for `text`: Latin words and numbers whole, other scripts by twos.

    `spoken_as` replaces a word by those the service would announce for it, such as {"22": ("twenty", "two")}.
    """
    words = re.findall(r"[⺀-\uffff]{1,2}|[^\W_]+(?:['’.,:-][^\W_]+)*%?", re.sub(r"[，。！？、；：“”]", " ", text))
    return [said for word in words for said in (spoken_as or {}).get(word, (word,))]


@functools.lru_cache(maxsize=32)
def spoken_mp3(words: int) -> bytes:
    """mp3 (24 kHz, 48 kbit/s, mono) of `words` beeps, each at its own pitch, as the service would time them."""
    pieces: list[NDArray[np.int16]] = [_silence(LEAD_SECONDS)]
    for index in range(words):
        pieces += [_beep(300 + 40 * (index % 20)), _silence(PAUSE_SECONDS)]
    return encode_mp3(np.concatenate(pieces))


def encode_mp3(pcm: NDArray[np.int16]) -> bytes:
    """24 kHz mono samples, shape (n,), as constant-rate mp3 in the service's format."""
    encoder = av.Codec("libmp3lame", "w").create("audio")
    encoder.sample_rate = RATE
    encoder.format = "s16p"
    encoder.layout = "mono"
    encoder.bit_rate = BIT_RATE
    encoder.time_base = Fraction(1, RATE)
    packets: list[bytes] = []
    for start in range(0, len(pcm), FRAME_SAMPLES):
        frame = av.AudioFrame.from_ndarray(
            pcm[start : start + FRAME_SAMPLES].reshape(1, -1), format="s16p", layout="mono"
        )
        frame.sample_rate = RATE
        frame.pts = start
        packets += [bytes(packet) for packet in encoder.encode(frame)]
    packets += [bytes(packet) for packet in encoder.encode(None)]
    return b"".join(packets)


class EdgeServer:
    """The server; an async context manager. Listens on a free loopback port."""

    def __init__(self, *, spoken_as: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self.default = Behaviour.NORMAL
        self.fault_after = 2
        """Words that are spoken in full before a fault in the middle of the sound."""
        self.requests: list[EdgeRequest] = []
        """What was asked for, in order; a connection refused or forbidden asks for nothing."""
        self.connections = 0
        """How many connections were tried, forbidden ones too."""
        self._spoken_as = spoken_as
        self._next: deque[Behaviour] = deque()
        self._transports: list[asyncio.Transport] = []
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """For `edge_tts.communicate.WSS_URL`; stays the same after `refuse`."""
        return f"ws://127.0.0.1:{self._port}/edge/v1?TrustedClientToken=test"

    @property
    def open_connections(self) -> int:
        """Connections that the client has not closed yet."""
        return sum(not transport.is_closing() for transport in self._transports)

    async def until_open(self, count: int) -> None:
        """Return once the client has `count` connections open; bound the wait with a timeout of your own."""
        while self.open_connections != count:  # noqa: ASYNC110 - a transport tells nobody that its peer has closed it
            await asyncio.sleep(POLL_SECONDS)

    def next(self, *behaviours: Behaviour) -> None:
        """What to do with the next connections, one each; `default` after that."""
        self._next.extend(behaviours)

    async def refuse(self) -> None:
        """Stop listening, so that a connection is refused."""
        if self._runner is not None:
            self._closing.set()
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def __aenter__(self) -> EdgeServer:
        app = web.Application()
        app.router.add_get("/edge/v1", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        listener = socket.create_server(("127.0.0.1", 0))
        self._port = listener.getsockname()[1]
        await web.SockSite(self._runner, listener).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.refuse()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.connections += 1
        behaviour = self._next.popleft() if self._next else self.default
        if behaviour is Behaviour.FORBIDDEN:
            return web.Response(status=403)
        transport = request.transport
        assert transport is not None
        self._transports.append(transport)
        if behaviour is Behaviour.STALL_BEFORE_HANDSHAKE:
            await self._closing.wait()
            return web.Response(status=503)
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        with contextlib.suppress(ConnectionError):
            await self._play(websocket, transport, behaviour)
        return websocket

    async def _play(self, websocket: web.WebSocketResponse, transport: asyncio.Transport, behaviour: Behaviour) -> None:
        config = (await websocket.receive_str()).partition("\r\n\r\n")[2]
        ssml = (await websocket.receive_str()).partition("\r\n\r\n")[2]
        asked = _parsed(ssml, config)
        self.requests.append(asked)
        words = announced_words(asked.text, self._spoken_as)
        await websocket.send_str(_text_message("turn.start", "{}"))
        await websocket.send_str(_text_message("response", "{}"))
        match behaviour:
            case Behaviour.STALL_BEFORE_SOUND:
                await self._closing.wait()
            case Behaviour.DROP_BEFORE_SOUND:
                transport.abort()
            case Behaviour.STALL_MID_AUDIO:
                await self._speak(websocket, words, self.fault_after)
                await self._closing.wait()
            case Behaviour.DROP_MID_AUDIO:
                await self._speak(websocket, words, self.fault_after)
                transport.close()
            case Behaviour.CLOSE_MID_AUDIO:
                await self._speak(websocket, words, self.fault_after)
                await websocket.close()
            case Behaviour.STALL_BEFORE_END:
                await self._speak(websocket, words, len(words))
                await self._closing.wait()
            case Behaviour.STALL_AFTER_END:
                await self._speak(websocket, words, len(words))
                await websocket.send_str(_text_message("turn.end", "{}"))
                await self._closing.wait()
            case Behaviour.DROP_BEFORE_END:
                await self._speak(websocket, words, len(words))
                transport.close()
            case Behaviour.NOISE_FOR_AUDIO:
                await websocket.send_bytes(_audio_message(b"this is no mp3 at all. " * 200))
                await websocket.send_str(_text_message("turn.end", "{}"))
            case Behaviour.UNKNOWN_PATH:
                await websocket.send_str(_text_message("surprise", "{}"))
            case Behaviour.GARBAGE_TEXT:
                await websocket.send_str("no headers here")
            case Behaviour.GARBAGE_METADATA:
                await websocket.send_str(_text_message("audio.metadata", "not JSON"))
            case Behaviour.GARBAGE_BINARY:
                await websocket.send_bytes(b"\xff\xffshort")
            case Behaviour.GARBAGE_FRAME:
                transport.write(b"\xff" * 64)
                await self._closing.wait()
            case Behaviour.NO_AUDIO:
                await websocket.send_str(_text_message("turn.end", "{}"))
            case Behaviour.NORMAL:
                await self._speak(websocket, words, len(words))
                await websocket.send_str(_text_message("turn.end", "{}"))
                await websocket.receive()

    async def _speak(self, websocket: web.WebSocketResponse, words: list[str], count: int) -> None:
        """Announce and send `count` of `words`, and half of the next one if there is one."""
        mp3 = spoken_mp3(len(words))
        sent = 0
        for index, word in enumerate(words[: count + 1]):
            start = LEAD_SECONDS + index * (WORD_SECONDS + PAUSE_SECONDS)
            await websocket.send_str(_text_message("audio.metadata", _word_boundary(word, start)))
            stop = start + WORD_SECONDS + CODER_DELAY_SECONDS if index < count else start + WORD_SECONDS / 2
            until = len(mp3) if index + 1 == len(words) == count else _frames(stop) * FRAME_BYTES
            # The pieces' edges are not those of the mp3 frames, as with the service.
            for edge in range(sent, until, PIECE_BYTES):
                await websocket.send_bytes(_audio_message(mp3[edge : min(until, edge + PIECE_BYTES)]))
                await asyncio.sleep(0)
            sent = max(sent, until)


def _frames(seconds: float) -> int:
    return round(seconds * RATE) // FRAME_SAMPLES


def _silence(seconds: float) -> NDArray[np.int16]:
    return np.zeros(round(seconds * RATE), dtype=np.int16)


def _beep(hertz: float) -> NDArray[np.int16]:
    time = np.arange(round(WORD_SECONDS * RATE)) / RATE
    return (8000 * np.sin(2 * np.pi * hertz * time)).astype(np.int16)


def _parsed(ssml: str, config: str) -> EdgeRequest:
    space = "{http://www.w3.org/2001/10/synthesis}"
    voice = ElementTree.fromstring(ssml).find(f"{space}voice")
    prosody = voice.find(f"{space}prosody") if voice is not None else None
    if voice is None or prosody is None:
        raise aiohttp.ClientPayloadError(f"not the expected SSML: {ssml}")
    return EdgeRequest(
        ssml, prosody.text or "", voice.attrib["name"], prosody.attrib["rate"], prosody.attrib["pitch"], config
    )


def _word_boundary(word: str, start: float) -> str:
    data = {
        "Offset": round(start * TICKS),
        "Duration": round(WORD_SECONDS * TICKS),
        "text": {"Text": word, "Length": len(word), "BoundaryType": "WordBoundary"},
    }
    return json.dumps({"Metadata": [{"Type": "WordBoundary", "Data": data}]}, ensure_ascii=False)


def _text_message(path: str, body: str) -> str:
    return f"X-RequestId:1\r\nContent-Type:application/json; charset=utf-8\r\nPath:{path}\r\n\r\n{body}"


def _audio_message(data: bytes) -> bytes:
    header = b"X-RequestId:1\r\nContent-Type:audio/mpeg\r\nPath:audio\r\n"
    return len(header).to_bytes(2, "big") + header + data
