"""An OpenAI-compatible server that answers by script: each piece of an answer leaves at a set time.

For `bench overhead`, which needs a server whose timing is known, and for tests, which need its faults. Pieces are
scheduled against the moment the request was read, not against each other, so delays do not add up. Run
`python -m spoken_chat.bench.scripted_server` (see `ServerProcess`) to keep its work out of the measured process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import selectors
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import Any, Final

MODEL: Final = "scripted"
_REASONS: Final = {200: "OK"}
_WORDS: Final = (" We", " had", " some", " rain", " again", " today.")


class Ending(Enum):
    """How an answer ends once its pieces are sent."""

    COMPLETE = "the body is finished properly"
    DROP = "the connection is closed in the middle of the body"
    HANG = "nothing more is sent and the connection stays open"


@dataclass(frozen=True)
class Piece:
    """Bytes of the body that leave `at` seconds after the request was read."""

    data: bytes
    at: float = 0.0


@dataclass(frozen=True)
class Answer:
    """One scripted answer. With `headers_at` None not even the status line is sent."""

    pieces: tuple[Piece, ...] = ()
    status: int = 200
    content_type: str = "text/event-stream"
    ending: Ending = Ending.COMPLETE
    headers_at: float | None = 0.0


@dataclass(eq=False)
class Request:
    """A request as received, and what became of it."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    connection: int
    received_at: float = 0.0
    """By the event loop's clock, in seconds, as is `lost_at`."""
    lost_at: float | None = None
    """When the client went away before the answer was complete."""
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client went away before the answer was complete."""
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the answer was sent to its end."""
    raw: bytes = b""
    """The body as it came."""


def event(data: Mapping[str, Any]) -> bytes:
    """`data` as one server-sent event."""
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def delta(text: str | None = None, *, finish: str | None = None, **fields: Any) -> bytes:
    """One chat completion chunk; `fields` are further fields of its delta, such as `reasoning`."""
    content = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": {**content, **fields}, "finish_reason": finish}
    return event({"id": "scripted", "object": "chat.completion.chunk", "model": MODEL, "choices": [choice]})


def usage_event(prompt_tokens: int, completion_tokens: int, cached_tokens: int | None = None) -> bytes:
    """The last chunk with the token counts; no `prompt_tokens_details` when `cached_tokens` is None."""
    details = {} if cached_tokens is None else {"prompt_tokens_details": {"cached_tokens": cached_tokens}}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens, **details}
    return event({"id": "scripted", "object": "chat.completion.chunk", "model": MODEL, "choices": [], "usage": usage})


DONE: Final = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Schedule:
    """A reply at fixed times: the first chunk after `first_ms`, then one token every `step_ms`.

    The words are those of `text`, over and over, where it is given. With `per_chunk` above 1 (multi-token prediction) a
    chunk leaves when its last token is due, the first one still after `first_ms`.
    """

    tokens: int = 24
    first_ms: float = 25.0
    step_ms: float = 4.0
    per_chunk: int = 1
    prompt_tokens: int = 1212
    cached_tokens: int = 1200
    text: str = ""

    @property
    def chunks(self) -> int:
        """How many chunks carry text."""
        return -(-self.tokens // self.per_chunk)

    @property
    def ms_per_token(self) -> float:
        """The ms/token that a perfect client measures. Raises ZeroDivisionError for one token."""
        return (self.chunks - 1) * self.per_chunk * self.step_ms / (self.tokens - 1)

    def answer(self) -> Answer:
        """The script of this reply."""
        pieces = [Piece(delta("", role="assistant"))]
        due = 0.0
        known = re.findall(r"\s*\S+", self.text) or _WORDS
        for chunk in range(self.chunks):
            due = (self.first_ms + chunk * self.per_chunk * self.step_ms) / 1000
            first = chunk * self.per_chunk
            words = [known[token % len(known)] for token in range(first, min(first + self.per_chunk, self.tokens))]
            pieces.append(Piece(delta("".join(words)), due))
        end = delta(finish="stop") + usage_event(self.prompt_tokens, self.tokens, self.cached_tokens) + DONE
        return Answer((*pieces, Piece(end, due)))


def json_answer(data: Any, status: int = 200) -> Answer:
    """An answer that is one JSON document."""
    return Answer((Piece(json.dumps(data).encode()),), status=status, content_type="application/json")


def model_list(*models: Mapping[str, Any]) -> Answer:
    """What `/v1/models` answers."""
    return json_answer({"object": "list", "data": [{"object": "model", **model} for model in models]})


class ScriptedServer:
    """Serves `/v1/chat/completions` by script, `/v1/models` and `/v1/lost`, on a free loopback port.

    `answer(...)` sets what the coming chat requests get: one answer each, the last one for all that follow.
    `/v1/lost` lists the requests whose client went away, as [received_at, lost_at].
    """

    def __init__(self, *answers: Answer, models: Answer | None = None) -> None:
        self.requests: list[Request] = []
        """Every request so far, also those for the model list."""
        self.connections = 0
        self.models = models or model_list({"id": MODEL, "owned_by": "scripted", "max_model_len": 4096})
        self.others: dict[str, Callable[[Request], Answer | None]] = {}
        """What other paths answer, by path; None leaves a request to what is served without it."""
        self._answers = list(answers) or [Schedule().answer()]
        self._arrived = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._open: set[_Connection] = set()

    @property
    def base_url(self) -> str:
        """Such as `http://127.0.0.1:40123/v1`."""
        assert self._server is not None, "not started"
        host, port = self._server.sockets[0].getsockname()
        return f"http://{host}:{port}/v1"

    @property
    def chats(self) -> list[Request]:
        """The chat requests so far."""
        return [request for request in self.requests if request.path.endswith("/chat/completions")]

    def answer(self, *answers: Answer) -> None:
        """Answer the coming chat requests with `answers`, one each, the last one for all that follow."""
        self._answers = list(answers)

    async def chat(self, number: int = 0) -> Request:
        """The chat request `number`, once it has arrived."""
        while len(self.chats) <= number:
            self._arrived.clear()
            await self._arrived.wait()
        return self.chats[number]

    async def start(self, port: int = 0) -> None:
        """Listen on loopback."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port)

    async def stop(self) -> None:
        """Close the port and every connection."""
        if self._server is not None:
            self._server.close()
            for connection in list(self._open):
                connection.abort()
            await self._server.wait_closed()

    async def __aenter__(self) -> ScriptedServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def opened(self, connection: _Connection) -> int:
        """Count a new connection; its number from 0."""
        self._open.add(connection)
        self.connections += 1
        return self.connections - 1

    def closed(self, connection: _Connection) -> None:
        """Forget a connection."""
        self._open.discard(connection)

    def received(self, request: Request) -> Answer:
        """Record `request` and choose its answer."""
        self.requests.append(request)
        self._arrived.set()
        if request.path in self.others and (answer := self.others[request.path](request)) is not None:
            return answer
        if request.path.endswith("/models"):
            return self.models
        if request.path.endswith("/lost"):
            return json_answer([[chat.received_at, chat.lost_at] for chat in self.chats if chat.lost_at is not None])
        if not request.path.endswith("/chat/completions"):
            return json_answer({"error": {"message": "Not Found", "code": 404}}, status=404)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class _Connection(asyncio.Protocol):
    """One HTTP/1.1 connection that is kept alive between requests."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._buffer = b""
        self._request: Request | None = None
        self._answering: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport
        self._number: int

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._number = self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._server.closed(self)
        if self._request is not None:
            self._request.lost_at = asyncio.get_running_loop().time()
            self._request.disconnected.set()
        if self._answering is not None:
            self._answering.cancel()

    def abort(self) -> None:
        """Close the connection at once, mid-answer or not."""
        if self._answering is not None:
            self._answering.cancel()
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        due = asyncio.get_running_loop().time()
        self._buffer += data
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        body, self._buffer = rest[:length], rest[length:]
        method, path, _ = first.split(" ")
        self._request = Request(method, path, headers, json.loads(body) if body else None, self._number, due, raw=body)
        answer = self._server.received(self._request)
        self._answering = asyncio.get_running_loop().create_task(self._play(self._request, answer, due))

    async def _play(self, request: Request, answer: Answer, start: float) -> None:
        if answer.headers_at is not None:
            await _sleep_until(start + answer.headers_at)
            reason = _REASONS.get(answer.status, "Scripted")
            self._transport.write(
                f"HTTP/1.1 {answer.status} {reason}\r\ncontent-type: {answer.content_type}\r\n"
                "transfer-encoding: chunked\r\n\r\n".encode()
            )
        for piece in answer.pieces:
            await _sleep_until(start + piece.at)
            self._transport.write(b"%x\r\n%b\r\n" % (len(piece.data), piece.data))
        if answer.ending is Ending.HANG:
            await asyncio.get_running_loop().create_future()
        self._request = None
        if answer.ending is Ending.DROP:
            self._transport.close()
        else:
            self._transport.write(b"0\r\n\r\n")
        request.finished.set()


async def _sleep_until(due: float) -> None:
    wait = due - asyncio.get_running_loop().time()
    if wait > 0:
        await asyncio.sleep(wait)


class ServerProcess:
    """A scripted server in a process of its own, which ends with this one; the context manager gives the base URL."""

    def __init__(self, schedule: Schedule) -> None:
        options = {
            "--tokens": schedule.tokens,
            "--first-ms": schedule.first_ms,
            "--step-ms": schedule.step_ms,
            "--per-chunk": schedule.per_chunk,
            "--text": schedule.text,
        }
        arguments = [str(word) for option in options.items() for word in option]
        self._command = [sys.executable, "-m", __name__, *arguments]
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> str:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        assert self._process.stdout is not None
        base_url = self._process.stdout.readline().strip()
        if not base_url:
            raise RuntimeError(f"the scripted server did not start: exit status {self._process.wait()}")
        return base_url

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.communicate()


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve one schedule, print the base URL, and end when standard input is closed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=Schedule.tokens)
    parser.add_argument("--first-ms", type=float, default=Schedule.first_ms)
    parser.add_argument("--step-ms", type=float, default=Schedule.step_ms)
    parser.add_argument("--per-chunk", type=int, default=Schedule.per_chunk)
    parser.add_argument("--text", default=Schedule.text)
    options = parser.parse_args(arguments)
    schedule = Schedule(
        tokens=options.tokens,
        first_ms=options.first_ms,
        step_ms=options.step_ms,
        per_chunk=options.per_chunk,
        text=options.text,
    )
    # epoll rounds every wait up to a whole millisecond; select does not.
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())

    async def serve() -> None:
        closed = asyncio.Event()

        def watch() -> None:
            sys.stdin.read()
            loop.call_soon_threadsafe(closed.set)

        server = ScriptedServer(schedule.answer())
        await server.start(options.port)
        print(server.base_url, flush=True)
        threading.Thread(target=watch, daemon=True).start()
        await closed.wait()
        await server.stop()

    try:
        loop.run_until_complete(serve())
    finally:
        loop.close()


if __name__ == "__main__":
    main()
