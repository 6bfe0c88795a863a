"""`bench overhead`: what the app adds to a server's own times, against a raw client in the same run.

A scripted server in a process of its own sends 24 tokens at fixed times. Whole turns of ours (with a scripted voice
of a fixed delay) and a raw socket client take turns with it.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from spoken_chat.audio import TTS_RATE
from spoken_chat.bench.no_ears import NoEars
from spoken_chat.bench.raw_http import RawClient, RawTimes
from spoken_chat.bench.report import (
    Median,
    Target,
    add_json_argument,
    at_most,
    median,
    table,
    write_json,
)
from spoken_chat.bench.scripted_server import MODEL, Schedule, ServerProcess
from spoken_chat.conversation import Conversation
from spoken_chat.errors import ChatError
from spoken_chat.events import TurnEvent
from spoken_chat.llm import ChatEvent, Message, TextDelta, Usage
from spoken_chat.llm.openai_chat import OpenAIChat
from spoken_chat.persona import load_personas
from spoken_chat.settings import Settings
from spoken_chat.settings import load as load_settings
from spoken_chat.stages import Stages
from spoken_chat.tts import SpeechChunk, SpeechEvent, SpeechRequest
from spoken_chat.turn import Turn, Utterance
from spoken_chat.ui.card import TILES, turn_card

SCHEDULES: Final = {"1 token a chunk": Schedule(), "2 tokens a chunk (as MTP)": Schedule(per_chunk=2)}
VOICE_S: Final = 0.08
WARM_UP: Final = 3
TTFT_TARGET_MS: Final = 2.0
PER_TOKEN_TARGET: Final = 2.0
CLAUSE_TARGET_MS: Final = 10.0


class _StampedModel:
    """The real client; remembers when each piece of text came."""

    def __init__(self, chat: OpenAIChat) -> None:
        self._chat = chat
        self.arrivals: list[tuple[float, str]] = []

    @property
    def name(self) -> str:
        return self._chat.name

    @property
    def vision(self) -> bool | None:
        return self._chat.vision

    @property
    def reads_alone(self) -> bool:
        return self._chat.reads_alone

    async def stream(self, messages: Sequence[Message]) -> AsyncGenerator[ChatEvent, None]:
        self.arrivals.clear()
        async with aclosing(self._chat.stream(messages)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    self.arrivals.append((event.at, event.text))
                yield event

    async def read(self, messages: Sequence[Message]) -> Usage | None:
        return await self._chat.read(messages)

    def arrival_of(self, end: int) -> float:
        """When the character before offset `end` of the reply had come, in seconds; leading white space not counted."""
        whole = "".join(text for _, text in self.arrivals)
        total = len(whole.lstrip()) - len(whole)
        for at, text in self.arrivals:
            total += len(text)
            if total >= end:
                return at
        raise ValueError(f"the reply has only {total} characters")


class _FixedVoice:
    """A voice that takes a fixed time; remembers how long its first clause really took."""

    name = "fixed"
    parallel = 1

    def __init__(self) -> None:
        self.first_took: float | None = None

    def load(self) -> None:
        """Nothing to load."""

    def close(self) -> None:
        """Nothing to close."""

    async def synthesize(self, request: SpeechRequest) -> AsyncGenerator[SpeechEvent, None]:  # noqa: ARG002
        started = time.monotonic()
        await asyncio.sleep(VOICE_S)
        if self.first_took is None:
            self.first_took = time.monotonic() - started
        yield SpeechChunk(np.zeros(TTS_RATE // 10, np.int16), self.name)


@dataclass(frozen=True)
class Comparison:
    """One schedule: medians of both sides, in ms; differences are of the medians."""

    schedule: str
    raw_ttft: Median
    our_ttft: Median
    raw_per_token: Median
    our_per_token: Median
    clause_added: Median
    page_differs: int

    @property
    def ttft_added(self) -> float:
        """Milliseconds our TTFT is above the raw client's."""
        return self.our_ttft.value - self.raw_ttft.value

    @property
    def per_token_off(self) -> float:
        """Percent that our ms/token is off the raw client's."""
        return abs(self.our_per_token.value / self.raw_per_token.value - 1) * 100

    def targets(self) -> list[Target]:
        """What the project asks."""
        return [
            at_most(f"TTFT within 2 ms of raw HTTP ({self.schedule})", self.ttft_added, TTFT_TARGET_MS, "ms"),
            at_most(f"ms/token within 2 % of raw HTTP ({self.schedule})", self.per_token_off, PER_TOKEN_TARGET, "%"),
            at_most(
                f"first clause's sound at most engine time + 10 ms ({self.schedule})",
                self.clause_added.value,
                CLAUSE_TARGET_MS,
                "ms",
            ),
            at_most(f"turns whose page and export differ ({self.schedule})", self.page_differs, 0),
        ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--repeats", type=int, default=40, help="replies per side and schedule (default: 40)")
    add_json_argument(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Measure, print, and write `--json`. 0 when every target is met, else 1. Raises ChatError."""
    if arguments.repeats < 1:
        raise ChatError("bad_repeats", "--repeats must be at least 1.")
    comparisons = []
    for name, schedule in SCHEDULES.items():
        with ServerProcess(schedule) as base_url:
            comparisons.append(asyncio.run(_compare(name, base_url, arguments.repeats, settings)))
    rows = [
        [
            one.schedule,
            one.raw_ttft.value,
            one.our_ttft.value,
            one.our_ttft.value / one.raw_ttft.value,
            one.raw_per_token.value,
            one.our_per_token.value,
            one.our_per_token.value / one.raw_per_token.value,
            one.clause_added.value,
            one.our_ttft.n,
        ]
        for one in comparisons
    ]
    print("medians; ours and the raw client's replies took turns in one run")
    headings = ["schedule", "raw TTFT", "our TTFT", "ratio", "raw ms/token", "ours", "ratio", "clause added ms", "n"]
    print(table(headings, rows) + "\n")
    targets = [target for one in comparisons for target in one.targets()]
    for target in targets:
        print(target.line())
    write_json(arguments.json, {"voice_s": VOICE_S, "comparisons": [asdict(one) for one in comparisons]}, targets)
    return 0 if all(target.met for target in targets) else 1


async def _compare(name: str, base_url: str, repeats: int, settings: Settings) -> Comparison:
    chat = OpenAIChat(load_settings(llm_base_url=base_url, llm_model=MODEL), base_url=base_url)
    await chat.connect()
    model = _StampedModel(chat)
    raw = RawClient(base_url, MODEL)
    persona = next(iter(load_personas(settings.persona_dir).values()))
    raws: list[RawTimes] = []
    ours: list[dict[str, Any]] = []
    clause_added: list[float] = []
    differs = 0
    try:
        for number in range(WARM_UP + repeats):
            times = await raw.reply(Conversation().messages(persona.prefix, "hello", None))
            voice = _FixedVoice()
            turn = Turn(
                Stages(NoEars(), model, voice), persona, persona.voices[0], Conversation(),
                Utterance(text="hello"), _ignore,
            )  # fmt: skip
            await turn.run()
            if turn.error is not None:
                raise turn.error
            if number < WARM_UP:
                continue
            raws.append(times)
            ours.append(turn.record())
            assert voice.first_took is not None
            ready = turn.timeline.marks["tts_first_byte"] - model.arrival_of(len(turn.clauses[0].text))
            clause_added.append((ready - voice.first_took) * 1000)
            differs += page_figures(turn) != exported_figures(turn.record())
    finally:
        await raw.close()
        await chat.aclose()
    return Comparison(
        schedule=name,
        raw_ttft=median([times.ttft * 1000 for times in raws]),
        our_ttft=median([record["metrics"]["ttft_ms"] for record in ours]),
        raw_per_token=median([times.ms_per_token for times in raws if times.ms_per_token is not None]),
        our_per_token=median([record["metrics"]["ms_per_token"] for record in ours]),
        clause_added=median(clause_added),
        page_differs=differs,
    )


def page_figures(turn: Turn) -> dict[str, float]:
    """The figures that the page's card shows of `turn`, read from its markup."""
    shown = re.findall(r'data-metric="(\w+)">([\d.]+)<', turn_card(turn, "en"))
    return {name: float(text) for name, text in shown}


def exported_figures(record: dict[str, Any]) -> dict[str, float]:
    """The figures of an exported turn that the card shows, where they were measured."""
    return {name: record["metrics"][name] for name, _ in TILES if record["metrics"][name] is not None}


def _ignore(_: TurnEvent) -> None:
    """The bench reads the turn when it is over."""
