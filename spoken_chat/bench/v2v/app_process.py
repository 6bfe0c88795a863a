"""The app in a process of its own, with a line to it: what the benchmark asks must not share its interpreter.

Each line on standard input is a JSON request, each line on standard output its answer. It ends with its input.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI

from spoken_chat import settings as knobs
from spoken_chat.audio import FloatPcm
from spoken_chat.bench.v2v.scripted import Delays, ScriptedEars, ScriptedModel, ScriptedVoice
from spoken_chat.bench.v2v.simple import SimplePipeline
from spoken_chat.bench.v2v.watched import LoopLag, WatchedRecognizer, WatchedSynthesizer
from spoken_chat.engines import STAGES, Engines, StageName
from spoken_chat.errors import ChatError
from spoken_chat.realtime.route import add_realtime
from spoken_chat.stages import Stages
from spoken_chat.talk.registry import TalkRegistry

Answer = dict[str, Any]


class ScriptedEngines(Engines):
    """The app's engines with scripted ones in their place; the listening models are the real ones."""

    def __init__(self, settings: knobs.Settings, delays: Delays) -> None:
        super().__init__(settings)
        self.ears = ScriptedEars(delays)
        self.brain = ScriptedModel(delays)
        self.mouth = ScriptedVoice(delays)

    async def load(self, stages: Sequence[StageName] = STAGES) -> None:
        """Only the listening models are loaded, and the model server asked that the settings name."""
        await asyncio.to_thread(self.listening.load)
        for name in stages:
            self.states[name].status = "ready"
        if self.settings.llm_base_url:
            await super().load(["llm"])

    async def stages(self, needed: Sequence[StageName] = STAGES) -> Stages:
        """The scripted engines, but for a model server that the settings name."""
        self.check_loaded(needed)
        return Stages(self.ears, self.model.chat or self.brain, self.mouth)


class WatchedEngines(Engines):
    """The app's engines, where the event loop's lag is looked at while they run."""

    def __init__(self, settings: knobs.Settings, lag: LoopLag) -> None:
        super().__init__(settings)
        self._lag = lag

    async def stages(self, needed: Sequence[StageName] = STAGES) -> Stages:
        """The engines, watched."""
        stages = await super().stages(needed)
        ears, mouth = WatchedRecognizer(stages.recognizer, self._lag), WatchedSynthesizer(self.synthesizer, self._lag)
        return Stages(ears, stages.model, mouth)


class Desk:
    """Answers the requests."""

    def __init__(self, engines: Engines, registry: TalkRegistry, lag: LoopLag) -> None:
        self._engines = engines
        self._registry = registry
        self._lag = lag
        self._requests: dict[str, Callable[[Answer], Awaitable[Answer]]] = {
            "open": self._open,
            "close": self._close,
            "simple": self._simple,
            "heard": self._heard,
            "lag": self._start_lag,
            "lagged": self._stop_lag,
        }

    async def answer(self, request: Answer) -> Answer:
        """What `request` ("do": its name) asks for."""
        return await self._requests[request["do"]](request)

    async def _open(self, request: Answer) -> Answer:
        opened = self._registry.open()
        await opened.talk.configure(dataclasses.replace(opened.talk.options, **request["options"]))
        return {"token": opened.token}

    async def _close(self, request: Answer) -> Answer:
        await self._registry.drop(request["token"])
        return {}

    async def _simple(self, request: Answer) -> Answer:
        pipeline = SimplePipeline(self._engines)
        audio: FloatPcm = np.load(request["audio"])
        return {"seconds": await pipeline.answer(audio)}

    async def _heard(self, request: Answer) -> Answer:
        if isinstance(self._engines, ScriptedEngines):
            self._engines.ears.heard = request["text"]
        return {}

    async def _start_lag(self, _: Answer) -> Answer:
        self._lag.start()
        return {}

    async def _stop_lag(self, _: Answer) -> Answer:
        return {"ms": await self._lag.stop()}


async def serve(engines: Engines, lag: LoopLag) -> None:
    """Load `engines`, serve them on a free loopback port, and answer requests until standard input ends."""
    await engines.load()
    failed = [state.detail for state in engines.states.values() if state.status == "failed"]
    if failed:
        _say({"error": failed[0]})
        return
    registry = TalkRegistry(engines)
    app = FastAPI()
    add_realtime(app, registry, engines.settings)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    _say({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"})
    desk = Desk(engines, registry, lag)
    while line := await asyncio.to_thread(sys.stdin.readline):
        _say(await desk.answer(json.loads(line)))
    await registry.close()
    server.should_exit = True
    await serving
    await engines.close()


def _say(answer: Answer) -> None:
    print(json.dumps(answer), flush=True)


class AppProcess:
    """That process, seen from the other side. `delays` gives it scripted engines; without, the settings' own."""

    def __init__(self, settings: Mapping[str, str], delays: Delays | None = None) -> None:
        command = [sys.executable, "-m", __name__]
        if delays is not None:
            command += ["--delays", json.dumps(asdict(delays))]
        names = {knobs.ENV_PREFIX + name.upper(): value for name, value in settings.items()}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, **names},
        )
        self.url = ""

    async def __aenter__(self) -> AppProcess:
        self.url = (await self._read())["url"]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._process.communicate)

    async def ask(self, do: str, **fields: Any) -> Answer:
        """The answer to one request."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **fields}) + "\n")
        self._process.stdin.flush()
        return await self._read()

    async def simple(self, audio: FloatPcm, folder: Path) -> float:
        """Seconds that the simple pipeline takes to answer `audio`, handed over in a file in `folder`."""
        path = folder / "utterance.npy"
        np.save(path, audio)
        return float((await self.ask("simple", audio=str(path)))["seconds"])

    async def _read(self) -> Answer:
        assert self._process.stdout is not None
        line = await asyncio.to_thread(self._process.stdout.readline)
        answer: Answer = json.loads(line) if line else {"error": "The app's process ended; its own output says why."}
        if "error" in answer:
            raise ChatError("bench_app", answer["error"])
        return answer


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--delays", type=json.loads)
    delays = parser.parse_args().delays
    settings = knobs.load()
    lag = LoopLag()
    engines = WatchedEngines(settings, lag) if delays is None else ScriptedEngines(settings, Delays(**delays))
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(engines, lag))


if __name__ == "__main__":
    main()
