"""How the engines load side by side, come back, and end."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from spoken_chat import model_stage, supervisor
from spoken_chat.engines import STAGES, Engines, StageName
from spoken_chat.errors import ChatError
from spoken_chat.llm import TextDelta
from spoken_chat.server.llama import SLOTS
from spoken_chat.settings import load
from spoken_chat.stages import Stages
from spoken_chat.tts import SpeechNotice
from tests.support.engines import chat_error
from tests.support.loading import Scripts, bare_environment, running, script_registries
from tests.support.openai_server import MODEL, ScriptedServer, refuse, say
from tests.support.waiting import WAIT_S, until

SMALL_PERSONA = """---
name: Small
language: en
greeting: Hello!
voices:
  - name: Ann
    edge: en-US-AvaNeural
    kokoro: af_heart
tags:
  calm: {}
---
Be brief.
"""


@pytest.fixture(autouse=True)
def only_given_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    bare_environment(monkeypatch)


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Scripts:
    return script_registries(monkeypatch)


async def keep_trying(engines: Engines) -> None:
    await supervisor.Supervisor(engines.model, engines.load_model_again).keep_trying()


def statuses(engines: Engines) -> dict[str, str]:
    return {name: state.status for name, state in engines.states.items()}


async def test_stages_load_side_by_side_and_each_tells_how_far_it_is(scripts: Scripts) -> None:
    scripts.asr.gate.clear()
    scripts.tts.gate.clear()
    async with ScriptedServer(say("Hello.")) as server, running(llm_base_url=server.base_url) as engines:
        assert {state.status for state in engines.states.values()} == {"waiting"}
        loading = asyncio.create_task(engines.load())
        await until(lambda: statuses(engines) == {"asr": "loading", "llm": "ready", "tts": "loading"})
        assert await asyncio.to_thread(scripts.asr.began.wait, WAIT_S)
        assert await asyncio.to_thread(scripts.tts.began.wait, WAIT_S), "neither waits for the other"
        assert engines.states["asr"].seconds is None
        assert not engines.ready
        scripts.tts.gate.set()
        await until(lambda: engines.states["tts"].status == "ready")
        assert engines.states["asr"].status == "loading"
        scripts.asr.gate.set()
        await loading
        assert engines.ready
        assert not engines.failed
        assert {name: state.engine for name, state in engines.states.items()} == {
            "asr": "scripted-asr", "llm": MODEL, "tts": "scripted-tts"
        }  # fmt: skip
        assert all(state.seconds is not None and state.seconds >= 0 for state in engines.states.values())
        assert isinstance(await engines.stages(), Stages)


async def test_a_stage_that_fails_says_why_and_stops_no_other(scripts: Scripts) -> None:
    scripts.asr.fault = chat_error("asr_model_broken")
    async with ScriptedServer(say("Hello.")) as server, running(llm_base_url=server.base_url) as engines:
        await engines.load()
        state = engines.states["asr"]
        assert (state.status, state.code, state.detail) == ("failed", "asr_model_broken", str(scripts.asr.fault))
        assert (engines.states["llm"].status, engines.states["tts"].status) == ("ready", "ready")
        assert engines.failed
        assert not engines.ready


async def test_a_stage_that_breaks_in_an_unforeseen_way_has_failed_and_the_log_holds_the_cause(
    scripts: Scripts, caplog: pytest.LogCaptureFixture
) -> None:
    scripts.tts.fault = ZeroDivisionError("a bug of ours")
    async with ScriptedServer(say("Hello.")) as server, running(llm_base_url=server.base_url) as engines:
        with caplog.at_level(logging.ERROR):
            await engines.load()
        state = engines.states["tts"]
        assert (state.status, state.code) == ("failed", "stage_broken")
        assert state.detail.endswith(".")
        assert "a bug of ours" in caplog.text
        assert (engines.states["asr"].status, engines.states["llm"].status) == ("ready", "ready")


async def test_a_stage_that_is_loaded_again_starts_from_a_clean_state(scripts: Scripts) -> None:
    scripts.asr.fault = chat_error("asr_model_broken")
    async with running() as engines:
        await engines.load(["asr"])
        scripts.asr.fault = None
        await engines.load(["asr"])
        state = engines.states["asr"]
        assert (state.status, state.code, state.detail) == ("ready", "", "")


async def test_only_the_stages_that_were_asked_for_are_loaded(scripts: Scripts) -> None:
    async with ScriptedServer(say("Hello.")) as server, running(llm_base_url=server.base_url) as engines:
        await engines.load(["llm", "tts"])
        assert engines.states["asr"].status == "waiting"
        assert not scripts.asr.began.is_set()
        assert isinstance(await engines.stages(["llm", "tts"]), Stages)
        with pytest.raises(ChatError, match="still loading"):
            await engines.stages()


@pytest.mark.usefixtures("scripts")
async def test_a_server_whose_first_reply_fails_is_used_all_the_same() -> None:
    async with ScriptedServer(refuse(500), say("Hello.")) as server, running(llm_base_url=server.base_url) as engines:
        await engines.load()
        state = engines.states["llm"]
        assert (state.status, state.code) == ("ready", "llm_server_error")
        model = (await engines.stages()).model
        deltas = [event async for event in model.stream([{"role": "user", "content": "hi"}])]
        assert "Hello." in [event.text for event in deltas if isinstance(event, TextDelta)]


@pytest.mark.usefixtures("scripts")
async def test_the_model_is_greeted_with_the_prefix_that_every_turn_starts_with() -> None:
    async with ScriptedServer(say("Hello.")) as server, running(llm_base_url=server.base_url) as engines:
        await engines.load()
        (greeting,) = server.chats
        persona = engines.opening_persona
        assert greeting.body["messages"][0] == {"role": "system", "content": persona.prefix}
        assert greeting.finished.is_set()


async def test_the_voice_is_tried_with_the_opening_voice_and_stopped_at_the_first_sound(scripts: Scripts) -> None:
    async with running(persona="robin") as engines:
        await engines.load(["tts"])
        (trial,) = scripts.mouth.requests
        assert trial.text == engines.opening_persona.greeting
        assert trial.voices == engines.opening_voice.engines
        assert (scripts.mouth.closed, scripts.mouth.running) == (1, 0)


async def test_a_notice_of_the_voice_is_shown_while_the_stage_is_ready(scripts: Scripts) -> None:
    async with running() as engines:
        greeting = engines.opening_persona.greeting
        scripts.mouth.notices[greeting] = SpeechNotice("tts_fallback", "The local voice speaks.")
        await engines.load(["tts"])
        state = engines.states["tts"]
        assert (state.status, state.code, state.detail) == ("ready", "tts_fallback", "The local voice speaks.")


async def test_health_is_plain_data_of_every_stage(scripts: Scripts) -> None:
    scripts.asr.fault = chat_error("asr_model_broken")
    async with running() as engines:
        await engines.load(["asr"])
        health = json.loads(json.dumps(engines.health()))
        assert list(health) == list(STAGES)
        assert health["asr"]["status"] == "failed"
        assert health["asr"]["detail"] == str(scripts.asr.fault)
        assert health["llm"] == {"status": "waiting", "engine": "", "detail": "", "seconds": None}


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize("status", ["waiting", "loading"])
def test_a_stage_that_is_not_there_yet_asks_for_patience(status: str) -> None:
    engines = Engines(load())
    for state in engines.states.values():
        state.status = "ready"
    engines.check_loaded(STAGES)
    engines.states["tts"].status = status  # type: ignore[assignment]
    engines.check_loaded(["asr", "llm"])
    with pytest.raises(ChatError) as caught:
        engines.check_loaded(STAGES)
    assert caught.value.code == "still_loading"


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize("name", STAGES)
def test_a_stage_that_failed_tells_its_own_fault(name: StageName) -> None:
    engines = Engines(load())
    for state in engines.states.values():
        state.status = "ready"
    state = engines.states[name]
    state.status, state.code, state.detail = "failed", "weights_missing", "A package is missing; install it."
    with pytest.raises(ChatError) as caught:
        engines.check_loaded(STAGES)
    assert (caught.value.code, caught.value.message) == ("weights_missing", "A package is missing; install it.")


# Coming back


@pytest.mark.usefixtures("scripts")
async def test_a_server_that_appears_later_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "RETRY_S", 0.02)
    server = ScriptedServer(say("Hello."))
    await server.start()
    port = int(server.base_url.rpartition(":")[2].partition("/")[0])
    await server.stop()
    async with running(llm_base_url=f"http://127.0.0.1:{port}/v1") as engines:
        await engines.load()
        assert engines.states["llm"].code == "llm_unreachable"
        with pytest.raises(ChatError, match=str(port)):
            await engines.stages()
        trying = asyncio.create_task(keep_trying(engines))
        await asyncio.sleep(0.1)
        assert not trying.done()
        await server.start(port)
        async with asyncio.timeout(WAIT_S):
            await trying
        assert engines.ready
        state = engines.states["llm"]
        assert (state.code, state.detail) == ("", ""), "the page no longer says what was wrong"
        assert (await engines.stages()).model.name == MODEL
    await server.stop()


@pytest.mark.usefixtures("scripts")
async def test_nothing_is_tried_again_when_all_is_well_or_the_model_is_our_own() -> None:
    async with ScriptedServer(say("Hello.")) as server, running(llm_base_url=server.base_url) as engines:
        await engines.load()
        await keep_trying(engines)
        assert len(server.chats) == 1
    async with running() as engines:
        engines.states["llm"].status = "failed"
        await keep_trying(engines)
        assert engines.states["llm"].status == "failed"


class FakeLlama:
    """Stands for the embedded server: its child is the scripted server, and dies when told."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.alive = False
        self.starts = 0
        self.stops = 0
        self.fault: ChatError | None = None

    async def start(self) -> str:
        self.starts += 1
        await asyncio.sleep(0.01)
        if self.fault is not None:
            raise self.fault
        self.alive = True
        return self.server.base_url

    async def stop(self) -> None:
        self.alive = False
        self.stops += 1


@asynccontextmanager
async def embedded(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Engines, FakeLlama]]:
    """Loaded engines with a fake embedded server."""
    async with ScriptedServer(say("Hello.")) as server:
        llama = FakeLlama(server)
        monkeypatch.setattr(model_stage, "LlamaServer", lambda _: llama)
        async with running() as engines:
            await engines.load()
            assert engines.ready
            yield engines, llama


@pytest.mark.usefixtures("scripts")
async def test_an_embedded_server_that_died_is_started_again_once_for_all_who_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with embedded(monkeypatch) as (engines, llama):
        await engines.stages()
        assert llama.starts == 1
        llama.alive = False
        await asyncio.gather(*(engines.stages() for _ in range(3)))
        assert llama.starts == 2
        assert len(llama.server.chats) == 2 * SLOTS, "each slot of the new child is warmed up too"


@pytest.mark.usefixtures("scripts")
async def test_an_embedded_server_that_cannot_be_started_again_says_so_and_may_be_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with embedded(monkeypatch) as (engines, llama):
        llama.alive, llama.fault = False, chat_error("llama_start")
        with pytest.raises(ChatError) as caught:
            await engines.stages()
        assert caught.value.code == "llama_start"
        llama.fault = None
        assert (await engines.stages()).model.name == MODEL


@pytest.mark.engines
@pytest.mark.usefixtures("scripts")
async def test_the_real_embedded_server_answers_again_after_its_process_was_killed(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "persona.md").write_text(SMALL_PERSONA)
    async with running(llm_max_tokens=4, persona_dir=tmp_path) as engines:
        await engines.load(["llm"])
        assert engines.states["llm"].status == "ready", engines.states["llm"].detail
        llama = engines.model.llama
        assert llama is not None
        pid = llama.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not llama.alive)
        stages = await engines.stages(["llm"])
        assert llama.pid not in (None, pid)
        events = [event async for event in stages.model.stream([{"role": "user", "content": "Say hello."}])]
        assert any(isinstance(event, TextDelta) for event in events)
    assert not llama.alive


# The end


@pytest.mark.usefixtures("scripts")
async def test_closing_ends_the_server_the_connections_and_the_threads(
    monkeypatch: pytest.MonkeyPatch, scripts: Scripts
) -> None:
    async with embedded(monkeypatch) as (engines, llama):
        await engines.close()
        assert (llama.stops, llama.alive) == (1, False)
        assert (scripts.asr.closed, scripts.tts.closed) == (1, 1)
        await until(lambda: not llama.server._open)


async def test_what_was_never_loaded_can_be_closed(scripts: Scripts) -> None:
    await Engines(load(tts_engine="kokoro")).close()
    assert (scripts.asr.closed, scripts.tts.closed) == (1, 1)
