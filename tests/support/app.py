"""The real web app over scripted engines, served on a free loopback port from a thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from spoken_chat.engines import Engines
from spoken_chat.settings import Settings, load
from spoken_chat.stages import Stages
from spoken_chat.talk.registry import TalkRegistry
from spoken_chat.web import create_app, largest_message
from tests.support.engines import ScriptedModel, ScriptedRecognizer, ScriptedSynthesizer
from tests.support.talking import ScriptedEars


class ScriptedEngines(Engines):
    """Engines whose parts are scripted; loading waits for `loaded`.

    `ears` write down what was said, `brain` answers, `mouth` speaks; `listening` takes the level of a sound for the
    probability of speech, unless real models are put in its place.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.listening = ScriptedEars()  # type: ignore[assignment]
        self.ears = ScriptedRecognizer(text="what is your name", delay=0.05)
        self.brain = ScriptedModel(
            time.monotonic, ["[happy] Hello to ", "you. I am ", "scripted <b>and</b> plain."], gap=0.02
        )
        self.mouth = ScriptedSynthesizer(delay=0.05, name="kokoro", amplitude=100)  # loud enough to be heard
        self.loaded = threading.Event()
        self.loaded.set()

    async def _load_asr(self) -> str:
        await asyncio.to_thread(self.loaded.wait, 30)
        return self.ears.name

    async def _load_llm(self) -> str:
        return self.brain.name

    async def _load_tts(self) -> str:
        return self.mouth.name

    async def stages(self, needed=("asr", "llm", "tts")) -> Stages:  # type: ignore[no-untyped-def, override]
        self.check_loaded(needed)
        return Stages(self.ears, self.brain, self.mouth)


@dataclass
class Served:
    """A running app."""

    url: str
    engines: ScriptedEngines
    talks: TalkRegistry


@contextmanager
def served(*, hold_loading: bool = False, port: int = 0, **settings: object) -> Iterator[Served]:
    """Serve the app until the block ends; it must stop cleanly. `hold_loading` waits for `engines.loaded`.

    `port` 0 is a free one.
    """
    engines = ScriptedEngines(load(**settings))
    if hold_loading:
        engines.loaded.clear()
    app = create_app(engines)
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=1,
        ws_max_size=largest_message(engines.settings),
        ws_per_message_deflate=False,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while not server.started:
        if time.monotonic() > deadline or not thread.is_alive():
            raise RuntimeError("the app did not start")
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Served(f"http://127.0.0.1:{port}", engines, app.state.talks)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive(), "the app did not stop"
