"""What waits for a client: its order, its bounds in bytes and in time, how it ends."""

import asyncio
import json
from collections.abc import Callable

import pytest

from spoken_chat.realtime.outbox import TRY_AGAIN_LATER, Outbox
from tests.support.virtual_time import run_virtual


class Socket:
    """Takes messages while `open`."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.closed: tuple[int, str] | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def send(self, text: str) -> None:
        await self.open.wait()
        self.sent.append(json.loads(text)["type"])

    async def close(self, code: int, reason: str) -> None:
        await self.open.wait()
        self.closed = (code, reason)


def run(script: Callable[[Socket, Outbox, asyncio.Task[None]], object], **bounds: float) -> Socket:
    async def main(clock: Callable[[], float]) -> Socket:
        socket = Socket()
        outbox = Outbox(socket.send, socket.close, **bounds)  # type: ignore[arg-type]
        task = asyncio.create_task(outbox.run())
        await script(socket, outbox, task)  # type: ignore[misc]
        socket.ended_at = clock()  # type: ignore[attr-defined]
        assert task.done() and outbox.waiting_bytes == 0
        return socket

    return run_virtual(main)


def test_events_leave_in_order_and_the_close_frame_last() -> None:
    async def script(_: Socket, outbox: Outbox, task: asyncio.Task[None]) -> None:
        for kind in "abc":
            outbox.put({"type": kind})
        await asyncio.sleep(1)
        outbox.put({"type": "d"})
        outbox.finish(4001, "taken over")
        outbox.put({"type": "too late"})
        await task

    socket = run(script)
    assert socket.sent == ["a", "b", "c", "d"] and socket.closed == (4001, "taken over")


def test_a_client_that_falls_too_far_behind_is_closed_and_what_waited_is_dropped() -> None:
    async def script(socket: Socket, outbox: Outbox, task: asyncio.Task[None]) -> None:
        socket.open.clear()
        for _ in range(20):
            outbox.put({"type": "x" * 100})
        await asyncio.sleep(0.1)
        assert outbox.waiting_bytes < 1000
        socket.open.set()
        await task

    socket = run(script, most_bytes=1000)
    assert socket.closed is not None and socket.closed[0] == TRY_AGAIN_LATER
    assert len(socket.sent) <= 1


def test_a_client_that_takes_nothing_is_given_up_in_time_even_if_it_takes_no_close_frame() -> None:
    async def script(socket: Socket, outbox: Outbox, task: asyncio.Task[None]) -> None:
        socket.open.clear()
        outbox.put({"type": "a"})
        outbox.put({"type": "b"})
        await task

    socket = run(script, stalled_s=10.0)
    assert socket.sent == [] and socket.closed is None
    assert socket.ended_at == pytest.approx(12.0)  # type: ignore[attr-defined]


def test_many_events_leave_others_their_turn() -> None:
    async def script(socket: Socket, outbox: Outbox, task: asyncio.Task[None]) -> None:
        for _ in range(100):
            outbox.put({"type": "a"})
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert 0 < len(socket.sent) < 100
        outbox.finish(1000, "")
        await task

    assert len(run(script).sent) == 100
