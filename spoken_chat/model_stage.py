"""The language model of one app: its server's start and warm-up, and what is done when it ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Final

from spoken_chat.conversation import Conversation
from spoken_chat.errors import ChatError
from spoken_chat.llm.openai_chat import OpenAIChat
from spoken_chat.persona import Persona
from spoken_chat.server.llama import SLOTS, LlamaServer
from spoken_chat.server.start_log import StartFacts
from spoken_chat.server.vllm import DUMMY, VllmServer
from spoken_chat.server.warm_up import HELLO, opening, read_prefix, warm_up
from spoken_chat.server.watch import ServerCard, ServerWatch
from spoken_chat.settings import Settings
from spoken_chat.stage_state import Choice, Progress, StageState

log = logging.getLogger(__name__)

SMALL_BLOCK: Final = 64
"""A prefix is not padded for blocks of at most this many tokens: less than a block is read again in each turn."""


class ModelStage:
    """Owns the client, the server where it is ours, and the watch over it. `state` says how far it all is."""

    def __init__(
        self,
        settings: Settings,
        choice: Choice,
        state: StageState,
        personas: Mapping[str, Persona],
        first: Persona,
    ) -> None:
        self.settings = settings
        self.choice = choice
        self.state = state
        self.chat: OpenAIChat | None = None
        self.llama = LlamaServer(settings) if self.choice.engine == "embedded" else None
        self.vllm = VllmServer(settings, self._told) if self.choice.engine == "vllm" else None
        self.watch: ServerWatch | None = None
        self._personas = personas
        self._first = first
        self._reviving = asyncio.Lock()

    @property
    def card(self) -> ServerCard | None:
        """What the server said of itself last; None of one that says nothing, or was not asked yet."""
        return self.watch.card if self.watch is not None else None

    @property
    def watched(self) -> bool:
        """Whether there is something to tell of the server while the app runs."""
        return self.vllm is not None or self.watch is not None

    async def load(self) -> str:
        """Start or find the server, connect, and warm it up; the name of the model. Raises ChatError."""
        try:
            base_url, model = await self._serve()
        finally:
            self.state.progress = None
        await self._close_client()
        served = self.settings.model_copy(update={"llm_model": model}) if model else self.settings
        self.chat = chat = OpenAIChat(served, base_url=base_url)
        await chat.connect()
        self.state.code = self.state.detail = ""  # whatever was wrong with the server before is over
        try:
            await self._warm_up(chat)
        except ChatError as error:
            # A server that answers may do better in the next turn, which will tell its own fault.
            self.state.code, self.state.detail = error.code, f"Its first reply failed: {error.message}"
            log.warning("the model's first reply failed: %s", error.message)
        else:
            if self.vllm is not None and self.vllm.cautions:
                self.state.code, self.state.detail = "vllm_caution", " ".join(self.vllm.cautions)
        return chat.name

    async def revive(self) -> None:
        """Start the embedded server again, should it have ended. Raises ChatError."""
        async with self._reviving:
            if self.llama is not None and self.chat is not None and not self.llama.alive:
                log.warning("the embedded model server ended; starting it again")
                await self.load()

    async def close(self) -> None:
        """Close every connection and end the server, where it is ours."""
        await self._close_client()
        if self.llama is not None:
            await self.llama.stop()
        if self.vllm is not None:
            await self.vllm.stop()

    async def ended(self) -> ChatError:
        """Wait until a vLLM of ours ends by itself; why it did."""
        if self.vllm is None:
            return await asyncio.Future()
        return await self.vllm.ended()

    async def look(self, sessions: int) -> None:
        """Ask the server how it does, and keep it warm while `sessions` pages are open."""
        if self.watch is None or self.chat is None:
            return
        await self.watch.look()
        idle = time.monotonic() - self.chat.last_used
        if sessions and 0 < self.settings.llm_keep_warm <= idle:
            try:
                await self.chat.read(opening(self._first))
            except ChatError as error:
                log.info("the server could not be kept warm: %s", error.message)

    async def _serve(self) -> tuple[str, str]:
        """(base URL, model name or nothing) of the server, once it answers."""
        if self.llama is not None:
            return await self.llama.start(), ""
        if self.vllm is not None:
            return await self.vllm.start(), self.vllm.served_name
        return self.settings.llm_base_url, ""

    async def _warm_up(self, chat: OpenAIChat) -> None:
        if not chat.reads_alone:
            # Both slots of our own server are to hold the prefix, and two requests at once go to one each.
            await asyncio.gather(*(self._greet(chat) for _ in range(SLOTS if self.llama is not None else 1)))
            return
        dummy = chat.name.endswith(DUMMY)
        facts = self.vllm.facts if self.vllm is not None else StartFacts()
        self.watch = watch = ServerWatch(chat.base_url, chat.name, facts, dummy_weights=dummy)
        card = await watch.look()
        self.state.progress = Progress("warming_up", None, None, None)
        large = card.match_unit is None and (card.block_tokens or 0) > SMALL_BLOCK
        try:
            for persona in (self._first, *(one for one in self._personas.values() if one is not self._first)):
                await read_prefix(chat, persona, card.block_tokens if large else None)
            await warm_up(chat, self._first, self.settings)
        finally:
            self.state.progress = None
        await watch.look()

    async def _greet(self, chat: OpenAIChat) -> None:
        """One whole reply before the first turn: it caches the persona prefix and warms the server's kernels."""
        persona = self._first
        messages = Conversation().messages(persona.prefix, HELLO[persona.language], None, persona.examples)
        async with aclosing(chat.stream(messages)) as events:
            async for _ in events:
                continue

    async def _close_client(self) -> None:
        if self.chat is not None:
            await self.chat.aclose()
        if self.watch is not None:
            watch, self.watch = self.watch, None
            await watch.aclose()

    def _told(self, progress: Progress) -> None:
        """The server starts, perhaps not for the first time: the page shows how far it is beside what was wrong."""
        self.state.status, self.state.progress = "loading", progress
