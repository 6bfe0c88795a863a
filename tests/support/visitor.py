"""A person with a page open, as the page's handlers see one: no browser is needed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import gradio as gr

from spoken_chat.conversation import ImagePart
from spoken_chat.session import ChatSession
from spoken_chat.talk.registry import OpenTalk
from spoken_chat.turn import Turn, Utterance
from spoken_chat.ui.handlers import Handlers, Updates
from tests.support.markup import read
from tests.support.waiting import until

NOT_CUT: Final = -1.0
"""What the page sends when no sound was cut off."""


@dataclass
class Visitor:
    """A person with a page open."""

    handlers: Handlers
    request: gr.Request
    opened: Updates
    talk_of_page: OpenTalk

    @property
    def session(self) -> ChatSession:
        return self.talk_of_page.session

    async def say(self, text: str, image: ImagePart | None = None) -> Turn:
        """Begin to send text, as it comes over the WebSocket."""
        return await self.talk_of_page.talk.say(Utterance(text=text, image=image))

    async def write(self, text: str) -> Turn:
        """Send text; returns when the turn is over."""
        turn = await self.say(text)
        await until(lambda: turn.status != "running" and self.session.running is None)
        return turn

    async def hand_in(self, path: Path | None, heard: float = NOT_CUT) -> list[Updates]:
        """Hand in a recording; every update of the page up to the end of the turn."""
        given = str(path) if path else None
        return [updates async for updates in self.handlers.answer_recording(given, heard, self.request)]

    async def refresh(self) -> Updates:
        """What the panel makes the page do when something is new."""
        return await self.handlers.refresh(self.request)

    async def said(self) -> list[tuple[str, str]]:
        """Who said what, as the page shows it."""
        messages = (await self.refresh())["transcript"]
        return [(message["role"], read(message["content"]).text) for message in messages]


async def visit(handlers: Handlers, key: str = "page", language: str = "en-US") -> Visitor:
    """Open a page whose browser speaks `language`."""
    request = gr.Request(session_hash=key, headers={"accept-language": language})
    opened = await handlers.open_page(request)
    talk = handlers.registry.by_token(json.loads(opened["panel"])["token"])
    assert talk is not None
    return Visitor(handlers, request, opened, talk)
