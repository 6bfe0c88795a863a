"""The route `/v1/realtime`."""

from __future__ import annotations

from contextlib import suppress

from fastapi import FastAPI
from starlette.websockets import WebSocket, WebSocketDisconnect

from spoken_chat.errors import ChatError
from spoken_chat.realtime import events
from spoken_chat.realtime.auth import admit
from spoken_chat.realtime.connection import POLICY, Connection, Phrase
from spoken_chat.realtime.lines import Lines
from spoken_chat.realtime.outbox import CLOSE_S, Outbox
from spoken_chat.settings import Settings
from spoken_chat.talk.registry import TalkRegistry

SUBPROTOCOL = "realtime"
"""What clients in browsers offer; a connection that takes none of what is offered fails there."""


def in_english(_: str, message: str, __: str) -> str:
    """The sentence as it is."""
    return message


def add_realtime(app: FastAPI, registry: TalkRegistry, settings: Settings, phrase: Phrase = in_english) -> None:
    """Serve `/v1/realtime` on `app`; call it before the page is mounted at `/`.

    `phrase` puts a fault or notice (its code and English sentence) into a page's language.
    """
    lines = Lines()

    @app.websocket("/v1/realtime")
    async def realtime(websocket: WebSocket) -> None:
        """One client's connection, from its admission to its end."""
        offered = websocket.scope.get("subprotocols", [])
        with suppress(WebSocketDisconnect):
            await websocket.accept(subprotocol=SUBPROTOCOL if SUBPROTOCOL in offered else None)
            try:
                opened = admit(websocket.headers, websocket.query_params.get("token"), settings, registry)
            except ChatError as error:
                await _refuse(websocket, error)
                return
            own_events = opened is not None
            if opened is None:
                opened = registry.open()
            connection = Connection(
                websocket, opened, registry, settings, lines.of(opened), phrase, own_events=own_events
            )
            await connection.run()


async def _refuse(websocket: WebSocket, error: ChatError) -> None:
    outbox = Outbox(websocket.send_text, websocket.close, stalled_s=CLOSE_S)
    outbox.put(events.error(error.code, error.message, kind="invalid_request_error"))
    outbox.finish(POLICY, error.code)
    await outbox.run()
