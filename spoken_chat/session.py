"""One person's conversation: its turns, the turn that runs now, and the choice of persona and voice."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence

from spoken_chat.conversation import Conversation
from spoken_chat.errors import ChatError
from spoken_chat.events import Ended, TurnEvent
from spoken_chat.persona import Persona, PersonaVoice
from spoken_chat.turn import Stages, Turn, Utterance

Watch = Callable[[Turn], Callable[[TurnEvent], None]]


class ChatSession:
    """At most one turn runs at a time; a new one stops the one before it."""

    def __init__(self, persona: Persona, voice: PersonaVoice, budget: int) -> None:
        self.id = secrets.token_urlsafe(12)
        self.persona = persona
        self.voice = voice
        self.conversation = Conversation(budget=budget)
        self.turns: list[Turn] = []
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    def choose(self, persona: Persona, voice: PersonaVoice) -> None:
        """Change who answers, from the next turn on; another persona starts with an empty history."""
        if persona.id != self.persona.id:
            # Not cleared: a turn that still runs is going to add what it said to the old one.
            self.conversation = Conversation(budget=self.conversation.budget)
        self.persona = persona
        self.voice = voice

    async def take(
        self, stages: Stages, utterance: Utterance, watch: Watch | None = None
    ) -> tuple[Turn, AsyncIterator[TurnEvent]]:
        """Start a turn and return it with its events, which end with Ended. A turn that still runs is stopped.

        `watch` gets the turn before it starts; what it returns sees each event at the moment it happens, before
        whoever reads the events gets to it: sound goes out by it.
        """
        events: asyncio.Queue[TurnEvent] = asyncio.Queue()

        def emit(event: TurnEvent) -> None:
            if tap is not None:
                tap(event)
            events.put_nowait(event)

        async with self._starting:
            await self.stop()
            turn = Turn(stages, self.persona, self.voice, self.conversation, utterance, emit)
            tap = watch(turn) if watch is not None else None
            self.turns.append(turn)
            task = asyncio.create_task(turn.run(), name=f"turn {turn.id}")
            self._task = task
            await asyncio.sleep(0)  # a task cancelled before its first step would never tell that it ended
        return turn, _until_ended(events, task)

    async def stop(self, heard_seconds: float | None = None) -> None:
        """Stop the turn that runs, if any, and wait until its streams are closed.

        `heard_seconds` says how much of its sound was heard; None where nobody knows, or where all was. Sound goes
        out ahead of time, so that a turn may be over while its reply still plays: then too only what was heard stays.
        """
        task = self._task
        if task is None:
            return
        if task.done():
            if heard_seconds is not None:
                self.turns[-1].cut(heard_seconds)
            return
        self.turns[-1].heard_seconds = heard_seconds
        task.cancel()
        await asyncio.wait([task])

    async def restart(self) -> None:
        """Stop, and forget everything said."""
        await self.stop()
        self.conversation.clear()
        self.turns.clear()
        self._task = None


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


class SessionStore:
    """The live sessions of this process, by the page's own id."""

    def __init__(self) -> None:
        self._sessions: dict[str, ChatSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def add(self, key: str, session: ChatSession) -> None:
        """Keep `session` under `key`."""
        self._sessions[key] = session

    def get(self, key: str) -> ChatSession:
        """The session of `key`. Raises ChatError when it is gone."""
        try:
            return self._sessions[key]
        except KeyError:
            raise ChatError("session_gone", "This conversation has ended; reload the page to start another.") from None

    def by_id(self, session_id: str) -> ChatSession | None:
        """The session whose own id is `session_id`."""
        return next((session for session in self._sessions.values() if session.id == session_id), None)

    async def drop(self, key: str) -> None:
        """Stop the session's turn and forget it."""
        session = self._sessions.pop(key, None)
        if session is not None:
            await session.stop()
