"""The items of a conversation as the wire knows them: messages of the user and of the assistant, in order."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from spoken_chat.conversation import Exchange
from spoken_chat.realtime.events import Event
from spoken_chat.realtime.faults import BadEvent
from spoken_chat.realtime.given import Given

MOST_ITEMS: Final = 2000
"""Items remembered for a client that asks for one; older ones stay in the history alone."""

Status = Literal["in_progress", "completed", "incomplete"]


def new_id() -> str:
    """An id for an item."""
    return "item_" + secrets.token_hex(10)


def reply_id(turn_id: str) -> str:
    """The id of the item that holds the reply of a turn; also where the turn began before this connection."""
    return f"item_{turn_id}"


@dataclass(eq=False)
class Item:
    """One message. What it belongs to: a turn, an exchange that the client told, or `given`: nothing yet.

    `heard`: sound that the talk itself keeps until it is answered.
    """

    id: str
    role: Literal["user", "assistant"]
    content: list[dict[str, Any]]
    status: Status = "completed"
    turn_id: str | None = None
    exchange: Exchange | None = None
    given: Given | None = None
    heard: bool = False

    @property
    def waits(self) -> bool:
        """Whether it is still to be answered."""
        return self.given is not None or self.heard

    def wire(self) -> Event:
        """The item as events show it."""
        return {
            "id": self.id,
            "object": "realtime.item",
            "type": "message",
            "status": self.status,
            "role": self.role,
            "content": [dict(part) for part in self.content],
        }


@dataclass
class Items:
    """All of one connection, oldest first."""

    _items: dict[str, Item] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Item]:
        return iter(list(self._items.values()))

    @property
    def last_id(self) -> str | None:
        """The item behind which the next one comes."""
        return next(reversed(self._items), None)

    @property
    def last(self) -> Item | None:
        """The latest item."""
        return self._items[self.last_id] if self.last_id is not None else None

    def previous_of(self, item: Item) -> str | None:
        """The item before `item`."""
        previous = None
        for one in self._items:
            if one == item.id:
                break
            previous = one
        return previous

    def add(self, item: Item) -> str | None:
        """Append `item`; returns the id of the one before it. What is old and belongs to nothing open is let go."""
        previous = self.last_id
        self._items[item.id] = item
        if len(self._items) > MOST_ITEMS:
            oldest = next((one for one in self._items.values() if not one.waits), item)
            if oldest is not item:
                del self._items[oldest.id]
        return previous

    def find(self, item_id: str) -> Item | None:
        """The item of that id."""
        return self._items.get(item_id)

    def get(self, item_id: str) -> Item:
        """The item of that id. Raises BadEvent where there is none."""
        found = self._items.get(item_id)
        if found is None:
            raise BadEvent("item_not_found", "There is no item of this id in the conversation.", "item_id")
        return found

    def remove(self, item: Item) -> None:
        """Forget `item`."""
        self._items.pop(item.id, None)

    def of_turn(self, turn_id: str) -> list[Item]:
        """What belongs to a turn: what the user gave, and the reply."""
        return [item for item in self._items.values() if item.turn_id == turn_id]

    def of_exchange(self, exchange: Exchange) -> list[Item]:
        """What belongs to an exchange that the client told."""
        return [item for item in self._items.values() if item.exchange is exchange]

    @property
    def waiting(self) -> list[Item]:
        """What is still to be answered."""
        return [item for item in self._items.values() if item.waits]
