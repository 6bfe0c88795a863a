"""Whole turns with the real clients against servers that fail: each fault is one sentence, and the next turn works."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import edge_tts
import pytest

from spoken_chat.conversation import Exchange
from spoken_chat.events import AudioOut, Notice, TurnEvent
from spoken_chat.llm.openai_chat import OpenAIChat
from spoken_chat.persona import PersonaVoice
from spoken_chat.session import ChatSession
from spoken_chat.settings import load
from spoken_chat.stages import Stages
from spoken_chat.tts import Synthesizer
from spoken_chat.tts.edge import EdgeSynthesizer
from spoken_chat.tts.fallback import FallbackSynthesizer
from spoken_chat.turn import Turn, Utterance
from tests.support import openai_server as servers
from tests.support.edge_server import Behaviour, EdgeServer
from tests.support.engines import ScriptedRecognizer, ScriptedSynthesizer, scripted_persona

TIMEOUTS = {"llm_first_token_timeout": 0.6, "llm_token_timeout": 0.4, "llm_connect_timeout": 1.0}
GOOD = servers.say("[happy] All is ", "well again today.")


VOICE = PersonaVoice("Ann", {"edge": "en-US-AvaNeural", "kokoro": "af_heart"})


class Rig:
    """A session over real clients."""

    def __init__(self, chat: OpenAIChat, voice: Synthesizer) -> None:
        self.stages = Stages(ScriptedRecognizer(), chat, voice)
        self.session = ChatSession(scripted_persona(), VOICE, 4000)
        self.events: list[TurnEvent] = []

    async def say(self, text: str) -> Turn:
        turn, events = await self.session.take(self.stages, Utterance(text=text))
        self.events = [event async for event in events]
        return turn

    @property
    def notices(self) -> list[str]:
        return [event.code for event in self.events if isinstance(event, Notice)]


@asynccontextmanager
async def rig(server: servers.ScriptedServer, voice: Synthesizer | None = None) -> AsyncIterator[Rig]:
    chat = OpenAIChat(load(llm_model=servers.MODEL, **TIMEOUTS), base_url=server.base_url)
    try:
        yield Rig(chat, voice or ScriptedSynthesizer(delay=0.0, name="kokoro"))
    finally:
        await chat.aclose()


FAULTS = {
    "server error": (servers.refuse(500), "llm_server_error", ""),
    "unknown model": (servers.refuse(404, "The model `scripted` does not exist."), "llm_model_missing", ""),
    "hang before headers": (servers.hang_before_headers(), "llm_timeout", ""),
    "hang before the first token": (servers.hang_before_first_token(), "llm_timeout", ""),
    "hang mid-stream": (servers.hang_mid_stream("It was ", "dark."), "llm_stalled", "It was dark."),
    "drop mid-stream": (servers.drop_mid_stream("It was ", "dark."), "llm_dropped", "It was dark."),
    "malformed event": (servers.malformed_event("It was ", "dark."), "llm_malformed", "It was dark."),
    "error in the stream": (servers.error_in_stream("It was ", "dark."), "llm_server_error", "It was dark."),
    "empty reply": (servers.say(), "llm_empty", ""),
    "nothing but thoughts": (servers.say("<think>hm", " hm</think>"), "llm_empty", ""),
    "context overflow": (servers.context_overflow_vllm(), "llm_context_overflow", ""),
    "refused key": (servers.refuse(401), "llm_key", ""),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_each_fault_of_the_model_server_is_one_sentence_and_loses_nothing_received(name: str) -> None:
    answer, code, received = FAULTS[name]
    async with servers.ScriptedServer(answer) as server, rig(server) as talk:
        turn = await talk.say("hello")
        assert turn.error is not None
        assert turn.error.code == code
        assert "\n" not in turn.error.message
        assert turn.error.message.endswith(".")
        assert turn.reply == received
        assert " ".join(clause.spoken for clause in turn.clauses) == received, "what was received is spoken too"
        assert json.dumps(turn.record())
        server.answer(GOOD)
        again = await talk.say("and now?")
        assert (again.status, again.reply, again.mood) == ("completed", "All is well again today.", "happy")
        remembered = [Exchange("hello", received)] if received else []
        assert talk.session.conversation.exchanges[:-1] == remembered


ODD = {
    "reasoning only": (servers.say("[happy] Hi ", "there.", field="reasoning"), "Hi there."),
    "reasoning, then content": (servers.reasoning_then_content(["I should greet."], ["Hi ", "there."]), "Hi there."),
    "a think block split over chunks": (servers.say("<th", "ink>no", "</thi", "nk>Hi ", "there."), "Hi there."),
    "a mood tag split over chunks": (servers.say("[", "hap", "py", "] Hi ", "there."), "Hi there."),
    "a character split over segments": (servers.split_character("你好😀。"), "你好😀。"),
    "a surrogate pair split over events": (servers.split_surrogates(), "Hi 😀!"),
    "several tokens per chunk": (servers.say("Hi there, my ", "good old friend."), "Hi there, my good old friend."),
}


@pytest.mark.parametrize("name", ODD)
async def test_odd_streams_give_the_reply_they_carry(name: str) -> None:
    answer, reply = ODD[name]
    async with servers.ScriptedServer(answer) as server, rig(server) as talk:
        turn = await talk.say("hello")
        assert turn.error is None
        assert turn.reply == reply


async def test_without_usage_the_turn_works_and_its_token_figures_are_blank() -> None:
    async with servers.ScriptedServer(servers.say("Hi ", "there.", usage=b"")) as server, rig(server) as talk:
        turn = await talk.say("hello")
        metrics = turn.record()["metrics"]
        assert turn.status == "completed"
        assert metrics["ttft_ms"] is not None
        for name in ("ms_per_token", "prompt_tokens", "cached_tokens", "completion_tokens"):
            assert metrics[name] is None


async def test_an_overflow_with_history_is_cut_and_answered() -> None:
    async with servers.ScriptedServer(servers.context_overflow_llama_cpp()) as server, rig(server) as talk:
        talk.session.conversation.exchanges = [Exchange("q", "a")] * 4
        server.answer(servers.context_overflow_llama_cpp(), GOOD)
        turn = await talk.say("hello")
        assert turn.status == "completed"
        assert talk.notices == ["history_cut"]


async def test_stopping_a_turn_closes_the_request_at_the_server() -> None:
    endless = servers.say(*["More and more words. "] * 500, step=0.02)
    async with servers.ScriptedServer(endless) as server, rig(server) as talk:
        _, events = await talk.session.take(talk.stages, Utterance(text="talk"))
        async for event in events:
            if isinstance(event, AudioOut):
                break
        await talk.session.stop()
        request = await server.chat()
        async with asyncio.timeout(5):
            await request.disconnected.wait()


async def test_a_server_that_is_not_there_is_named_and_may_come_back() -> None:
    async with servers.ScriptedServer(GOOD) as server, rig(server) as talk:
        port = int(server.base_url.rsplit(":", 1)[1].split("/")[0])
        await server.stop()
        turn = await talk.say("hello")
        assert turn.error is not None
        assert turn.error.code == "llm_unreachable"
        assert str(port) in turn.error.message
        await server.start(port)
        assert (await talk.say("hello")).status == "completed"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


VOICE_FAULTS = [
    Behaviour.FORBIDDEN,
    Behaviour.STALL_BEFORE_SOUND,
    Behaviour.STALL_MID_AUDIO,
    Behaviour.DROP_MID_AUDIO,
    Behaviour.CLOSE_MID_AUDIO,
    Behaviour.NO_AUDIO,
    Behaviour.GARBAGE_FRAME,
]


@pytest.mark.parametrize("behaviour", VOICE_FAULTS)
async def test_an_online_voice_that_fails_is_replaced_within_the_clause_with_one_notice(
    behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = servers.say("Four words are here. ", "Five more words follow here. ", "And then it ends today.")
    local = ScriptedSynthesizer(delay=0.0, name="kokoro")
    async with EdgeServer() as edge, servers.ScriptedServer(reply) as server:
        monkeypatch.setattr(edge_tts.communicate, "WSS_URL", edge.url)
        edge.default = behaviour
        online = EdgeSynthesizer(connect_timeout=0.5, step_timeout=0.5)
        async with rig(server, FallbackSynthesizer(online, local, retry_after=60.0)) as talk:
            turn = await talk.say("hello")
            assert turn.status == "completed"
            assert talk.notices == ["tts_fallback"]
            assert set(turn.record()["engines"]["tts"].split("+")) <= {"kokoro", "edge"}
            spoken_locally = " ".join(request.text for request in local.requests)
            assert "words follow here." in spoken_locally
            assert "And then it ends today." in spoken_locally
            started = len(edge.requests)
            again = await talk.say("and again")
            assert again.record()["engines"]["tts"] == "kokoro"
            assert talk.notices == []
            assert len(edge.requests) == started, "the service is left alone for a while"


async def test_the_online_voice_is_heard_while_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    local = ScriptedSynthesizer(delay=0.0, name="kokoro")
    async with EdgeServer() as edge, servers.ScriptedServer(GOOD) as server:
        monkeypatch.setattr(edge_tts.communicate, "WSS_URL", edge.url)
        online = EdgeSynthesizer(connect_timeout=5, step_timeout=5)
        async with rig(server, FallbackSynthesizer(online, local, retry_after=60.0)) as talk:
            turn = await talk.say("hello")
            assert turn.record()["engines"]["tts"] == "edge"
            assert local.requests == []
            assert sum(len(event.pcm) for event in talk.events if isinstance(event, AudioOut)) > 12_000


async def test_a_refused_online_voice_costs_one_short_wait_and_not_one_per_clause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "last"]
    reply = servers.say(*[f"This is the {word} sentence. " for word in order])
    local = ScriptedSynthesizer(delay=0.0, name="kokoro")
    async with EdgeServer() as edge, servers.ScriptedServer(reply) as server:
        monkeypatch.setattr(edge_tts.communicate, "WSS_URL", edge.url)
        edge.default = Behaviour.STALL_BEFORE_SOUND
        online = EdgeSynthesizer(connect_timeout=0.5, step_timeout=0.5)
        async with rig(server, FallbackSynthesizer(online, local, retry_after=60.0)) as talk:
            started = time.monotonic()
            turn = await talk.say("hello")
            assert turn.status == "completed"
            assert len(local.requests) == 8
            assert edge.connections <= 2, "clauses under way together share the wait"
            assert time.monotonic() - started < 8 * 0.5
