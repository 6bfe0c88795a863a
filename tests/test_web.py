"""The app's own routes: health, the export, and the sound of a reply. The page itself is tested in a browser."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx2
import numpy as np
import pytest
from fastapi import FastAPI

from spoken_chat import web
from spoken_chat.engines import STAGES
from spoken_chat.session import ChatSession
from spoken_chat.settings import load
from spoken_chat.turn import Utterance
from spoken_chat.ui.handlers import Handlers
from tests.support.app import ScriptedEngines
from tests.support.engines import ScriptedModel, ScriptedRecognizer, ScriptedSynthesizer, chat_error
from tests.support.loading import bare_environment
from tests.support.waiting import until


@dataclass
class Web:
    """The app, what is behind it, and a client that reaches it without a socket."""

    app: FastAPI
    engines: ScriptedEngines
    handlers: Handlers
    client: httpx2.AsyncClient


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Web]:
    bare_environment(monkeypatch)
    behind: list[Handlers] = []

    class SeenHandlers(Handlers):
        def __init__(self, engines: ScriptedEngines) -> None:
            super().__init__(engines)
            behind.append(self)

    monkeypatch.setattr(web, "Handlers", SeenHandlers)
    engines = ScriptedEngines(load())
    engines.ears = ScriptedRecognizer(text="what is your name", delay=0.0)
    engines.brain = ScriptedModel(time.monotonic, ["[happy] Hello. ", "All is well."], first=0.0, gap=0.0)
    engines.mouth = ScriptedSynthesizer(delay=0.0)
    app = web.create_app(engines)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://app") as client:
        yield Web(app, engines, behind[0], client)


async def talk(served: Web, *utterances: Utterance) -> ChatSession:
    """A session that is known to the app and has had these turns."""
    await served.engines.load()
    persona = served.engines.opening_persona
    session = ChatSession(persona, persona.voices[0], 4000)
    served.handlers.sessions.add("page", session)
    for utterance in utterances:
        _, events = await session.take(await served.engines.stages(), utterance)
        async for _ in events:
            pass
    return session


# /healthz


async def test_health_is_loading_until_every_stage_is_ready(served: Web) -> None:
    answer = await served.client.get("/healthz")
    assert answer.status_code == 503
    body = answer.json()
    assert body["status"] == "loading"
    assert {name: stage["status"] for name, stage in body["stages"].items()} == dict.fromkeys(STAGES, "waiting")
    await served.engines.load()
    served.engines.states["tts"].status = "loading"
    assert (await served.client.get("/healthz")).status_code == 503
    served.engines.states["tts"].status = "ready"
    answer = await served.client.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")
    assert answer.json()["stages"] == served.engines.health()


async def test_health_says_which_stage_failed_and_why(served: Web) -> None:
    await served.engines.load()
    state = served.engines.states["llm"]
    state.status, state.code, state.detail = "failed", "llm_unreachable", "The server is not there; start it."
    answer = await served.client.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (503, "failed")
    assert answer.json()["stages"]["llm"]["detail"] == "The server is not there; start it."
    assert answer.json()["stages"]["asr"]["status"] == "ready"


async def test_health_names_the_versions_of_what_makes_the_figures(served: Web) -> None:
    versions = (await served.client.get("/healthz")).json()["versions"]
    for name in ("gradio", "openai", "faster-whisper", "edge-tts"):
        assert versions[name] == importlib.metadata.version(name)
    assert {"spoken-chat", "python"} <= set(versions)


# The export


async def test_the_export_is_the_record_of_every_turn(served: Web) -> None:
    spoken, typed = Utterance(audio=np.zeros(1600, np.float32)), Utterance(text="hi")
    session = await talk(served, spoken, typed)
    served.engines.brain.refusals.append(chat_error("llm_timeout"))
    _, events = await session.take(await served.engines.stages(), typed)
    async for _ in events:
        pass
    answer = await served.client.get(f"/v1/sessions/{session.id}/turns")
    assert answer.status_code == 200
    assert answer.json()["turns"] == [turn.record() for turn in session.turns]
    assert answer.json()["versions"] == web.versions()
    assert "timelines.json" in answer.headers["content-disposition"]
    first, second, third = answer.json()["turns"]
    assert (first["transcript"], first["reply"], first["mood"]) == ("what is your name", "Hello. All is well.", "happy")
    assert (first["kind"], second["kind"]) == ("push_to_talk", "typed")
    assert second["metrics"]["asr_ms"] is None
    assert (third["status"], third["error"]["code"]) == ("failed", "llm_timeout")


async def test_a_session_without_turns_has_an_empty_export(served: Web) -> None:
    session = await talk(served)
    assert (await served.client.get(f"/v1/sessions/{session.id}/turns")).json()["turns"] == []


async def test_an_export_is_found_by_the_sessions_own_id_and_only_while_its_page_is_open(served: Web) -> None:
    session = await talk(served, Utterance(text="hi"))
    assert (await served.client.get("/v1/sessions/page/turns")).status_code == 404, "the page's key opens nothing"
    await served.handlers.sessions.drop("page")
    answer = await served.client.get(f"/v1/sessions/{session.id}/turns")
    assert answer.status_code == 404
    assert answer.json()["error"].endswith(".")


# The sound


async def test_the_sound_is_what_was_pushed_once_and_only_once(served: Web) -> None:
    sounds = served.handlers.sounds
    pieces = [np.arange(start, start + 240, dtype=np.int16) for start in (0, -500, 30_000)]
    sounds.open("turn")
    for piece in pieces:
        sounds.push("turn", piece)
    sounds.end("turn")
    answer = await served.client.get("/v1/sound/turn")
    assert answer.status_code == 200
    assert answer.content == np.concatenate(pieces).astype("<i2").tobytes()
    assert answer.headers["cache-control"] == "no-store"
    again = await served.client.get("/v1/sound/turn")
    assert again.status_code == 404
    assert again.json()["error"].endswith(".")


async def test_a_turn_that_said_nothing_has_a_sound_that_is_empty(served: Web) -> None:
    served.handlers.sounds.open("turn")
    served.handlers.sounds.end("turn")
    answer = await served.client.get("/v1/sound/turn")
    assert (answer.status_code, answer.content) == (200, b"")


# The app's life


async def test_engines_load_when_the_app_starts_and_close_with_it(served: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    async def close() -> None:
        closed.append(True)

    monkeypatch.setattr(served.engines, "close", close)
    async with served.app.router.lifespan_context(served.app):
        await until(lambda: served.engines.ready)
        assert closed == []
    assert closed == [True]


async def test_an_app_that_stops_while_it_loads_closes_its_engines_too(
    served: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []

    async def close() -> None:
        closed.append(True)

    monkeypatch.setattr(served.engines, "close", close)
    served.engines.loaded.clear()
    async with served.app.router.lifespan_context(served.app):
        await until(lambda: served.engines.states["asr"].status == "loading")
    served.engines.loaded.set()
    assert closed == [True]
