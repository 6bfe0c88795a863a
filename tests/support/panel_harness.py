"""The voice panel alone: a page that treats it as gr.HTML does, and a scripted server behind its WebSocket.

The server records every event the panel sends, and sends what a test tells it to.
"""

from __future__ import annotations

import base64
import json
import mimetypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import numpy as np
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from spoken_chat.audio.pcm import wav_bytes
from spoken_chat.settings import ROOT
from spoken_chat.ui.panel import panel_words, voice_panel

Event = dict[str, Any]

TOKEN: Final = "token-of-the-page"
WAIT_S: Final = 15.0
RATE: Final = 24_000

PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="talk.css">
<style>
body { margin: 0; font: 16px system-ui, sans-serif; background: #f8fafc;
  --body-text-color: #1e293b; --body-text-color-subdued: #64748b; --border-color-primary: #e2e8f0;
  --block-background-fill: #fff; --input-background-fill: #fff; }
body.dark { background: #0b0f19; --body-text-color: #f1f5f9; --body-text-color-subdued: #94a3b8;
  --border-color-primary: #334155; --block-background-fill: #1e293b; --input-background-fill: #172033; }
main { max-width: 760px; margin: 0 auto; padding: 8px; }
</style></head><body><main><div id="panel"></div></main>
<script>
document.body.classList.toggle("dark", matchMedia("(prefers-color-scheme: dark)").matches);
const given = GIVEN;
const element = document.querySelector("#panel");
element.innerHTML = given.template;
const watchers = [];
const props = { value: given.value };
window.harness = { triggered: [], set(value) { props.value = value; watchers.forEach((act) => act()); } };
const watch = (_, act) => watchers.push(act);
const trigger = (name) => window.harness.triggered.push(name);
new Function("element", "props", "watch", "trigger", given.script)(element, props, watch, trigger);
</script></body></html>
"""


def panel_json(**changes: Any) -> str:
    """The panel's value as the page would set it, with `changes`."""
    value = {
        "token": TOKEN,
        "language": "en",
        "words": panel_words(changes.get("language", "en")),
        "ready": True,
        "detection": "adaptive",
        "conversation": "a.0",
        "limits": {"image_max_bytes": 2_000_000, "text_max_chars": 200},
    }
    return json.dumps({**value, **changes})


def session(turn_detection: Event | None) -> Event:
    """The part of a session that the panel reads."""
    return {"type": "realtime", "audio": {"input": {"turn_detection": turn_detection}}}


SEMANTIC: Final = {"type": "semantic_vad", "eagerness": "auto", "create_response": True, "interrupt_response": True}


class PanelServer:
    """What the test sees of the panel's wire."""

    def __init__(self) -> None:
        self.url = ""
        self.value = panel_json()
        self.greeting: list[Event] = [{"type": "session.created", "session": session(SEMANTIC)}]
        self.refuse: tuple[int, list[Event]] | None = None
        """Close each new connection with that code, after those events."""
        self.reachable = True
        """False: the handshake fails."""
        self.answers: Callable[[Event], list[Event]] = lambda _: []
        """What is sent back to an event."""
        self.tokens: list[str] = []
        self._received: list[Event] = []
        self._changed = threading.Condition()
        self._connection: ServerConnection | None = None

    @property
    def events(self) -> list[Event]:
        """Everything the panel sent so far but its sound."""
        with self._changed:
            return [event for event in self._received if event["type"] != "input_audio_buffer.append"]

    @property
    def types(self) -> list[str]:
        """The types of `events`."""
        return [event["type"] for event in self.events]

    def sound(self) -> np.ndarray[Any, np.dtype[np.int16]]:
        """All microphone sound so far."""
        with self._changed:
            chunks = [event["audio"] for event in self._received if event["type"] == "input_audio_buffer.append"]
        return np.frombuffer(b"".join(base64.b64decode(chunk) for chunk in chunks), np.int16)

    def wait(self, kind: str, count: int = 1) -> Event:
        """The `count`-th event of that type, once it has come."""

        def found() -> list[Event]:
            return [event for event in self._received if event["type"] == kind]

        with self._changed:
            if not self._changed.wait_for(lambda: len(found()) >= count, WAIT_S):
                raise AssertionError(f"the panel sent no {kind}; it sent {[one['type'] for one in self._received]}")
            return found()[count - 1]

    def wait_connected(self, count: int = 1) -> None:
        """Until the panel has connected that many times."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.tokens) >= count, WAIT_S), "the panel did not connect"

    def forget(self) -> None:
        """Start a new record of what the panel sends."""
        with self._changed:
            self._received.clear()

    def send(self, *events: Event) -> None:
        """Send events to the panel."""
        assert self._connection is not None
        for event in events:
            self._connection.send(json.dumps(event))

    def drop(self, code: int = 1011) -> None:
        """End the connection."""
        assert self._connection is not None
        self._connection.close(code)

    def hold(self, connection: ServerConnection) -> None:
        """Serve one connection until it ends."""
        query = parse_qs(urlsplit(connection.request.path if connection.request else "").query)
        try:
            if self.refuse is not None:
                code, last_words = self.refuse
                for event in last_words:
                    connection.send(json.dumps(event))
                connection.close(code)
                return
            for event in self.greeting:
                connection.send(json.dumps(event))
            with self._changed:
                self._connection = connection
                self.tokens += query.get("token", [""])
                self._changed.notify_all()
            for message in connection:
                event = json.loads(message)
                with self._changed:
                    self._received.append(event)
                    self._changed.notify_all()
                for answer in self.answers(event):
                    connection.send(json.dumps(answer))
        except ConnectionClosed:
            return

    def answer_http(self, _: ServerConnection, request: Request) -> Response | None:
        """The page and its files; None lets a WebSocket through."""
        path = urlsplit(request.path).path
        if path == "/v1/realtime":
            return None if self.reachable else _file(b"", "text/plain", HTTPStatus.SERVICE_UNAVAILABLE)
        if path == "/":
            panel = voice_panel()
            given = {"template": panel.html_template, "script": panel.js_on_load, "value": self.value}
            page = PAGE.replace("GIVEN", json.dumps(given).replace("</", "<\\/"))
            return _file(page.encode(), "text/html; charset=utf-8")
        place = ROOT / "assets" / path.lstrip("/").replace("talk-assets/", "talk/")
        if place.is_file():
            return _file(place.read_bytes(), mimetypes.guess_type(place.name)[0] or "text/plain")
        return _file(b"", "text/plain", HTTPStatus.NOT_FOUND)


@contextmanager
def panel_server() -> Iterator[PanelServer]:
    """Serves on a free loopback port until the block ends."""
    script = PanelServer()
    with serve(script.hold, "127.0.0.1", 0, process_request=script.answer_http, max_size=None) as server:
        script.url = f"http://127.0.0.1:{server.socket.getsockname()[1]}/"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield script
        finally:
            server.shutdown()
            thread.join(10)


def tone(frequency: float, seconds: float, level: float = 0.3) -> np.ndarray[Any, np.dtype[np.int16]]:
    """A sine at the wire's rate."""
    return (np.sin(2 * np.pi * frequency * np.arange(int(seconds * RATE)) / RATE) * level * 32767).astype(np.int16)


def delta(response: str, pcm: np.ndarray[Any, np.dtype[np.int16]]) -> Event:
    """More of a reply's sound."""
    return {
        "type": "response.output_audio.delta",
        "response_id": response,
        "item_id": f"item_of_{response}",
        "delta": base64.b64encode(pcm.tobytes()).decode(),
    }


def turn_started(name: str, kind: str = "typed", item: str | None = None, speech_end_ms: int | None = None) -> Event:
    """The turn `turn_NAME` runs; its reply is `resp_NAME`."""
    event: Event = {
        "type": "turn.started",
        "turn_id": f"turn_{name}",
        "kind": kind,
        "item_id": item or f"item_{name}",
        "response_id": f"resp_{name}",
    }
    return event if speech_end_ms is None else {**event, "speech_end_ms": speech_end_ms}


def words(response: str, text: str) -> Event:
    """More of a reply's words."""
    return {"type": "response.output_audio_transcript.delta", "response_id": response, "delta": text}


def done(response: str, status: str = "completed") -> Event:
    """The reply was made whole, or stopped."""
    return {"type": "response.done", "response": {"id": response, "status": status}}


def failed(response: str, code: str, message: str) -> Event:
    details = {"type": "failed", "error": {"type": "server_error", "code": code, "message": message}}
    return {
        "type": "response.done",
        "response": {"id": response, "status": "failed", "status_details": details, "output": []},
    }


def turn_event(kind: str, name: str, marks: dict[str, float], figures: dict[str, str], **about: Any) -> Event:
    """turn.progress or turn.timeline."""
    record = {"id": f"turn_{name}", "kind": "hands_free", "marks": marks, "speculation": "hit", "order": "first"}
    return {"type": kind, "turn": {**record, "interrupted": False, "reopened": 0, **about}, "figures": figures}


def _file(content: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
    headers = Headers({"Content-Type": kind, "Content-Length": str(len(content)), "Connection": "close"})
    return Response(status, status.phrase, headers, content)


def wav(path: Path, pcm: np.ndarray[Any, np.dtype[np.int16]], rate: int) -> Path:
    """A file for Chromium's microphone."""
    path.write_bytes(wav_bytes(pcm, rate))
    return path
