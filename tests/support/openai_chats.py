"""OpenAIChat in tests: a chat with a scripted server behind it, and what one turn with it gave."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from spoken_chat.errors import ChatError
from spoken_chat.llm import ChatEvent, TextDelta
from spoken_chat.llm.openai_chat import OpenAIChat
from spoken_chat.settings import Settings
from tests.support.openai_server import Answer, ScriptedServer

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}]
SECRET = "sk-secret-1234"


@asynccontextmanager
async def talking_to(
    *answers: Answer, models: Answer | None = None, **settings: Any
) -> AsyncIterator[tuple[OpenAIChat, ScriptedServer]]:
    """A chat and the scripted server behind it, both closed afterwards."""
    async with ScriptedServer(*answers, models=models) as server:
        chat = OpenAIChat(Settings(**settings), base_url=server.base_url)
        try:
            yield chat, server
        finally:
            await chat.aclose()


async def events_of(chat: OpenAIChat) -> list[ChatEvent]:
    return [event async for event in chat.stream(MESSAGES)]


async def text_of(chat: OpenAIChat) -> str:
    return "".join(event.text for event in await events_of(chat) if isinstance(event, TextDelta))


async def text_and_fault(chat: OpenAIChat) -> tuple[str, ChatError]:
    """What was received before the stream failed, and how it failed."""
    text = ""
    with pytest.raises(ChatError) as caught:
        async for event in chat.stream(MESSAGES):
            if isinstance(event, TextDelta):
                text += event.text
    return text, caught.value
