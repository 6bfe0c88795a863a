"""One client's connection to one conversation: reads its events, tells it what happens, leaves nothing behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from spoken_chat.conversation import heard_text
from spoken_chat.errors import ChatError
from spoken_chat.realtime import events
from spoken_chat.realtime.commands import Commands, Work
from spoken_chat.realtime.events import Event
from spoken_chat.realtime.faults import BadEvent
from spoken_chat.realtime.incoming import event_id_of, most_characters, parse, read_message
from spoken_chat.realtime.items import Items
from spoken_chat.realtime.lines import Line
from spoken_chat.realtime.microphone import Microphone
from spoken_chat.realtime.narrator import Narrator
from spoken_chat.realtime.outbox import Outbox
from spoken_chat.realtime.reports import Reports
from spoken_chat.session import ChatSession
from spoken_chat.settings import Settings
from spoken_chat.talk.registry import OpenTalk, TalkRegistry

log = logging.getLogger(__name__)

Phrase = Callable[[str, str, str], str]
"""A fault or notice by code, its English sentence, and a language: the sentence in that language."""

TAKEN_OVER: Final = 4001
POLICY: Final = 1008

GIVE_WAY_S: Final = 0.5
"""How long a client may take to hear that another one took over."""


class Connection:
    """`own_events`: the client came with a page's token, and so knows the events of our own."""

    def __init__(
        self,
        websocket: WebSocket,
        opened: OpenTalk,
        registry: TalkRegistry,
        settings: Settings,
        line: Line,
        phrase: Phrase,
        *,
        own_events: bool,
    ) -> None:
        self._websocket = websocket
        self._opened = opened
        self._registry = registry
        self._settings = settings
        self._line = line
        self._phrase = phrase
        self._own_events = own_events
        self._outbox = Outbox(websocket.send_text, websocket.close)
        self._longest = most_characters(settings)
        self._tasks: list[asyncio.Task[None]] = []
        self._gone = asyncio.Event()

    async def run(self) -> None:
        """Serve the client until it, or another one with its token, ends that."""
        await self._line.take(self)
        try:
            await self._serve()
        finally:
            await self._leave()
            self._line.leave(self)
            self._gone.set()

    async def _serve(self) -> None:
        talk, session, emit = self._opened.talk, self._opened.session, self._outbox.put
        microphone = Microphone(talk, self._settings, self._line.heard)
        reports = Reports(session, emit, progress=self._own_events)
        items = Items()
        narrator = Narrator(
            talk,
            items,
            emit,
            reports,
            self._own_events,
            microphone.milliseconds,
            self._in_words,
            self._settings.llm_max_tokens,
        )
        commands = Commands(self._opened, self._registry.engines, self._settings, emit, items, narrator, microphone)
        emit(events.session_created(commands.session))
        if self._own_events and (self._line.used or session.turns):
            emit(events.restored(said_before(session), session.voice.name, talk.options.detection))
        unsubscribe = talk.subscribe(narrator.tell)
        self._tasks = [
            asyncio.create_task(self._write(), name="realtime writer"),
            asyncio.create_task(self._read(commands), name="realtime reader"),
        ]
        try:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            unsubscribe()
            reports.close()
            await _end(self._tasks)
            await commands.close()
            self._line.heard += microphone.heard

    async def give_way(self) -> None:
        """Another client connects with the same token: say so, and leave."""
        message = self._in_words("taken_over", "This conversation goes on in another window.")
        self._outbox.forget()
        self._outbox.put(events.error("taken_over", message, kind="invalid_request_error"))
        self._outbox.finish(TAKEN_OVER, "taken over")
        try:
            async with asyncio.timeout(GIVE_WAY_S):
                await self._gone.wait()
        except TimeoutError:  # often a page that lost its network comes back, and nobody is there any more
            for task in self._tasks:
                task.cancel()
            await self._gone.wait()

    async def _leave(self) -> None:
        """Stop what the client began. A page may come back to its conversation; a program's ends."""
        if self._own_events:
            await self._opened.talk.stop()
            await self._opened.talk.clear()
        else:
            await self._registry.drop(self._opened.token)

    async def _write(self) -> None:
        try:
            await self._outbox.run()
        except WebSocketDisconnect:
            log.debug("the client left while something was sent to it")

    async def _read(self, commands: Commands) -> None:
        """Obey the client's events until it leaves; after the end of its conversation, none."""
        while (message := await self._websocket.receive())["type"] != "websocket.disconnect":
            if self._registry.by_token(self._opened.token) is not self._opened:
                text = self._in_words("session_gone", "This conversation has ended; reload the page to start another.")
                self._outbox.put(events.error("session_gone", text, kind="invalid_request_error"))
                self._outbox.finish(POLICY, "the conversation has ended")
                continue
            await self._take(message.get("text"), commands)
            await asyncio.sleep(0)  # a flood of events must not keep others from their turn

    async def _take(self, text: str | None, commands: Commands) -> None:
        raw: Event = {}

        async def obeyed() -> None:
            if text is None:
                raise BadEvent("invalid_event", "Events are sent as text, not as binary messages.")
            raw.update(read_message(text, self._longest))
            await commands.obey(parse(raw), guard)

        async def guard(work: Work) -> None:
            await self._guarded(work, raw)

        await guard(obeyed)

    async def _guarded(self, work: Work, raw: Event) -> None:
        """Do `work` for the client's event `raw`; what goes wrong becomes an error event, and the client goes on."""
        try:
            await work()
        except ChatError as error:
            param = error.param if isinstance(error, BadEvent) else None
            self._refuse(error.code, error.message, "invalid_request_error", param, event_id_of(raw))
        except Exception:  # one event's unforeseen error must not end the conversation
            log.exception("a client's event could not be obeyed")
            sentence = "An unforeseen error stopped this event; the log says more, try again."
            self._refuse("event_broken", sentence, "server_error", None, event_id_of(raw))

    def _refuse(self, code: str, message: str, kind: str, param: str | None, event_id: str | None) -> None:
        sentence = self._in_words(code, message)
        self._outbox.put(events.error(code, sentence, kind=kind, param=param, event_id=event_id))

    def _in_words(self, code: str, message: str) -> str:
        return self._phrase(code, message, self._opened.language)


def said_before(session: ChatSession) -> list[Event]:
    """Who said what in the turns so far; of a reply that was cut, what was heard of it."""
    items: list[Event] = []
    for turn in session.turns:
        if turn.transcript:
            items.append({"role": "user", "text": turn.transcript})
        reply = turn.reply
        if turn.heard_seconds is not None:
            reply = heard_text([(clause.text, clause.seconds) for clause in turn.clauses], turn.heard_seconds)
        if reply.strip():
            items.append({"role": "assistant", "text": reply.strip()})
    return items


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel `tasks`, wait for them, and log what went wrong in them."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            log.error("a connection broke", exc_info=result)
