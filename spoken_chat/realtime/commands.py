"""What a client's events do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, Final

from spoken_chat.conversation import Exchange, heard_text
from spoken_chat.engines import Engines
from spoken_chat.realtime import events
from spoken_chat.realtime.config import Choice, is_spoken, session_object, updated
from spoken_chat.realtime.events import Emit, Event
from spoken_chat.realtime.faults import BadEvent
from spoken_chat.realtime.given import joined, read_item, read_reply, shown
from spoken_chat.realtime.incoming import (
    AudioAppend,
    AudioClear,
    AudioCommit,
    ClientEvent,
    InputHold,
    ItemCreate,
    ItemDelete,
    ItemRetrieve,
    ItemTruncate,
    NewItem,
    OutputClear,
    ResponseCancel,
    ResponseCreate,
    ResponseFields,
    SessionUpdate,
    TurnPlayed,
)
from spoken_chat.realtime.items import Item, Items, new_id, reply_id
from spoken_chat.realtime.microphone import Microphone
from spoken_chat.realtime.narrator import Asked, Narrator
from spoken_chat.settings import Settings
from spoken_chat.talk.registry import OpenTalk
from spoken_chat.turn import Turn

MOST_WAITING: Final = 64
"""Messages that may wait for an answer."""

MOST_TOLD: Final = 500
"""Exchanges that a client may tell as having been."""

Work = Callable[[], Awaitable[None]]
Guard = Callable[[Work], Coroutine[Any, Any, None]]


class Commands:
    """Obeys one client. Whatever cannot be obeyed raises ChatError, and the client is told."""

    def __init__(
        self,
        opened: OpenTalk,
        engines: Engines,
        settings: Settings,
        emit: Emit,
        items: Items,
        narrator: Narrator,
        microphone: Microphone,
    ) -> None:
        self._talk = opened.talk
        self._session = opened.session
        self._engines = engines
        self._settings = settings
        self._emit = emit
        self._items = items
        self._narrator = narrator
        self._microphone = microphone
        self._reading: asyncio.Task[None] | None = None
        self._told = 0
        self._shown = self.session

    @property
    def session(self) -> Event:
        """The session as it is now."""
        return session_object(
            self._session.id,
            Choice(self._talk.options, self._session.voice),
            self._session.persona,
            self._engines.recognizer.name,
            self._settings.llm_max_tokens,
        )

    async def obey(self, event: ClientEvent, guard: Guard) -> None:
        """Do what `event` asks for. Raises ChatError; what goes on beside later events runs under `guard`."""
        if isinstance(event, AudioAppend):
            await self._microphone.hear(event.audio)
            return
        if self._reading is not None:  # sound goes on while an image is read; all else keeps its order
            await asyncio.wait([self._reading])
            self._reading = None
        match event:
            case ItemCreate():
                self._check_new(event)
                if any(part.type in ("input_image", "input_audio") for part in event.item.content):
                    work = partial(self._create, event.item)
                    self._reading = asyncio.create_task(guard(work), name="read an item")
                else:
                    await self._create(event.item)
            case ResponseCreate(response=fields):
                await self._respond(fields or ResponseFields())
            case AudioCommit():
                await self._talk.commit()
                self._microphone.begin_again()
            case AudioClear():
                await self._talk.clear()
                self._microphone.begin_again()
                self._emit(events.audio_cleared())
            case ResponseCancel():
                if not self._talk.replying:
                    raise BadEvent("response_cancel_not_active", "No reply is being made or played.")
                await self._stop()
            case OutputClear():
                await self._stop()
            case ItemTruncate():
                await self._truncate(event)
            case ItemRetrieve(item_id=item_id):
                self._emit(events.item_retrieved(self._items.get(item_id).wire()))
            case ItemDelete(item_id=item_id):
                self._delete(self._items.get(item_id))
            case InputHold():
                await self._talk.hold(event.held)
            case TurnPlayed():
                self._narrator.reports.listens = True
                self._talk.played(event.turn_id, event.waited_ms / 1000, event.playback_ms / 1000)
            case SessionUpdate(session=asked):
                self._show_session()
                before = Choice(self._talk.options, self._session.voice)
                after = updated(asked, before, self._session.persona, self._settings)
                if after.options != before.options:
                    await self._talk.configure(after.options)
                    if after.options.detection != before.options.detection:
                        self._microphone.begin_again()
                if after.voice != before.voice:
                    await self._talk.choose(self._session.persona, after.voice)
                self._emit(events.session_updated(self.session))
                self._shown = self.session

    async def close(self) -> None:
        """Nothing goes on any more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    def _show_session(self) -> None:
        """Say so when somebody else changed the session, such as the page's settings."""
        if self._shown != self.session:
            self._emit(events.session_updated(self.session))

    async def _stop(self, heard: float | None = None) -> None:
        self._narrator.stopped_by_client = True
        try:
            await self._talk.stop(heard)
        finally:
            self._narrator.stopped_by_client = False

    def _check_new(self, event: ItemCreate) -> None:
        """Whether an item like that can be added. Raises BadEvent."""
        item = event.item
        if item.type != "message" or item.role not in ("user", "assistant"):
            raise BadEvent(
                "item_unsupported",
                "Only messages of the user and the assistant are taken: the persona is fixed, and no tools are called.",
                "item.role" if item.type == "message" else "item.type",
            )
        if item.id is not None and self._items.find(item.id) is not None:
            raise BadEvent("item_exists", "There is an item of this id already.", "item.id")
        after = event.previous_item_id
        if after is not None and after != (self._items.last_id or "root"):
            if after != "root":
                self._items.get(after)
            raise BadEvent("item_order_unsupported", "Items are added behind the last one only.", "previous_item_id")
        if len(self._items.waiting) >= MOST_WAITING:
            raise BadEvent(
                "too_many_items", f"{MOST_WAITING} messages wait already; ask for an answer first.", most=MOST_WAITING
            )

    async def _create(self, new: NewItem) -> None:
        if new.role == "assistant":
            self._tell_history(new)
            return
        given = await read_item(new, self._settings)
        joined([*(one.given for one in self._items.waiting if one.given is not None), given], self._settings)
        if given.image is not None:
            self._talk.attach_image(given.image)
        self._narrator.announce(Item(new.id or new_id(), "user", shown(new.content), given=given))

    def _tell_history(self, new: NewItem) -> None:
        """The assistant's side of an exchange whose user's side waits: together they become history."""
        reply = read_reply(new, self._settings)
        waiting = self._items.waiting
        given = [item.given for item in waiting if item.given is not None]
        if not waiting or waiting[-1] is not self._items.last or len(given) < len(waiting):
            raise BadEvent(
                "history_order", "An assistant's message follows the user's message that it answered.", "item.role"
            )
        if any(one.sound is not None for one in given):
            raise BadEvent("history_sound", "What was said before is told as text, not as sound.", "item.content")
        if self._told >= MOST_TOLD:
            raise BadEvent("history_full", f"At most {MOST_TOLD} exchanges are taken as history.", most=MOST_TOLD)
        self._told += 1
        image = next((one.image for one in reversed(given) if one.image is not None), None)
        exchange = Exchange(joined(given, self._settings).text, reply, image)
        self._session.conversation.add(exchange)
        if image is not None:
            self._talk.attach_image(None)
        for item in waiting:
            item.given, item.exchange = None, exchange
        content = [{"type": "output_text", "text": reply}]
        self._narrator.announce(Item(new.id or new_id(), "assistant", content, exchange=exchange))

    async def _respond(self, fields: ResponseFields) -> None:
        """Answer all that waits, as one turn."""
        if fields.conversation == "none" or fields.input is not None:
            raise BadEvent(
                "out_of_band_unsupported", "Every response belongs to the conversation; add its input as items.",
                "response.input" if fields.input is not None else "response.conversation",
            )  # fmt: skip
        if fields.tools:
            raise BadEvent(
                "tools_unsupported", "No tools are called here; leave response.tools empty.", "response.tools"
            )
        spoken = self._talk.options.spoken_reply
        if fields.output_modalities is not None:
            spoken = is_spoken(fields.output_modalities, "response.output_modalities")
        if self._session.running is not None:
            raise BadEvent(
                "conversation_already_has_active_response", "A reply is being made; cancel it, or wait for its end."
            )
        waiting = self._items.waiting
        if not waiting:
            raise BadEvent("nothing_said", "There is nothing to answer; add a message or commit sound first.")
        given = joined([item.given for item in waiting if item.given is not None], self._settings)
        await self._let_the_last_reply_be()
        usual = self._talk.options
        self._narrator.asked = Asked(frozenset(item.id for item in waiting), given.text)
        try:
            if spoken != usual.spoken_reply:
                await self._talk.configure(replace(usual, spoken_reply=spoken))
            await self._talk.say(given)
        finally:
            self._narrator.asked = None
            if spoken != usual.spoken_reply:
                await self._talk.configure(replace(self._talk.options, spoken_reply=usual.spoken_reply))

    async def _let_the_last_reply_be(self) -> None:
        """Before another turn: of a client that never says what it played, all that was sent counts as heard.

        Otherwise the turn that begins would cut the last reply to what could have been played by now.
        """
        latest = self._narrator.latest
        if latest is not None and not self._narrator.reports.listens and self._talk.replying:
            heard = latest.turn.heard_seconds
            await self._stop(_seconds(latest.turn) if heard is None else heard)

    async def _truncate(self, event: ItemTruncate) -> None:
        item = self._items.find(event.item_id)
        turn = self._turn_of(event.item_id)
        if turn is None or not self._is_spoken(turn):
            if turn is None and item is None:
                self._items.get(event.item_id)
            raise BadEvent("item_not_truncatable", "Only the assistant's spoken replies can be cut.", "item_id")
        if event.content_index != 0:
            raise BadEvent("invalid_value", "A reply has one part, of content_index 0.", "content_index")
        heard = min(event.audio_end_ms / 1000, _seconds(turn))
        latest = self._narrator.latest
        if self._talk.replying and (latest is None or latest.turn is turn):
            await self._stop(heard)
        self._talk.truncate(turn.id, heard)
        if item is not None:
            words = heard_text([(clause.text, clause.seconds) for clause in turn.clauses], heard)
            item.content = [{"type": "output_audio", "transcript": words}]
        self._emit(events.item_truncated(event.item_id, 0, round(event.audio_end_ms)))

    def _is_spoken(self, turn: Turn) -> bool:
        """Whether a turn's reply has sound, or would have."""
        reply = self._narrator.reply_of(turn)
        return reply.spoken if reply is not None else _seconds(turn) > 0

    def _turn_of(self, item_id: str) -> Turn | None:
        """The turn whose reply the item holds."""
        return next((turn for turn in reversed(self._session.turns) if reply_id(turn.id) == item_id), None)

    def _delete(self, item: Item) -> None:
        """Take an item out of the conversation, and with it the exchange it belongs to."""
        if item.heard:
            raise BadEvent("item_in_use", "This sound waits for its answer; it cannot be deleted before.", "item_id")
        if item.given is not None:
            had_image = item.given.image is not None
            self._narrator.deleted([item])
            if had_image:
                left = [one.given.image for one in self._items.waiting if one.given is not None]
                self._talk.attach_image(next((image for image in reversed(left) if image is not None), None))
        elif item.exchange is not None:
            self._session.conversation.replace(item.exchange, "")
            self._narrator.deleted(self._items.of_exchange(item.exchange))
        elif item.turn_id is not None:
            running = self._session.running
            if running is not None and running.id == item.turn_id:
                raise BadEvent("item_in_use", "Its reply is being made; cancel that first.", "item_id")
            self._talk.truncate(item.turn_id, 0.0)
            self._narrator.deleted(self._items.of_turn(item.turn_id))


def _seconds(turn: Turn) -> float:
    """How long the sound of a turn's reply is."""
    return sum(clause.seconds for clause in turn.clauses)
