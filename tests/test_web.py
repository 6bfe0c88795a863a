"""The app's own routes: health, the export, the page's scripts. The page itself is tested in a browser."""

from __future__ import annotations

import base64
import importlib.metadata
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx2
import numpy as np
import pytest
from fastapi import FastAPI

from spoken_chat import web
from spoken_chat.circumstances import Circumstances
from spoken_chat.engines import STAGES
from spoken_chat.settings import load
from spoken_chat.talk.registry import OpenTalk, TalkRegistry
from spoken_chat.timeline import medians, percentiles
from spoken_chat.turn import Utterance
from spoken_chat.ui.page import ASSETS
from tests.support.app import ScriptedEngines
from tests.support.engines import ScriptedModel, ScriptedRecognizer, ScriptedSynthesizer, chat_error
from tests.support.loading import bare_environment
from tests.support.waiting import until


@dataclass
class Web:
    """The app, what is behind it, and a client that reaches it without a socket."""

    app: FastAPI
    engines: ScriptedEngines
    registry: TalkRegistry
    client: httpx2.AsyncClient


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Web]:
    bare_environment(monkeypatch)
    behind: list[TalkRegistry] = []

    class SeenRegistry(TalkRegistry):
        def __init__(self, engines: ScriptedEngines) -> None:
            super().__init__(engines)
            behind.append(self)

    monkeypatch.setattr(web, "TalkRegistry", SeenRegistry)
    engines = ScriptedEngines(load())
    engines.ears = ScriptedRecognizer(text="what is your name", delay=0.0)
    engines.brain = ScriptedModel(time.monotonic, ["[happy] Hello. ", "All is well."], first=0.0, gap=0.0)
    engines.mouth = ScriptedSynthesizer(delay=0.0)
    app = web.create_app(engines)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://app") as client:
        yield Web(app, engines, behind[0], client)


async def talk(served: Web, *utterances: Utterance) -> OpenTalk:
    """A talk that is known to the app and has had these turns."""
    await served.engines.load()
    opened = served.registry.open()
    for utterance in utterances:
        await say(opened, utterance)
    return opened


async def say(opened: OpenTalk, utterance: Utterance) -> None:
    """One more turn, to its end."""
    turn = await opened.talk.say(utterance)
    await until(lambda: turn.status != "running" and opened.session.running is None)


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
    opened = await talk(served, spoken, typed)
    served.engines.brain.refusals.append(chat_error("llm_timeout"))
    await say(opened, typed)
    answer = await served.client.get(f"/v1/sessions/{opened.session.id}/turns")
    assert answer.status_code == 200
    assert answer.json()["turns"] == [turn.record() for turn in opened.session.turns]
    assert answer.json()["versions"] == web.versions()
    assert "timelines.json" in answer.headers["content-disposition"]
    first, second, third = answer.json()["turns"]
    assert (first["transcript"], first["reply"], first["mood"]) == ("what is your name", "Hello. All is well.", "happy")
    assert (first["kind"], second["kind"]) == ("push_to_talk", "typed")
    assert second["metrics"]["asr_ms"] is None
    assert (third["status"], third["error"]["code"]) == ("failed", "llm_timeout")


async def test_the_export_sums_the_turns_up_as_the_page_does(served: Web) -> None:
    opened = await talk(served, *(Utterance(text=str(number)) for number in range(3)))
    hands_free = opened.session.turns[-1]
    hands_free.kind, hands_free.circumstances = "hands_free", Circumstances("hit", dropped_starts=1)
    summary = (await served.client.get(f"/v1/sessions/{opened.session.id}/turns")).json()["summary"]
    measured = [turn.metrics for turn in opened.session.turns]
    assert summary["median"] == medians(measured)[0].as_dict()
    assert summary["p95"] == percentiles(measured, 0.95).as_dict()
    assert (summary["n"]["ttft_ms"], summary["n"]["v2v_ms"]) == (3, 0)
    assert summary["speculation"] == {"hits": 1, "misses": 0, "off": 0, "dropped_starts": 1}


async def test_a_session_without_turns_has_an_empty_export(served: Web) -> None:
    opened = await talk(served)
    body = (await served.client.get(f"/v1/sessions/{opened.session.id}/turns")).json()
    assert body["turns"] == []
    assert set(body["summary"]["median"].values()) == {None}


async def test_an_export_is_found_by_the_sessions_own_id_and_only_while_its_page_is_open(served: Web) -> None:
    opened = await talk(served, Utterance(text="hi"))
    wrong = await served.client.get(f"/v1/sessions/{opened.token}/turns")
    assert wrong.status_code == 404, "what lets somebody talk opens no export"
    await served.registry.drop(opened.token)
    answer = await served.client.get(f"/v1/sessions/{opened.session.id}/turns")
    assert answer.status_code == 404
    assert answer.json()["error"].endswith(".")


# The page's scripts


async def test_every_script_of_the_page_is_served_as_one_and_asked_for_again_when_it_changed(served: Web) -> None:
    scripts = [path for path in (ASSETS / "talk").iterdir() if path.suffix == ".js"]
    assert scripts
    for path in scripts:
        answer = await served.client.get(f"/talk-assets/{path.name}")
        assert answer.content == path.read_bytes()
        assert "javascript" in answer.headers["content-type"]
        assert answer.headers["cache-control"] == "no-cache"
        known = {"If-None-Match": answer.headers["etag"]}
        assert (await served.client.get(f"/talk-assets/{path.name}", headers=known)).status_code == 304


@pytest.mark.parametrize("path", ["none.js", "../style.css", "%2e%2e/style.css", ""])
async def test_nothing_else_is_served_with_the_scripts(served: Web, path: str) -> None:
    assert (await served.client.get(f"/talk-assets/{path}")).status_code == 404


# The WebSocket's messages


def test_the_largest_image_and_the_longest_sound_fit_into_a_message() -> None:
    for settings in (load(image_max_bytes=20_000_000), load(image_max_bytes=1, audio_max_seconds=300.0)):
        image = base64.b64encode(bytes(settings.image_max_bytes)).decode()
        sound = base64.b64encode(bytes(int(settings.audio_max_seconds * 48_000))).decode()
        content = max(image, sound, key=len)
        message = {"type": "conversation.item.create", "item": {"content": [{"image_url": content}]}}
        assert len(json.dumps(message)) < web.largest_message(settings)


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


async def test_talks_are_closed_before_the_engines_they_use(served: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    served.engines.brain = ScriptedModel(time.monotonic, ["One more sentence. "] * 2000, first=0.0, gap=0.01)
    open_at_the_end: list[int] = []

    async def close() -> None:
        open_at_the_end.append(len(served.registry))

    monkeypatch.setattr(served.engines, "close", close)
    async with served.app.router.lifespan_context(served.app):
        await until(lambda: served.engines.ready)
        turn = await served.registry.open().talk.say(Utterance(text="talk on"))
        await until(lambda: turn.reply)
    assert open_at_the_end == [0]
    assert (turn.status, served.engines.brain.closed) == ("cancelled", 1)


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
