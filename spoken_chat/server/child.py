"""A child process that ends when its standard input closes, which is how it ends with us however we end."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from typing import Final

_LOOK_S: Final = 0.05


async def exit_of(child: subprocess.Popen[str]) -> int:
    """Wait for the end of `child`; its status."""
    while (status := child.poll()) is None:  # noqa: ASYNC110 - a thread waiting for it could not be cancelled
        await asyncio.sleep(_LOOK_S)
    return status


async def end_child(child: subprocess.Popen[str], seconds: float) -> None:
    """Close the pipes of `child` and wait for its end; after `seconds` it is made to end."""
    assert child.stdin is not None and child.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # it has ended already
        child.stdin.close()
    try:
        async with asyncio.timeout(seconds):
            await exit_of(child)
    except TimeoutError:
        child.kill()
        await exit_of(child)
    finally:
        child.stdout.close()
