"""The live talks of this process, by the token that lets somebody in."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from spoken_chat.engines import Engines
from spoken_chat.session import ChatSession
from spoken_chat.talk.options import TalkOptions
from spoken_chat.talk.talk import Talk

ACTIVE_S = 30.0
"""A talk in which something was said or answered this lately counts as active."""


@dataclass(frozen=True)
class OpenTalk:
    """One conversation and the secret that opens it. `language`: of the sentences shown to its person."""

    token: str
    session: ChatSession
    talk: Talk
    language: str


class TalkRegistry:
    """Opens talks on one app's engines and finds them again."""

    def __init__(self, engines: Engines, clock: Callable[[], float] = time.monotonic) -> None:
        self.engines = engines
        self._clock = clock
        self._open: dict[str, OpenTalk] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, language: str = "en") -> OpenTalk:
        """A new conversation with the opening persona and voice."""
        engines = self.engines
        most_images = engines.settings.vllm_images
        session = ChatSession(
            engines.opening_persona, engines.opening_voice, engines.token_budget, self._clock, most_images
        )
        talk = Talk(
            session,
            engines.stages,
            engines.listening,
            TalkOptions.of(engines.settings),
            clock=self._clock,
            sessions_active=self.active,
            token_budget=lambda: engines.token_budget,
        )
        opened = OpenTalk(secrets.token_urlsafe(24), session, talk, language)
        self._open[opened.token] = opened
        return opened

    def by_token(self, token: str) -> OpenTalk | None:
        """The talk that `token` opens."""
        return self._open.get(token)

    def by_session(self, session_id: str) -> OpenTalk | None:
        """The talk of the session with that id."""
        return next((one for one in self._open.values() if one.session.id == session_id), None)

    def active(self) -> int:
        """How many talks were used within the last ACTIVE_S seconds."""
        now = self._clock()
        return sum(1 for one in self._open.values() if now - one.talk.last_used <= ACTIVE_S)

    async def drop(self, token: str) -> None:
        """Stop the talk and forget it."""
        opened = self._open.pop(token, None)
        if opened is not None:
            await opened.talk.close()

    async def close(self) -> None:
        """Stop and forget every talk."""
        for token in list(self._open):
            await self.drop(token)
