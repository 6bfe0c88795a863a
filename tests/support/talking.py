"""A talk over scripted engines on virtual time, with a microphone whose sound is a pattern of speech and silence.

In this sound a sample's size is the probability of speech: the scripted detector needs no network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.audio.vad import CHUNK
from spoken_chat.events import AudioOut, Ended, TurnEvent
from spoken_chat.session import ChatSession
from spoken_chat.stages import Stages
from spoken_chat.talk.events import TalkEvent, TurnTold
from spoken_chat.talk.options import TalkOptions
from spoken_chat.talk.talk import Talk
from tests.support.engines import Clock, ScriptedModel, ScriptedRecognizer, ScriptedSynthesizer, scripted_persona
from tests.support.virtual_time import run_virtual

CHUNK_S = CHUNK / ASR_RATE


class LevelDetector:
    """Takes the level of the sound for the probability of speech."""

    def feed(self, chunk: FloatPcm) -> float:
        return float(chunk.max())


@dataclass
class ScriptedEars:
    """Judges that a speaker has finished with probability `probability`, after `delay` seconds."""

    probability: float = 1.0
    delay: float = 0.03
    asked: list[FloatPcm] = field(default_factory=list)

    def load(self) -> None:
        """Nothing to load."""

    def detector(self) -> LevelDetector:
        return LevelDetector()

    async def finished(self, audio: FloatPcm) -> float:
        self.asked.append(audio)
        await asyncio.sleep(self.delay)
        return self.probability


@dataclass
class Talking:
    """A talk, what it told and when, and its scripted engines."""

    clock: Clock
    ears: ScriptedEars
    recognizer: ScriptedRecognizer
    model: ScriptedModel
    synthesizer: ScriptedSynthesizer
    talk: Talk
    session: ChatSession
    told: list[tuple[float, TalkEvent]] = field(default_factory=list)

    async def speak(self, seconds: float, level: float = 0.9) -> None:
        """Sound of that level for so long, in real time."""
        for _ in range(round(seconds / CHUNK_S)):
            await asyncio.sleep(CHUNK_S)
            await self.talk.hear(np.full(CHUNK, level, np.float32))

    async def silence(self, seconds: float) -> None:
        """Nobody speaks for so long."""
        await self.speak(seconds, level=0.0)

    async def until_ended(self) -> None:
        """Silence until no turn runs, and its reply was heard to the end."""
        while self.session.running is not None or self.talk.replying:
            await self.silence(CHUNK_S)

    def of(self, kind: type) -> list[Any]:
        """What was told of one kind of talk event, or of one kind of turn event."""
        events: list[TalkEvent | TurnEvent] = []
        for _, event in self.told:
            events.append(event)
            if isinstance(event, TurnTold):
                events.append(event.event)
        return [event for event in events if isinstance(event, kind)]

    def when(self, kind: type, number: int = 0) -> float:
        """When an event of a kind was told."""
        times = []
        for at, event in self.told:
            if isinstance(event, kind) or (isinstance(event, TurnTold) and isinstance(event.event, kind)):
                times.append(at)
        return times[number]

    @property
    def sound_seconds(self) -> float:
        """Seconds of reply sound that were told."""
        return sum(len(event.pcm) for event in self.of(AudioOut)) / 24_000

    @property
    def endings(self) -> list[str]:
        """How each turn ended."""
        return [event.status for event in self.of(Ended)]

    @property
    def history(self) -> list[tuple[str, str]]:
        """What the model will see: (user, reply) of each exchange."""
        return [(exchange.user_text, exchange.reply) for exchange in self.session.conversation.exchanges]


def talking(
    script: Callable[[Talking], Awaitable[None]],
    *,
    options: TalkOptions | None = None,
    chunks: Sequence[str] = ("Hi. ", "All is well."),
    sessions: int = 1,
    **parts: Any,
) -> Talking:
    """Run `script` on a talk on virtual time, close the talk, and return what happened. No task may be left."""

    async def main(clock: Clock) -> Talking:
        ears = parts.get("ears") or ScriptedEars()
        recognizer = parts.get("recognizer") or ScriptedRecognizer(text="what is your name", delay=0.04)
        model = parts.get("model") or ScriptedModel(clock, chunks, first=0.06)
        synthesizer = parts.get("synthesizer") or ScriptedSynthesizer()
        persona = scripted_persona()
        session = ChatSession(persona, persona.voices[0], 4000, clock)

        async def stages() -> Stages:
            return Stages(recognizer, model, synthesizer)

        talk = Talk(session, stages, ears, options or TalkOptions(), clock=clock, sessions_active=lambda: sessions)
        one = Talking(clock, ears, recognizer, model, synthesizer, talk, session)
        unsubscribe = talk.subscribe(lambda event: one.told.append((clock(), event)))
        await script(one)
        unsubscribe()  # what closing does is not part of the script
        await talk.close()
        leftover = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert leftover == [], "a closed talk leaves no task behind"
        return one

    return run_virtual(main)
