"""The model server is asked again, started again with back-off, watched and kept warm while the app runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spoken_chat import supervisor as module
from spoken_chat.errors import ChatError
from spoken_chat.model_stage import ModelStage
from spoken_chat.persona import load_personas
from spoken_chat.server.watch import ServerCard
from spoken_chat.settings import ROOT, load
from spoken_chat.stage_state import Choice, StageState
from spoken_chat.supervisor import FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S, PASSING, Supervisor
from tests.support.fake_vllm import FakeVllm
from tests.support.openai_server import ScriptedServer, say
from tests.support.scripted_vllm import NAME, ScriptedVllm
from tests.support.virtual_time import run_virtual
from tests.support.waiting import until

PERSONAS = load_personas(ROOT / "persona")


class Stage:
    """A ModelStage by script: `deaths` are how long it runs before each end, `faults` what each load ends with."""

    def __init__(self, *, deaths: list[float], faults: list[str], engine: str = "vllm") -> None:
        self.choice = Choice(engine, "")
        self.state = StageState("ready")
        self.deaths, self.faults = deaths, faults
        self.loads: list[float] = []
        self.looks: list[float] = []

    async def ended(self) -> ChatError:
        await asyncio.sleep(self.deaths.pop(0) if self.deaths else 1e9)
        return ChatError("vllm_crashed", "vLLM does not serve it: signal 6 ended it.")

    async def load_again(self) -> None:
        self.loads.append(asyncio.get_running_loop().time())
        code = self.faults.pop(0) if self.faults else ""
        self.state.status, self.state.code = ("failed", code) if code else ("ready", "")

    async def look(self, sessions: int) -> None:
        assert sessions
        self.looks.append(asyncio.get_running_loop().time())
        raise ChatError("llm_unreachable", "The server cannot be reached.")


def watch(stage: Stage, seconds: float, sessions: int = 0) -> Stage:
    """Supervise `stage` for that long, on a virtual clock."""

    async def main(_: Any) -> None:
        supervisor = Supervisor(stage, stage.load_again, lambda: sessions)  # type: ignore[arg-type]
        task = asyncio.create_task(supervisor.run())
        await asyncio.sleep(seconds)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    run_virtual(main)
    return stage


def test_a_server_that_ends_is_told_and_started_again() -> None:
    stage = watch(Stage(deaths=[10.0], faults=[]), 10.5)
    assert stage.state.status == "failed" and stage.state.code == "vllm_ended"
    assert stage.state.detail.startswith("The model server ended and is started again. vLLM does not serve it")
    stage = watch(Stage(deaths=[10.0], faults=[]), 60)
    assert stage.loads == [10.0 + FIRST_BACK_OFF_S] and stage.state.status == "ready"


def test_one_that_ends_again_and_again_is_given_ever_more_time_up_to_a_minute() -> None:
    stage = watch(Stage(deaths=[0.0], faults=["vllm_crashed"] * 12), 500)
    waits = [round(after - before, 3) for before, after in zip([0.0, *stage.loads], stage.loads, strict=False)]
    assert waits[:7] == [1, 2, 4, 8, 16, 32, LONGEST_BACK_OFF_S]
    assert set(waits[6:]) == {LONGEST_BACK_OFF_S}


def test_one_that_ran_well_before_it_ended_is_started_as_soon_as_the_first_time() -> None:
    stage = watch(Stage(deaths=[0.0, 0.0, 1000.0], faults=[]), 2000)
    first, second, third = stage.loads
    assert (first, second) == (1.0, 3.0) and third == pytest.approx(1003.0 + FIRST_BACK_OFF_S)


@pytest.mark.parametrize("code", ["vllm_model_missing", "vllm_memory", "vllm_unknown_flag", "vllm_no_gpu"])
def test_what_only_a_person_can_mend_is_not_tried_again(code: str) -> None:
    assert code not in PASSING
    stage = watch(Stage(deaths=[5.0], faults=[code, ""]), 1000)
    assert len(stage.loads) == 1 and stage.state.code == code


def test_the_server_is_looked_at_only_while_a_page_is_open_and_a_fault_of_that_changes_nothing() -> None:
    assert watch(Stage(deaths=[], faults=[]), 20).looks == []
    stage = watch(Stage(deaths=[], faults=[]), 20.5, sessions=1)
    assert len(stage.looks) == 20 // module.LOOK_S and stage.state.status == "ready"


# The stage itself, on a vLLM that was named


@pytest.fixture
async def vllm() -> AsyncIterator[ScriptedVllm]:
    async with ScriptedVllm() as server:
        yield server


METRICS = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} 1.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0"} 2.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="544",kv_cache_size_tokens="113981",prefix_match_unit="272"} 1.0
"""


async def loaded(server: ScriptedVllm, **settings: Any) -> ModelStage:
    named = load(llm_base_url=server.base_url, **settings)
    stage = ModelStage(named, Choice("server", "named"), StageState(), PERSONAS, PERSONAS["robin"])
    assert await stage.load() == NAME
    return stage


async def test_before_it_is_ready_every_prefix_was_read_and_a_turn_a_history_and_images_answered(
    vllm: ScriptedVllm,
) -> None:
    stage = await loaded(vllm)
    for persona in PERSONAS.values():
        assert any(persona.prefix in prompt for prompt in vllm.read)
    streamed = [request.body["messages"] for request in vllm.chats if request.body["stream"]]
    assert [len(messages) for messages in streamed[:3]] == sorted(len(messages) for messages in streamed[:3])
    images = [messages for messages in streamed if isinstance(messages[-1]["content"], list)]
    assert len({str(messages[-1]["content"]) for messages in images}) == 6
    assert stage.state.progress is None and (stage.state.code, stage.state.detail) == ("", "")
    await stage.close()


async def test_a_model_known_to_be_blind_is_shown_no_image(vllm: ScriptedVllm) -> None:
    stage = await loaded(vllm, llm_vision="no")
    assert not any(isinstance(one.body["messages"][-1]["content"], list) for one in vllm.chats)
    await stage.close()


async def test_a_first_turn_finds_the_prefix_in_the_cache_whatever_is_said(vllm: ScriptedVllm) -> None:
    stage = await loaded(vllm)
    assert stage.chat is not None
    for persona in PERSONAS.values():
        messages = [{"role": "system", "content": persona.prefix}]
        for user, reply in persona.examples:
            messages += [{"role": "user", "content": user}, {"role": "assistant", "content": reply}]
        events = [event async for event in stage.chat.stream([*messages, {"role": "user", "content": "Zzz?"}])]
        assert events[-1].usage.prefix_missed is False  # type: ignore[union-attr]
    await stage.close()


async def test_the_card_says_what_metrics_say_and_is_blank_where_there_are_none(vllm: ScriptedVllm) -> None:
    stage = await loaded(vllm)
    assert stage.card == ServerCard(NAME, version="0.31.0")
    vllm.metrics = METRICS
    await stage.look(1)
    assert stage.card == replace(
        ServerCard(NAME, version="0.31.0"), running=1, waiting=2, kv_tokens=113_981, block_tokens=544, match_unit=272
    )
    await stage.close()


async def test_a_prefix_is_padded_to_large_blocks_of_a_server_without_a_match_unit(vllm: ScriptedVllm) -> None:
    vllm.metrics = METRICS.replace(',prefix_match_unit="272"', "")
    stage = await loaded(vllm)
    contents = {request.body["messages"][0]["content"] for request in vllm.chats}
    padded = {content for content in contents if content not in {one.prefix for one in PERSONAS.values()}}
    assert len(contents) == len(padded) == len(PERSONAS), "always padded, and always the same"
    await stage.close()


async def test_a_server_is_kept_warm_while_pages_are_open_and_nobody_talks(vllm: ScriptedVllm) -> None:
    stage = await loaded(vllm, llm_keep_warm=0.05)
    read = len(vllm.read)
    await stage.look(1)
    assert len(vllm.read) == read, "it was used just now"
    await asyncio.sleep(0.06)
    await stage.look(0)
    assert len(vllm.read) == read, "no page is open"
    await stage.look(1)
    assert len(vllm.read) == read + 1 and PERSONAS["robin"].prefix in vllm.read[-1]
    await stage.close()


async def test_a_server_of_another_kind_is_neither_watched_nor_kept_warm() -> None:
    async with ScriptedServer(say("[happy] Hello.")) as server:
        settings = load(llm_base_url=server.base_url, llm_keep_warm=0.01)
        stage = ModelStage(settings, Choice("server", "named"), StageState(), PERSONAS, PERSONAS["robin"])
        await stage.load()
        await asyncio.sleep(0.02)
        await stage.look(1)
        assert stage.card is None and len(server.chats) == 1
        await stage.close()


async def test_a_server_that_is_started_again_shows_how_far_it_is_beside_what_was_wrong(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    fake = FakeVllm(tmp_path / "python")
    settings = load(vllm_python=str(fake.python), vllm_port=unused_tcp_port, cache_dir=tmp_path / "cache")
    state = StageState("failed", code="vllm_ended", detail="The model server ended and is started again.")
    stage = ModelStage(settings, Choice("vllm", "asked for"), state, PERSONAS, PERSONAS["robin"])
    loading = asyncio.create_task(stage.load())
    await until(lambda: state.progress is not None)
    assert (state.status, state.code) == ("loading", "vllm_ended") and state.detail
    await loading
    assert (state.progress, state.code, state.detail) == (None, "", "")
    await stage.close()


async def test_a_start_that_failed_leaves_no_progress_behind(tmp_path: Path, unused_tcp_port: int) -> None:
    fake = FakeVllm(tmp_path / "python")
    fake.plan(["INFO Starting to load model m...", "RuntimeError: no"], "end")
    settings = load(vllm_python=str(fake.python), vllm_port=unused_tcp_port, cache_dir=tmp_path / "cache")
    stage = ModelStage(settings, Choice("vllm", "asked for"), StageState(), PERSONAS, PERSONAS["robin"])
    with pytest.raises(ChatError):
        await stage.load()
    assert stage.state.progress is None
