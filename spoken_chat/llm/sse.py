"""Server-sent events from raw bytes, cut anywhere.

Source: WHATWG HTML, "Server-sent events", event stream interpretation; only the `data` field matters to us. Lines
are split as bytes before they are decoded, so a character that arrives in two TCP segments is whole again.
"""

from __future__ import annotations


class EventReader:
    """Feeds on bytes as received, gives the data of each event that is complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []

    def feed(self, received: bytes) -> list[str]:
        """The data of the events that `received` completes. Bytes that are not UTF-8 become U+FFFD."""
        *lines, self._rest = (self._rest + received).split(b"\n")
        events = []
        for line in lines:
            text = line.removesuffix(b"\r").decode("utf-8", "replace")
            if not text:
                if self._data:
                    events.append("\n".join(self._data))
                    self._data.clear()
                continue
            field, _, value = text.partition(":")
            if field == "data":
                self._data.append(value.removeprefix(" "))
        return events
