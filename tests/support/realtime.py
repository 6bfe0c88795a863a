"""`/v1/realtime` over scripted engines, served by uvicorn in a thread, and the official client in front of it.

In the sound of these tests a sample's size is the probability of speech, as in tests/support/talking.py.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import openai
import uvicorn
from fastapi import FastAPI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.realtime import RealtimeServerEvent
from PIL import Image
from pydantic import BaseModel, TypeAdapter

from spoken_chat.audio import TTS_RATE, FloatPcm
from spoken_chat.engines import Engines, StageState
from spoken_chat.realtime.connection import Phrase
from spoken_chat.realtime.route import add_realtime, in_english
from spoken_chat.settings import Settings, load
from spoken_chat.stages import Stages
from spoken_chat.talk.registry import OpenTalk, TalkRegistry
from tests.support.engines import ScriptedModel, ScriptedRecognizer, ScriptedSynthesizer
from tests.support.talking import ScriptedEars
from tests.support.waiting import WAIT_S

T = TypeVar("T")

OWN = frozenset(
    {
        "turn.timeline",
        "turn.progress",
        "turn.started",
        "input.caption",
        "input.dropped",
        "reply.mood",
        "reply.duck",
        "notice",
        "conversation.restored",
    }
)
"""Events that only docs/realtime.md knows."""

BESIDE_THE_TYPES = frozenset({"id", "object"})
"""Of a session: the service sends them too, and the client's type has no field for them."""

_any_event: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)


def check(event: dict[str, Any]) -> None:
    """Raise unless `event` is, to the letter, one that the official client's types describe, or one of our own."""
    if event["type"] not in OWN:
        _check_fields(_any_event.validate_python(event, strict=True), event["type"])


def _check_fields(value: Any, where: str) -> None:
    """No field that its type does not have."""
    if isinstance(value, BaseModel):
        beside = set(value.model_extra or {}) - BESIDE_THE_TYPES
        assert not beside, f"{where} has the unknown fields {beside}"
        for name in type(value).model_fields:
            _check_fields(getattr(value, name), f"{where}.{name}")
    elif isinstance(value, list):
        for one in value:
            _check_fields(one, where)


class ScriptedEngines(Engines):
    """Engines whose parts are scripted, loaded from the start."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.script()

    def script(self) -> None:
        """Parts as they are at first, whatever a test made of them."""
        self.listening = ScriptedEars()  # type: ignore[assignment]
        self.recognizer = self.ears = ScriptedRecognizer(text="what is your name", delay=0.02)
        self.brain = ScriptedModel(time.monotonic, ["[happy] Hello ", "to you. ", "All is well."], gap=0.005)
        self.mouth = ScriptedSynthesizer(delay=0.02, name="kokoro")
        self.states = {name: StageState("ready") for name in self.states}

    async def stages(self, needed: Any = ("asr", "llm", "tts")) -> Stages:
        self.check_loaded(needed)
        return Stages(self.ears, self.brain, self.mouth)


@dataclass
class Wire:
    """A running server."""

    address: str
    engines: ScriptedEngines
    registry: TalkRegistry
    loop: asyncio.AbstractEventLoop
    key: str = "any"
    idle_tasks: int = 0

    async def on_server(self, work: Callable[[], T]) -> T:
        """The result of `work` on the server's event loop."""

        async def run() -> T:
            return work()

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(), self.loop))

    async def tasks(self) -> int:
        """How many tasks run on the server's event loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_count_others(), self.loop))

    async def open(self, language: str = "en") -> OpenTalk:
        """A page's conversation."""
        return await self.on_server(lambda: self.registry.open(language))

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until `true()` holds on the server."""
        async with asyncio.timeout(WAIT_S):
            while not await self.on_server(true):  # noqa: ASYNC110 - it happens in another thread
                await asyncio.sleep(0.01)

    async def nothing_left(self, talks: int = 0) -> None:
        """Wait until no turn and no task is left, and only so many talks."""
        async with asyncio.timeout(WAIT_S):
            while await self.tasks() > self.idle_tasks or len(self.registry) != talks:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.01)

    @asynccontextmanager
    async def client(self, token: str | None = None, **headers: str) -> AsyncIterator[Client]:
        """The official client, connected; with `token`, as a page."""
        query = {} if token is None else {"token": token}
        sdk = openai.AsyncOpenAI(
            api_key=self.key,
            base_url=f"http://{self.address}/v1",
            websocket_base_url=f"ws://{self.address}/v1",
            max_retries=0,
        )
        async with (
            sdk,
            sdk.realtime.connect(model="spoken-chat", extra_query=query, extra_headers=headers) as connection,
        ):
            client = Client(connection)
            try:
                yield client
            finally:
                await client.stop()


async def _count_others() -> int:
    return len(asyncio.all_tasks()) - 1


@contextmanager
def wire(phrase: Phrase = in_english, **settings: object) -> Iterator[Wire]:
    """Serve the route until the block ends; it must stop cleanly."""
    engines = ScriptedEngines(load(**settings))
    registry = TalkRegistry(engines)
    begun: list[asyncio.AbstractEventLoop] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        begun.append(asyncio.get_running_loop())
        yield
        await registry.close()

    app = FastAPI(lifespan=lifespan)
    add_realtime(app, registry, engines.settings, phrase)
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, log_level="warning", timeout_graceful_shutdown=1, ws_max_size=1 << 26
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while not server.started:
        if time.monotonic() > deadline or not thread.is_alive():
            raise RuntimeError("the server did not start")
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    running = Wire(f"127.0.0.1:{port}", engines, registry, begun[0])
    running.idle_tasks = asyncio.run_coroutine_threadsafe(_count_others(), running.loop).result(WAIT_S)
    try:
        yield running
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive(), "the server did not stop"
        engines.synthesizer.close()


@dataclass
class Client:
    """Reads all that comes, checks it against the client's types, and keeps it."""

    sdk: AsyncRealtimeConnection
    events: list[dict[str, Any]] = field(default_factory=list)
    seen: int = 0
    """How many events `next` has handed out."""

    def __post_init__(self) -> None:
        self._came = asyncio.Condition()
        self._fault: BaseException | None = None
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            while True:
                data = await self.sdk.recv_bytes()
                event = json.loads(data)
                check(event)
                self.sdk.parse_event(data)
                async with self._came:
                    self.events.append(event)
                    self._came.notify_all()
        except BaseException as error:
            self._fault = error
            async with self._came:
                self._came.notify_all()
            if isinstance(error, asyncio.CancelledError):
                raise

    async def stop(self) -> None:
        """Read no more."""
        self._reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reader
        if isinstance(self._fault, Exception) and not isinstance(self._fault, openai.OpenAIError):
            name = type(self._fault).__name__
            assert name.startswith("ConnectionClosed"), f"an event could not be read: {self._fault!r}"

    async def next(self, *kinds: str, where: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """The next event of one of `kinds`, behind those that were handed out."""
        async with asyncio.timeout(WAIT_S), self._came:
            while True:
                while self.seen < len(self.events):
                    event = self.events[self.seen]
                    self.seen += 1
                    if event["type"] in kinds and where(event):
                        return event
                if self._fault is not None:
                    raise self._fault
                await self._came.wait()

    async def closed(self) -> int | None:
        """The code with which the server closed the connection."""
        async with asyncio.timeout(WAIT_S), self._came:
            while self._fault is None:
                await self._came.wait()
        received = getattr(self._fault, "rcvd", None)
        return None if received is None else received.code

    def kinds(self, since: int = 0) -> list[str]:
        """The types of all events from number `since` on, those in a row only once."""
        found: list[str] = []
        for event in self.events[since:]:
            if not found or found[-1] != event["type"]:
                found.append(event["type"])
        return found

    def of(self, kind: str) -> list[dict[str, Any]]:
        """All events of one type."""
        return [event for event in self.events if event["type"] == kind]

    async def send(self, kind: str, **fields: Any) -> None:
        """Send an event, whatever it holds."""
        await self.sdk.send_raw(json.dumps({"type": kind, **fields}))

    async def refused(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Send an event and return the error that it makes."""
        await self.send(kind, event_id="mine", **fields)
        found: dict[str, Any] = (await self.next("error"))["error"]
        assert found["event_id"] == "mine"
        return found

    async def write(self, *content: dict[str, Any], role: str = "user", **item: Any) -> str:
        """Add a message and return its id."""
        await self.send("conversation.item.create", item={"type": "message", "role": role, "content": content, **item})
        return str((await self.next("conversation.item.done"))["item"]["id"])

    async def ask(self, text: str, **response: Any) -> dict[str, Any]:
        """Write `text`, ask for an answer, and return the response when it is done."""
        await self.write(said(text))
        await self.send("response.create", **({"response": response} if response else {}))
        return dict((await self.next("response.done"))["response"])

    async def configure(self, **session: Any) -> dict[str, Any]:
        """Change the session and return it."""
        await self.send("session.update", session={"type": "realtime", **session})
        return dict((await self.next("session.updated"))["session"])

    async def by_hand(self) -> None:
        """Find no end of a turn by listening."""
        await self.configure(audio={"input": {"turn_detection": None}})

    async def sound(self, seconds: float, level: float = 0.9) -> None:
        """Send sound of that level at once."""
        await self.send("input_audio_buffer.append", audio=encoded(tone(seconds, level)))

    async def speak(self, seconds: float, level: float = 0.9) -> None:
        """Send sound of that level in real time, in pieces of 40 ms."""
        for _ in range(round(seconds / 0.04)):
            await self.sound(0.04, level)
            await asyncio.sleep(0.04)

    async def silence_until(self, waiting: Awaitable[T]) -> T:
        """Send silence in real time until `waiting` is done."""
        task = asyncio.ensure_future(waiting)
        while not task.done():
            await self.speak(0.04, 0.0)
        return await task


def said(text: str) -> dict[str, Any]:
    """A part of text."""
    return {"type": "input_text", "text": text}


def picture(colour: str = "red") -> dict[str, str]:
    """A part of a message: an image."""
    out = io.BytesIO()
    Image.new("RGB", (320, 240), colour).save(out, "PNG")
    url = "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
    return {"type": "input_image", "image_url": url}


def tone(seconds: float, level: float = 0.9) -> FloatPcm:
    """Sound of the wire's rate that the scripted detector takes for speech with probability `level`."""
    return np.full(round(seconds * TTS_RATE), level, np.float32)


def encoded(samples: FloatPcm) -> str:
    """Base64 of PCM16."""
    return base64.b64encode((samples * 32767).astype("<i2").tobytes()).decode()
