"""With scripted engines: what speculation hides at a GPU's delays, and what the app itself adds at none."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Final

from spoken_chat.bench.report import Target, at_most, middle, spread
from spoken_chat.bench.v2v.app_process import AppProcess
from spoken_chat.bench.v2v.client import connected
from spoken_chat.bench.v2v.scripted import Delays
from spoken_chat.bench.v2v.turns import Spoken, one_turn, spoken_turn
from spoken_chat.bench.v2v.utterances import Utterance
from spoken_chat.timeline import percentile

GPU: Final = Delays(asr=0.06, ttft=0.06, token=0.004, tts=0.08)
HIDDEN_MS: Final = 20.0
ADDED_MS: Final = {1: 15.0, 5: 30.0}
"""The most that may be added at the 95th percentile, by how many talk at once."""
ADDED_TURNS: Final = 40
NO_SPECULATION: Final = {"speculation": False}


def shortest(utterances: Sequence[Utterance]) -> list[Utterance]:
    """The utterances by length: the engines are scripted, so that what is said does not matter."""
    return sorted(utterances, key=lambda one: one.seconds)


async def speculation(utterances: Sequence[Utterance], repeats: int) -> tuple[str, list[Target], list[Spoken]]:
    """V2V without its endpoint delay, with and without speculation, interleaved."""
    hits: list[Spoken] = []
    offs: list[Spoken] = []
    async with AppProcess({}, GPU) as app:
        for _ in range(repeats):
            for utterance in shortest(utterances)[:7]:
                hits.append(await spoken_turn(app, utterance))
                offs.append(await spoken_turn(app, utterance, NO_SPECULATION))
                print(".", end="", flush=True)
    print()
    text, met = report(hits, offs)
    return text, met, [*hits, *offs]


def report(tried: Sequence[Spoken], without: Sequence[Spoken]) -> tuple[str, list[Target]]:
    """The line and the target: V2V less its endpoint delay, of the turns that were hits."""
    right = [one.v2v_ms - one.endpoint_delay_ms for one in tried if one.speculation == "hit"]
    text = (
        f"scripted GPU delays: V2V less its endpoint delay {spread(right, 1)} on hits, of {len(tried)} turns; "
        f"{spread([one.v2v_ms - one.endpoint_delay_ms for one in without])} without speculation"
    )
    return text, [at_most(f"on hits under {HIDDEN_MS:.0f} ms", middle(right), HIDDEN_MS, "ms")]


async def added(utterances: Sequence[Utterance], at_once: int) -> tuple[str, list[Target], list[float]]:
    """From the endpoint to the first sound, by the client's clock, with engines that take no time."""
    found: list[float] = []
    shared = itertools.cycle(shortest(utterances)[:3])
    async with AppProcess({}, Delays()) as app:
        options = {**NO_SPECULATION, "detection": "fixed", "wait": 0.4}
        tokens = [(await app.ask("open", options=options))["token"] for _ in range(at_once)]

        async def talk(token: str) -> None:
            async with connected(app.url, token) as client:
                for number in range(-(-ADDED_TURNS // at_once) + 1):
                    turn = await one_turn(client, next(shared))
                    if number:  # the first turn of a conversation pays for first calls
                        found.append(turn.after_endpoint_ms)
                    await client.speak(shortest(utterances)[0].audio[:0], then_silence=1.2)

        await asyncio.gather(*(talk(token) for token in tokens))
    text = f"added between endpoint and first sound, {at_once} at once: {spread(found, 1)}"
    limit = ADDED_MS[at_once]
    name = f"p95 with {at_once} at once under {limit:.0f} ms (n = {len(found)})"
    return text, [at_most(name, percentile(found, 0.95), limit, "ms")], found
