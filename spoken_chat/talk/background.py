"""Tasks that run beside whoever started them, and are gone when it closes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Background:
    """A set of running tasks. An unforeseen error in one reaches the event loop's own handler, and so the log."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` as a task."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancel every task and wait for it."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def cancel(task: asyncio.Task[None] | None) -> None:
    """Cancel `task`, unless it is the one that asks."""
    if task is not None and task is not asyncio.current_task():
        task.cancel()
