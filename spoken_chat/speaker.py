"""Speaks the clauses of one reply in order, while later ones are already being made."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import aclosing

from spoken_chat.errors import ChatError
from spoken_chat.tts import SpeechEvent, SpeechRequest, Synthesizer

Deliver = Callable[[int, SpeechEvent | ChatError], None]
"""Called with a clause's index and what came of it, clause by clause in the order they were given."""

_Lane = asyncio.Queue[SpeechEvent | BaseException | None]


class Speaker:
    """One reply's voice. At most `synthesizer.parallel` clauses are made at once; sound is delivered in order.

    A clause that cannot be spoken is delivered as its ChatError and the next one goes on.
    """

    def __init__(self, synthesizer: Synthesizer, deliver: Deliver) -> None:
        self._synthesizer = synthesizer
        self._deliver = deliver
        self._order: asyncio.Queue[_Lane | None] = asyncio.Queue()
        self._waiting: deque[tuple[SpeechRequest, _Lane]] = deque()
        self._making: set[asyncio.Task[None]] = set()
        self._delivery = asyncio.create_task(self._deliver_in_order())

    def say(self, request: SpeechRequest) -> None:
        """Queue one clause."""
        lane: _Lane = asyncio.Queue()
        self._order.put_nowait(lane)
        self._waiting.append((request, lane))
        self._start_next()

    async def finish(self) -> None:
        """Wait until every queued clause was delivered. No clause may be queued afterwards."""
        self._order.put_nowait(None)
        await self._delivery

    async def close(self) -> None:
        """Stop all work at once; harmless after `finish`."""
        self._waiting.clear()
        tasks = [self._delivery, *self._making]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start_next(self) -> None:
        while self._waiting and len(self._making) < self._synthesizer.parallel:
            request, lane = self._waiting.popleft()
            task = asyncio.create_task(self._make(request, lane))
            self._making.add(task)
            task.add_done_callback(self._made)

    def _made(self, task: asyncio.Task[None]) -> None:
        self._making.discard(task)
        self._start_next()

    async def _make(self, request: SpeechRequest, lane: _Lane) -> None:
        try:
            async with aclosing(self._synthesizer.synthesize(request)) as events:
                async for event in events:
                    lane.put_nowait(event)
        except Exception as error:  # noqa: BLE001 - handed on: the delivery tells a ChatError and raises any other
            lane.put_nowait(error)
        finally:
            lane.put_nowait(None)

    async def _deliver_in_order(self) -> None:
        index = 0
        while (lane := await self._order.get()) is not None:
            while (event := await lane.get()) is not None:
                if isinstance(event, BaseException) and not isinstance(event, ChatError):
                    raise event
                self._deliver(index, event)
            index += 1
