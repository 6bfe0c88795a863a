"""What is measured on one server in one pass. Each gives named lists: timed replies, or plain numbers in ms.

Passes over several servers alternate, so that a slow minute of the machine falls on all of them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, Final

import openai

from spoken_chat.bench.model_server.pictures import SHAPES, parts
from spoken_chat.bench.model_server.probe import FORCED, Probe
from spoken_chat.bench.model_server.talks import SAID, Talk, conversations
from spoken_chat.bench.raw_http import RawTimes
from spoken_chat.llm import RequestSent, StreamEnd, TextDelta, Usage
from spoken_chat.llm.openai_chat import OpenAIChat
from spoken_chat.persona import Persona
from spoken_chat.settings import load as load_settings
from spoken_chat.timeline import Metrics, Timeline, measure

Found = dict[str, list[RawTimes] | list[float]]
Scenario = Callable[[Probe, Persona, int], Awaitable[Found]]

TAILS: Final = (1, 12, 16, 40, 64, 100, 128, 256)
"""Tokens behind the cached part of a prompt."""

STREAMS: Final = 5
UNIT: Final = 16
TAIL_AS_PUBLISHED: Final = range(10, 15)
"""Uncached tokens of the prompt that DESIGN.md's figures were measured with: 12 of 1,212."""


async def repeated(probe: Probe, persona: Persona, number: int) -> Found:
    """The same prompt again and again, two turns of history, all but its last 10 to 14 tokens cached."""
    del number
    talk = Talk(persona, "重复")
    for text in SAID[:2]:
        talk.answered(text)
    for text in SAID:
        messages = talk.prompt(text)
        if len(await probe.tokens(messages)) % UNIT in TAIL_AS_PUBLISHED:
            break
    for _ in range(2):
        await probe.reply(messages)
    return {"repeated": [await probe.reply(messages) for _ in range(8)]}


async def spoken(probe: Probe, persona: Persona, number: int) -> Found:
    """A conversation as it grows, every turn new; then another with the history read while the person would speak.

    `read_ahead_ms`: how long that reading takes.
    """
    said = conversations()[number % len(conversations())]
    plain: list[RawTimes] = []
    ahead: list[RawTimes] = []
    read_ms: list[float] = []
    talk = Talk(persona, f"甲{number}")
    for text in said:
        plain.append(await probe.reply(talk.prompt(text)))
        talk.answered(text)
    talk = Talk(persona, f"乙{number}")
    for text in said:
        read_ms.append(await probe.read_ahead(talk.prompt("")))
        ahead.append(await probe.reply(talk.prompt(text)))
        talk.answered(text)
    return {"spoken": plain, "spoken_ahead": ahead, "read_ahead_ms": read_ms}


async def streams(probe: Probe, persona: Persona, number: int) -> Found:
    """Five people at once, each in a conversation of their own: without and with the history read ahead.

    `..._tokens_per_s`: of all five together.
    """
    others = [Probe(probe.base_url, probe.model) for _ in range(STREAMS)]
    found: Found = {}
    try:
        for name, ahead in (("streams", False), ("streams_ahead", True)):
            times: list[RawTimes] = []
            rates: list[float] = []
            talks = [Talk(persona, f"{name}{number}{place}") for place in range(STREAMS)]
            for turn in range(4):
                said = [SAID[(turn * STREAMS + place) % len(SAID)] for place in range(STREAMS)]
                prompts = [talk.prompt(text) for talk, text in zip(talks, said, strict=True)]
                if ahead:
                    for talk in talks:
                        await probe.read_ahead(talk.prompt(""))
                started = time.monotonic()
                replies = await asyncio.gather(*(one.reply(two) for one, two in zip(others, prompts, strict=True)))
                rates.append(STREAMS * FORCED / (time.monotonic() - started))
                times += replies
                for talk, text in zip(talks, said, strict=True):
                    talk.answered(text)
            found |= {name: times[STREAMS:], f"{name}_tokens_per_s": rates[1:]}  # the first turn finds no history
    finally:
        for one in others:
            await one.close()
    return found


async def tails(probe: Probe, persona: Persona, number: int) -> Found:
    """The first token by how many tokens follow the cached part, which ends where the server can match it."""
    talk = Talk(persona, "尾巴")
    prefix = await common(probe, talk.prompt("一"), talk.prompt("好"))
    prefix = prefix[: len(prefix) // UNIT * UNIT]
    await probe.read(prefix)
    pool, noise = await probe.tokens(talk.prompt("".join(SAID))), random.Random(number)
    found: Found = {}
    for size in TAILS:
        timed = [await probe.complete(prefix + [noise.choice(pool) for _ in range(size)], 1) for _ in range(3)]
        found[f"tail_{size}"] = timed[1:]  # the first of a size may compile
    return found


async def tokenised(probe: Probe, persona: Persona, number: int) -> Found:
    """The same prompt as messages and as token ids, in turns: what rendering and tokenising cost."""
    messages = Talk(persona, f"词元{number}").prompt(SAID[0])
    ids = await probe.tokens(messages)
    await probe.reply(messages)
    found: dict[str, list[RawTimes]] = {"as_messages": [], "as_token_ids": []}
    for _ in range(4):
        found["as_messages"].append(await probe.reply(messages))
        found["as_token_ids"].append(await probe.complete(ids))
    return dict(found)


async def images(probe: Probe, persona: Persona, number: int) -> Found:
    """A turn with an image: new, sent again, and lying in the history of the next turn."""
    (part,) = parts([SHAPES[number % len(SHAPES)]])
    talk = Talk(persona, f"图片{number}")
    messages = talk.prompt("你看，这是什么？", part)
    new, again = await probe.reply(messages), await probe.reply(messages)
    talk.answered("你看，这是什么？", part)
    behind = await probe.reply(talk.prompt("那它旁边是什么呢？"))
    return {"image_new": [new], "image_again": [again], "image_in_history": [behind]}


async def cancelled(probe: Probe, persona: Persona, number: int) -> Found:
    """How long after a stream was closed the server's slot is free."""
    freed, running = await probe.freed_after(Talk(persona, f"取消{number}").prompt(SAID[0]))
    if not running:
        raise ValueError("the request was never seen running")
    return {"freed_ms": [freed]}


async def clients(probe: Probe, persona: Persona, number: int) -> Found:
    """The same prompt through the app's client, the SDK's own method and the raw socket, in turns: TTFT, ms/token."""
    messages = Talk(persona, f"客户端{number}").prompt(SAID[0])
    served = {"llm_base_url": probe.base_url, "llm_model": probe.model}
    chat = OpenAIChat(load_settings(**served, llm_max_tokens=FORCED, llm_temperature=0))
    sdk = openai.AsyncOpenAI(base_url=probe.base_url, api_key="EMPTY", max_retries=0)
    names = ("ttft_socket_ms", "ttft_app_ms", "ttft_sdk_ms", "per_token_socket_ms", "per_token_app_ms")
    found: dict[str, list[float]] = {name: [] for name in names}
    try:
        await chat.connect()
        for turn in range(7):
            socket = await probe.reply(messages)
            app = await _app_figures(chat, messages)
            typed = await _sdk_ttft(sdk, probe.model, messages)
            if turn and app.ttft_ms is not None and app.ms_per_token is not None and socket.ms_per_token is not None:
                values = (socket.ttft * 1000, app.ttft_ms, typed, socket.ms_per_token, app.ms_per_token)
                for name, value in zip(names, values, strict=True):
                    found[name].append(value)
    finally:
        await chat.aclose()
        await sdk.close()
    return dict(found)


SCENARIOS: Final[dict[str, Scenario]] = {
    "repeated": repeated,
    "spoken": spoken,
    "streams": streams,
    "tails": tails,
    "tokenised": tokenised,
    "images": images,
    "cancelled": cancelled,
    "clients": clients,
}


async def common(probe: Probe, one: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]]) -> list[int]:
    """The tokens that two prompts have in common at their beginning."""
    first, second = await probe.tokens(one), await probe.tokens(other)
    length = next((i for i, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), len(first))
    return first[:length]


async def _app_figures(chat: OpenAIChat, messages: Sequence[dict[str, Any]]) -> Metrics:
    """As the app reports them of a turn."""
    timeline, usage = Timeline(), Usage()
    async with aclosing(chat.stream(messages)) as events:
        async for event in events:
            match event:
                case RequestSent(at):
                    timeline.mark("request_sent", at)
                case TextDelta(_, at):
                    timeline.mark("first_content", at)
                    timeline.mark("last_content", at)
                case StreamEnd(_, counts, _):
                    usage = counts or usage
    return measure(
        timeline.marks,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
    )


async def _sdk_ttft(sdk: openai.AsyncOpenAI, model: str, messages: Sequence[dict[str, Any]]) -> float:
    first = None
    sent = time.monotonic()
    stream: Any = await sdk.chat.completions.create(
        model=model, messages=list(messages), stream=True, max_tokens=FORCED, temperature=0,  # type: ignore[arg-type]
        extra_body={"chat_template_kwargs": {"enable_thinking": False}},
    )  # fmt: skip
    async for chunk in stream:
        delta = chunk.choices[0].delta if chunk.choices else None
        if first is None and delta is not None and (delta.content or getattr(delta, "reasoning", None)):
            first = time.monotonic()
    if first is None:
        raise ValueError("the reply had no text")
    return (first - sent) * 1000
