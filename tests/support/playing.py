"""Runs one turn through scripted stages on virtual time, for the tests of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from spoken_chat.audio import FloatPcm
from spoken_chat.conversation import Conversation, ImagePart
from spoken_chat.events import TurnEvent
from spoken_chat.stages import Stages
from spoken_chat.turn import Turn, Utterance
from tests.support.engines import Clock, scripted_persona, scripted_stages
from tests.support.virtual_time import run_virtual

SPEECH: FloatPcm = np.zeros(16000, np.float32)
IMAGE = ImagePart("data:image/jpeg;base64,AAAA", 192)


class Run:
    """One turn, its events with their times, and the conversation it went into."""

    def __init__(self, clock: Clock, stages: Stages, utterance: Utterance, conversation: Conversation | None = None):
        self.clock = clock
        self.events: list[tuple[float, TurnEvent]] = []
        self.conversation = conversation or Conversation()
        persona = scripted_persona()
        self.turn = Turn(stages, persona, persona.voices[0], self.conversation, utterance, self._emit, clock)

    def _emit(self, event: TurnEvent) -> None:
        self.events.append((self.clock(), event))

    def of(self, kind: type) -> list[Any]:
        return [event for _, event in self.events if isinstance(event, kind)]


def play(
    make: Callable[[Clock], tuple[Stages, Utterance]],
    during: Callable[[Run, asyncio.Task[None]], Awaitable[None]] | None = None,
    conversation: Conversation | None = None,
) -> Run:
    """Run one turn on virtual time; `during` may meddle with it."""

    async def main(clock: Clock) -> Run:
        stages, utterance = make(clock)
        run = Run(clock, stages, utterance, conversation)
        task = asyncio.create_task(run.turn.run())
        if during is not None:
            await during(run, task)
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is not None:
            raise task.exception()  # type: ignore[misc]
        leftover = [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]
        assert leftover == [], "a finished turn leaves no task behind"
        return run

    return run_virtual(main)


def spoken_turn(clock: Clock, **parts: object) -> tuple[Stages, Utterance]:
    return scripted_stages(clock, **parts), Utterance(audio=SPEECH)


def typed_turn(clock: Clock, text: str = "hi", image: ImagePart | None = None, **parts: object):
    return scripted_stages(clock, **parts), Utterance(text=text, image=image)
