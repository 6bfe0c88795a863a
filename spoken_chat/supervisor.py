"""Keeps the model server going while the app runs: asked again, started again with back-off, watched, kept warm."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from spoken_chat.errors import ChatError
from spoken_chat.model_stage import ModelStage

log = logging.getLogger(__name__)

PASSING: Final = frozenset(
    {
        "llm_unreachable",
        "llm_timeout",
        "llm_stalled",
        "llm_dropped",
        "llm_busy",
        "llm_server_error",
        "llm_model_missing",
        "vllm_port",
        "vllm_crashed",
        "vllm_killed",
        "vllm_ended",
    }
)
"""Faults of a model server that can go away by themselves; any other one only a person can mend."""

RETRY_S: Final = 3.0
"""How long to wait before a model server elsewhere that was not there is asked again."""

FIRST_BACK_OFF_S: Final = 1.0
LONGEST_BACK_OFF_S: Final = 60.0
STEADY_S: Final = 120.0
"""A server that ran this long is started again as soon as the first time that it ended."""

LOOK_S: Final = 2.0
"""How often the server is asked how it does, while a page is open."""


class Supervisor:
    """Over one ModelStage. `load_again` loads it once more and tells its state; it raises nothing.

    `sessions`: how many pages are open.
    """

    def __init__(
        self, stage: ModelStage, load_again: Callable[[], Awaitable[None]], sessions: Callable[[], int] = lambda: 0
    ) -> None:
        self._stage = stage
        self._load_again = load_again
        self._sessions = sessions
        self._back_off = FIRST_BACK_OFF_S

    async def run(self) -> None:
        """Until cancelled."""
        watching = asyncio.create_task(self._watch(), name="watch the model server")
        try:
            while True:
                await self.keep_trying()
                await self._until_it_ends()
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def keep_trying(self) -> None:
        """Load again and again while what is wrong can go away by itself."""
        state = self._stage.state
        while self._stage.choice.engine != "embedded" and state.status == "failed" and state.code in PASSING:
            await asyncio.sleep(self._next_wait())
            await self._load_again()

    async def _until_it_ends(self) -> None:
        """Wait for the end of a server of ours, and tell it."""
        clock = asyncio.get_running_loop().time
        begun = clock()
        fault = await self._stage.ended()
        if clock() - begun > STEADY_S:
            self._back_off = FIRST_BACK_OFF_S
        log.warning("%s", fault.message)
        state = self._stage.state
        state.status, state.code = "failed", "vllm_ended"
        state.detail = f"The model server ended and is started again. {fault.message}"

    def _next_wait(self) -> float:
        if self._stage.choice.engine == "server":
            return RETRY_S
        wait, self._back_off = self._back_off, min(2 * self._back_off, LONGEST_BACK_OFF_S)
        return wait

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            sessions = self._sessions()
            if sessions and self._stage.state.status == "ready":
                try:
                    await self._stage.look(sessions)
                except ChatError as error:
                    log.info("the model server was not watched: %s", error.message)
