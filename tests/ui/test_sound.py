"""The sound of a reply goes to the one page that asks for it, as it is made, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np

from spoken_chat.audio import Pcm16
from spoken_chat.ui.sound import MOST_KEPT, ReplySounds
from tests.support.engines import Clock
from tests.support.virtual_time import run_virtual


def pcm(*samples: int) -> Pcm16:
    return np.array(samples, np.int16)


async def heard(stream: AsyncIterator[bytes] | None) -> bytes:
    assert stream is not None
    return b"".join([chunk async for chunk in stream])


async def test_what_was_pushed_is_heard_in_order_as_little_endian_samples() -> None:
    sounds = ReplySounds()
    sounds.open("turn")
    sounds.push("turn", pcm(1, -2))
    sounds.push("turn", np.array([256], np.dtype(">i2")))
    sounds.push("turn", pcm(1, 2, 3, 4)[::2])
    sounds.end("turn")
    assert await heard(sounds.take("turn")) == b"\x01\x00\xfe\xff" + b"\x00\x01" + b"\x01\x00\x03\x00"


async def test_sound_is_heard_only_once() -> None:
    sounds = ReplySounds()
    sounds.open("turn")
    stream = sounds.take("turn")
    assert sounds.take("turn") is None, "somebody listens already"
    sounds.end("turn")
    assert await heard(stream) == b""
    assert sounds.take("turn") is None, "it was heard already"


def test_sound_is_heard_as_it_is_made() -> None:
    async def main(clock: Clock) -> list[tuple[float, bytes]]:
        sounds = ReplySounds()
        sounds.open("turn")
        stream = sounds.take("turn")
        assert stream is not None

        async def listen() -> list[tuple[float, bytes]]:
            return [(clock(), chunk) async for chunk in stream]

        listening = asyncio.create_task(listen())
        for number in (1, 2):
            await asyncio.sleep(0.5)
            sounds.push("turn", pcm(number))
        await asyncio.sleep(0.5)
        sounds.end("turn")
        came = await listening
        assert clock() == 1.5
        return came

    assert run_virtual(main) == [(0.5, b"\x01\x00"), (1.0, b"\x02\x00")]


async def test_turns_do_not_hear_each_other() -> None:
    sounds = ReplySounds()
    for number, turn in enumerate(("a", "b")):
        sounds.open(turn)
        sounds.push(turn, pcm(number))
        sounds.end(turn)
    assert await heard(sounds.take("b")) == b"\x01\x00"
    assert await heard(sounds.take("a")) == b"\x00\x00"


async def test_an_unknown_turn_has_no_sound_and_takes_none() -> None:
    sounds = ReplySounds()
    sounds.push("unknown", pcm(1))
    sounds.end("unknown")
    assert sounds.take("unknown") is None


async def test_a_listener_that_leaves_takes_the_rest_of_the_sound_with_it() -> None:
    sounds = ReplySounds()
    sounds.open("turn")
    sounds.push("turn", pcm(1))
    stream = sounds.take("turn")
    assert stream is not None
    assert await anext(stream) == b"\x01\x00"
    await stream.aclose()  # type: ignore[attr-defined]
    sounds.push("turn", pcm(2))
    sounds.end("turn")
    assert sounds.take("turn") is None


async def test_of_sounds_that_nobody_fetches_only_the_latest_are_kept() -> None:
    sounds = ReplySounds()
    sounds.open("listened to")
    stream = sounds.take("listened to")
    names = [str(number) for number in range(MOST_KEPT + 5)]
    for name in names:
        sounds.open(name)
        sounds.end(name)
    kept = [name for name in names if sounds.take(name) is not None]
    assert kept == names[-MOST_KEPT:]
    sounds.push("listened to", pcm(7))
    sounds.end("listened to")
    assert await heard(stream) == b"\x07\x00", "the oldest of all, but somebody listens"
