"""The model reads the conversation so far while the person still speaks, so that its prefix cache holds it."""

from __future__ import annotations

import asyncio
import logging

from spoken_chat.errors import ChatError
from spoken_chat.llm import ChatModel, Message

log = logging.getLogger(__name__)


class Prefill:
    """At most one such request at a time."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def start(self, model: ChatModel, messages: list[Message]) -> None:
        """Send `messages`, unless a request still runs."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(_read(model, messages), name="prefill")

    async def stop(self) -> None:
        """Close the request, if one still runs: what the server has read of it by then stays cached."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task])


async def _read(model: ChatModel, messages: list[Message]) -> None:
    try:
        await model.read(messages)
    except ChatError as error:
        log.info("the conversation could not be read ahead: %s", error.message)
