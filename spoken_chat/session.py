"""One person's conversation: its turns, the turn that runs now, and the choice of persona and voice."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from spoken_chat.circumstances import Order
from spoken_chat.conversation import Conversation
from spoken_chat.events import Ended, TurnEvent
from spoken_chat.persona import Persona, PersonaVoice
from spoken_chat.stages import Stages
from spoken_chat.turn import Turn, Utterance

IDLE_S: Final = 60.0
"""After this long without a turn, caches may be cold: the next turn is marked."""

IMAGE_WORD: Final = {"zh": "（图片）", "en": "[image]"}
"""What the model reads in the place of an image that is no longer sent."""

Emit = Callable[[TurnEvent], None]


class ChatSession:
    """At most one turn runs at a time; a new one stops the one before it.

    Beside it there may be one held turn: a guess about the utterance that is being spoken.
    """

    def __init__(
        self,
        persona: Persona,
        voice: PersonaVoice,
        budget: int,
        clock: Callable[[], float] = time.monotonic,
        most_images: int = 4,
    ) -> None:
        self.id = secrets.token_urlsafe(12)
        self.persona = persona
        self.voice = voice
        self.conversation = Conversation(budget, most_images=most_images, image_word=IMAGE_WORD[persona.language])
        self.turns: list[Turn] = []
        self._clock = clock
        self._current: tuple[Turn, asyncio.Task[None]] | None = None
        self._held: tuple[Turn, asyncio.Task[None]] | None = None
        self._starting = asyncio.Lock()
        self._last_used: float | None = None

    def choose(self, persona: Persona, voice: PersonaVoice) -> None:
        """Change who answers, from the next turn on; another persona starts with an empty history."""
        if persona.id != self.persona.id:
            # Not cleared: a turn that still runs is going to add what it said to the old one.
            now = self.conversation
            self.conversation = Conversation(
                now.budget, most_images=now.most_images, image_word=IMAGE_WORD[persona.language]
            )
        self.persona = persona
        self.voice = voice

    @property
    def running(self) -> Turn | None:
        """The turn that runs now; a held one does not count."""
        return self._current[0] if self._current is not None and not self._current[1].done() else None

    async def take(self, stages: Stages, utterance: Utterance) -> tuple[Turn, AsyncIterator[TurnEvent]]:
        """Start a turn and return it with its events, which end with Ended. A turn that still runs is stopped."""
        events: asyncio.Queue[TurnEvent] = asyncio.Queue()
        turn = self.new_turn(stages, utterance, events.put_nowait)
        return turn, _until_ended(events, await self.start(turn))

    def new_turn(self, stages: Stages, utterance: Utterance, emit: Emit, *, held: bool = False) -> Turn:
        """A turn of this conversation, not started yet."""
        turn = Turn(stages, self.persona, self.voice, self.conversation, utterance, emit, self._clock, held)
        turn.circumstances.order = self._order()
        return turn

    async def start(self, turn: Turn) -> asyncio.Task[None]:
        """Start `turn`; the one that still runs, and a held one, are stopped first."""
        async with self._starting:
            await self.drop_held()
            await self.stop()
            self.turns.append(turn)
            task = self._run(turn)
            self._current = (turn, task)
            await asyncio.sleep(0)  # a task cancelled before its first step would never tell that it ended
        return task

    def hold(self, turn: Turn) -> None:
        """Start a held turn beside the one that may still run. Raises RuntimeError while there is another."""
        if self._held is not None or not turn.held:
            raise RuntimeError("at most one turn is held at a time, and it must be made as a held one")
        self._held = (turn, self._run(turn))

    async def release(self, endpoint: float) -> asyncio.Task[None]:
        """The held turn becomes the turn of this conversation; one that still runs is stopped first."""
        if self._held is None:
            raise RuntimeError("no turn is held")
        (turn, task), self._held = self._held, None
        await self.stop()
        self.turns.append(turn)
        self._current = (turn, task)
        turn.release(endpoint)
        self._used(turn)  # it may have come to its end while it was held
        return task

    async def drop_held(self) -> None:
        """The guess was wrong: stop the held turn, if any, and wait until its streams are closed."""
        if self._held is None:
            return
        (_, task), self._held = self._held, None
        task.cancel()
        await asyncio.wait([task])

    def forget(self, turn: Turn) -> None:
        """Take a finished turn back: out of the list of turns and of the history."""
        self.turns = [one for one in self.turns if one is not turn]
        turn.cut(0.0)

    def _run(self, turn: Turn) -> asyncio.Task[None]:
        task = asyncio.create_task(turn.run(), name=f"turn {turn.id}")
        task.add_done_callback(lambda _: self._used(turn))
        return task

    def _used(self, turn: Turn) -> None:
        if not turn.held:
            self._last_used = self._clock()

    def _order(self) -> Order:
        if self._last_used is None:
            return "first"
        return "after_idle" if self._clock() - self._last_used > IDLE_S else "next"

    async def stop(self, heard_seconds: float | None = None) -> None:
        """Stop the turn that runs, if any, and wait until its streams are closed.

        `heard_seconds` says how much of its sound was heard; None where nobody knows, or where all was. Sound goes
        out ahead of time, so that a turn may be over while its reply still plays: then too only what was heard stays.
        """
        if self._current is None:
            return
        turn, task = self._current
        if task.done():
            if heard_seconds is not None:
                turn.cut(heard_seconds)
            return
        turn.heard_seconds = heard_seconds
        task.cancel()
        await asyncio.wait([task])

    async def restart(self) -> None:
        """Stop, and forget everything said."""
        await self.drop_held()
        await self.stop()
        self.conversation.clear()
        self.turns.clear()
        self._current = None
        self._last_used = None


async def _until_ended(events: asyncio.Queue[TurnEvent], task: asyncio.Task[None]) -> AsyncIterator[TurnEvent]:
    """The events of a turn up to its last one; an unforeseen error of the turn is raised here."""
    while True:
        event = await events.get()
        yield event
        if isinstance(event, Ended):
            break
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error


def moods_kept(turns: Sequence[Turn]) -> tuple[int, int]:
    """In how many replies of `turns` the persona tag came first, and of how many that is known."""
    kept = [turn.mood_compliant for turn in turns if turn.mood_compliant is not None]
    return kept.count(True), len(kept)
