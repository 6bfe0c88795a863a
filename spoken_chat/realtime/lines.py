"""Who is connected to each conversation: one client at a time, the latest."""

from __future__ import annotations

import asyncio
from typing import Protocol
from weakref import WeakKeyDictionary

from spoken_chat.talk.registry import OpenTalk


class Holder(Protocol):
    """A client that is connected to a conversation."""

    async def give_way(self) -> None:
        """Another one connects: leave, and return when nothing of this one is left."""
        ...


class Line:
    """What outlasts the connections of one conversation."""

    def __init__(self) -> None:
        self.heard = 0.0
        """Seconds of sound that its talk heard over earlier connections."""
        self.used = False
        """Whether somebody was connected before."""
        self._holder: Holder | None = None
        self._changing = asyncio.Lock()

    async def take(self, newcomer: Holder) -> None:
        """`newcomer` takes over from whoever is connected."""
        async with self._changing:
            if self._holder is not None:
                await self._holder.give_way()
            self._holder = newcomer

    def leave(self, holder: Holder) -> None:
        """`holder` is gone."""
        self.used = True
        if self._holder is holder:
            self._holder = None


class Lines:
    """One for each conversation, for as long as that lives."""

    def __init__(self) -> None:
        self._lines: WeakKeyDictionary[OpenTalk, Line] = WeakKeyDictionary()

    def of(self, opened: OpenTalk) -> Line:
        """The line of a conversation."""
        return self._lines.setdefault(opened, Line())
