"""One reply on the wire: from `response.created` to `response.done`."""

from __future__ import annotations

import base64
from typing import Any, Final, Literal

from spoken_chat.audio import TTS_RATE, Pcm16
from spoken_chat.errors import ChatError
from spoken_chat.events import Ended
from spoken_chat.realtime import events
from spoken_chat.realtime.config import modalities
from spoken_chat.realtime.events import Emit, Event, Place
from spoken_chat.realtime.items import Item, Items, reply_id
from spoken_chat.turn import Turn

FIRST_SAMPLES: Final = TTS_RATE // 10
"""The first sound goes out in a small event: it is encoded, sent and parsed sooner."""

MOST_SAMPLES: Final = TTS_RATE // 4

Stopped = Literal["turn_detected", "client_cancelled"]


class Reply:
    """The wire's side of one turn. Nothing is told of it before `open`; `close` is its end.

    `spoken`: whether it comes as sound with its transcript, or as text. `by_client`: the client asked for it, and so
    waits for its end whatever happens.
    """

    def __init__(
        self,
        turn: Turn,
        items: Items,
        emit: Emit,
        *,
        conversation_id: str,
        voice: str,
        most_tokens: int,
        spoken: bool,
        by_client: bool,
    ) -> None:
        self.turn = turn
        self.by_client = by_client
        self.spoken = spoken
        self.opened = False
        self.sounded = False
        """Whether some of its sound was sent."""
        self.stopped: Stopped = "turn_detected"
        """By whom it was stopped, where it was."""
        self.notices: dict[str, str] = {}
        """What went otherwise than asked, by code: the metadata of the response."""
        self.place = Place(f"resp_{turn.id}", reply_id(turn.id))
        self._items = items
        self._emit = emit
        self._conversation_id = conversation_id
        self._voice = voice
        self._most_tokens = most_tokens
        self._item: Item | None = None
        self._text = ""

    def open(self) -> None:
        """The utterance has words: the reply to it begins."""
        if not self.opened:
            self.opened = True
            self._emit(events.response_created(self._response("in_progress")))

    def add_text(self, text: str) -> None:
        """More of the reply, as it is shown."""
        self._begin_item()
        self._text += text
        make = events.transcript_delta if self.spoken else events.text_delta
        self._emit(make(self.place, text))

    def add_sound(self, pcm: Pcm16) -> None:
        """More of its sound, in events of a bounded size."""
        if not self.spoken or not len(pcm):
            return
        self._begin_item()
        start, size = 0, MOST_SAMPLES if self.sounded else FIRST_SAMPLES
        self.sounded = True
        data = memoryview(pcm.astype("<i2", copy=False).tobytes())
        while start < len(pcm):
            piece = data[2 * start : 2 * (start + size)]
            self._emit(events.audio_delta(self.place, base64.b64encode(piece).decode("ascii")))
            start, size = start + size, MOST_SAMPLES

    def close(self, ended: Ended) -> None:
        """The turn is over."""
        self.open()
        whole = ended.status == "completed"
        if self._item is not None:
            self._finish_item(self._item, whole)
        self._emit(events.response_done(self._response(ended.status, ended.error)))

    def _begin_item(self) -> None:
        if self._item is not None:
            return
        self.open()
        self._item = item = Item(self.place.item_id, "assistant", [], status="in_progress", turn_id=self.turn.id)
        previous = self._items.add(item)
        self._emit(events.output_item_added(self.place.response_id, item.wire()))
        self._emit(events.item_added(item.wire(), previous))
        part = {"type": "audio", "transcript": ""} if self.spoken else {"type": "text", "text": ""}
        self._emit(events.content_part_added(self.place, part))

    def _finish_item(self, item: Item, whole: bool) -> None:
        place, text = self.place, self._text
        item.status = "completed" if whole else "incomplete"
        part: dict[str, Any]
        if self.spoken:
            item.content = [{"type": "output_audio", "transcript": text}]
            part = {"type": "audio", "transcript": text}
            self._emit(events.audio_done(place))
            self._emit(events.transcript_done(place, text))
        else:
            item.content = [{"type": "output_text", "text": text}]
            part = {"type": "text", "text": text}
            self._emit(events.text_done(place, text))
        self._emit(events.content_part_done(place, part))
        self._emit(events.output_item_done(place.response_id, item.wire()))
        self._emit(events.item_done(item.wire(), self._items.previous_of(item)))

    def _response(self, status: str, error: ChatError | None = None) -> Event:
        details: Event | None = None
        if status == "cancelled":
            details = {"type": "cancelled", "reason": self.stopped}
        elif status == "failed" and error is not None:
            about = {"type": "server_error", "code": error.code, "message": error.message}
            details = {"type": "failed", "error": about}
        elif status == "completed":
            details = {"type": "completed"}
        return {
            "id": self.place.response_id,
            "object": "realtime.response",
            "status": status,
            "status_details": details,
            "output": [self._item.wire()] if self._item is not None else [],
            "conversation_id": self._conversation_id,
            "output_modalities": modalities(self.spoken),
            "max_output_tokens": self._most_tokens,
            "audio": {"output": {"format": events.PCM_FORMAT, "voice": self._voice}},
            "usage": events.usage(self.turn.usage),
            "metadata": dict(self.notices) or None,
        }
