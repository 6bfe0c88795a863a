"""A person with a page open, as the page's handlers see one: no browser is needed."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import gradio as gr

from spoken_chat.session import ChatSession
from spoken_chat.ui.handlers import Handlers, Updates
from tests.support.markup import read
from tests.support.waiting import WAIT_S

NOT_CUT: Final = -1.0
"""What the page sends with a turn when no sound was cut off."""


@dataclass
class Visitor:
    """A person with a page open."""

    handlers: Handlers
    request: gr.Request
    opened: Updates

    @property
    def session(self) -> ChatSession:
        return self.handlers.sessions.get(str(self.request.session_hash))

    async def write(self, text: str, *files: Path, heard: float = NOT_CUT) -> list[Updates]:
        """Send text, with files; every update of the page up to the end of the turn."""
        value = {"text": text, "files": [str(file) for file in files]}
        return [updates async for updates in self.handlers.write(value, heard, self.request)]

    async def speak(self, path: Path | None) -> list[Updates]:
        """Send a recording; every update of the page up to the end of the turn."""
        given = str(path) if path else None
        return [updates async for updates in self.handlers.speak(given, NOT_CUT, self.request)]

    async def said(self) -> list[tuple[str, str]]:
        """Who said what, as the page shows it."""
        messages = (await self.handlers.stop(NOT_CUT, self.request))["transcript"]
        return [
            (message["role"], read(message["content"]).text)
            for message in messages
            if isinstance(message["content"], str)
        ]

    async def sound_of(self, updates: list[Updates]) -> bytes:
        """All the sound of the turn that `updates` are of, fetched to its end; none where no turn began."""
        players = [json.loads(one["player"]) for one in updates if "player" in one]
        if not players:
            return b""
        (player,) = players
        assert player["url"] == f"v1/sound/{player['turn']}"
        stream = self.handlers.sounds.take(player["turn"])
        assert stream is not None
        async with asyncio.timeout(WAIT_S):
            return b"".join([chunk async for chunk in stream])


async def visit(handlers: Handlers, key: str = "page", language: str = "en-US") -> Visitor:
    """Open a page whose browser speaks `language`."""
    request = gr.Request(session_hash=key, headers={"accept-language": language})
    return Visitor(handlers, request, await handlers.open_page(request))
