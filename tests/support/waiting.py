"""Waiting for what another task, thread or process does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

WAIT_S = 20
"""How long a test waits for what must happen before it says that it did not."""


async def until(condition: Callable[[], object], seconds: float = WAIT_S) -> None:
    """Wait until `condition` holds. Raises TimeoutError when it does not in `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - others change it without telling
            await asyncio.sleep(0.005)
