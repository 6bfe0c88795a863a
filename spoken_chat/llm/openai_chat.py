"""The language model behind any OpenAI-compatible server, streamed with the official client.

The client builds, sends and checks the request; the stream's bytes are read here rather than by its typed objects,
so that a stamp is taken when the bytes arrive and so that it is known whether the stream was finished or cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final, TypeVar, cast

import httpx2
import openai

from spoken_chat.errors import ChatError
from spoken_chat.images import PATCH
from spoken_chat.llm import ChatEvent, Message, RequestSent, StreamEnd, TextDelta, Usage
from spoken_chat.llm.address import is_loopback, normalise_base_url, server_root, shown_address
from spoken_chat.llm.cached_prefix import CachedPrefixes
from spoken_chat.llm.chunks import Chunk, ReplyText, error_object, parse_chunk, parse_usage
from spoken_chat.llm.dialect import Dialect, ModelInfo, model_info
from spoken_chat.llm.faults import Faults
from spoken_chat.llm.prompt_size import PromptSizes
from spoken_chat.llm.sse import EventReader
from spoken_chat.settings import Settings

T = TypeVar("T")

READ_ONLY: Final = {"stream": False, "temperature": 0, "add_generation_prompt": False}
"""Of a request that is made for the cache alone."""

_NO_KEY: Final = "EMPTY"
"""The client insists on a key; servers without one ignore it."""

_KEEP_ALIVE_S: Final = 60.0
_CONNECTIONS: Final = 100
_DRAIN_S: Final = 0.1
"""How long to wait, after the last event, for the end of the body that lets the connection be used again."""


class OpenAIChat:
    """A ChatModel on one server, over connections that stay open between turns.

    `base_url` (default: the setting) may be given with or without `/v1`. Raises ChatError for a malformed one.
    """

    def __init__(
        self, settings: Settings, *, base_url: str | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._clock = clock
        self.base_url = normalise_base_url(base_url or settings.llm_base_url)
        key = settings.llm_api_key.get_secret_value().strip()
        if not key.isascii() or not key.isprintable():
            raise ChatError("llm_key", "The key of the model server holds characters that no key has; copy it again.")
        self._faults = Faults(shown_address(self.base_url), key)
        self._served_name = ""
        self._info = ModelInfo(settings.llm_model)
        self._dialect = Dialect()
        self._reasoning_is_reply = False
        self._has_answered = False
        self._sizes = PromptSizes(settings.image_max_pixels // PATCH**2)
        self.prefixes = CachedPrefixes()
        self.last_used = time.monotonic()
        """When something was last sent to the server."""
        timeout = httpx2.Timeout(
            connect=settings.llm_connect_timeout, write=settings.llm_first_token_timeout, read=None, pool=None
        )
        self._client = openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=key or _NO_KEY,
            max_retries=0,  # a retry would hide inside TTFT
            timeout=timeout,
            http_client=httpx2.AsyncClient(
                timeout=timeout,
                limits=httpx2.Limits(
                    max_connections=_CONNECTIONS,
                    max_keepalive_connections=_CONNECTIONS,
                    keepalive_expiry=_KEEP_ALIVE_S,
                ),
                follow_redirects=True,
                trust_env=not is_loopback(self.base_url),  # a proxy of the environment cannot reach our loopback
            ),
        )

    @property
    def name(self) -> str:
        """The served model's name; empty until the server was asked, where the settings name none."""
        return self._settings.llm_model or self._served_name

    @property
    def context_tokens(self) -> int | None:
        """The context window: the setting, else what the server said when asked last; None while nobody knows."""
        return self._settings.llm_context_tokens or self._info.context_tokens

    @property
    def vision(self) -> bool | None:
        """Whether the model sees images: the setting, else what the server said or proved; None while nobody knows."""
        chosen = self._settings.llm_vision
        return self._info.vision if chosen == "auto" else chosen == "yes"

    async def connect(self) -> ModelInfo:
        """Ask the server what it serves, and so pay for the client's first call and the connection before a turn does.

        May be called again at any time, such as when speech starts, to have an open connection when it ends.
        Raises ChatError.
        """
        return await self.describe()

    async def describe(self) -> ModelInfo:
        """The model in use as `/v1/models` describes it. Raises ChatError."""
        wanted = self._settings.llm_model
        try:
            entries = await self._list_models()
        except openai.APIStatusError as error:
            if not wanted or error.status_code not in (404, 405):  # some hosted servers have no list
                raise self._faults.refused(error.status_code, error_object(error.body), wanted) from None
            entries = []
        if not wanted and not entries:
            raise self._faults.model_missing("any model", [])
        entry = next((entry for entry in entries if wanted in ("", entry["id"])), {"id": wanted})
        self._info = model_info(entry)
        self._served_name = self._info.name
        return self._info

    @property
    def reads_alone(self) -> bool:
        """Whether the server is a vLLM: that reads a prompt without beginning a reply to it, and counts tokens."""
        return self._info.vllm

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def read(self, messages: Sequence[Message]) -> Usage | None:
        """Have the server read `messages`, whose last one is the user's and still empty, so that its cache holds them.

        vLLM keeps the state of a prompt at its end, rounded down to the match unit. So there the prompt ends where the
        user's words will come; it is not opened for a reply, which would end it beyond. Elsewhere the first token is
        waited for. The server's counts; None where it gave none. Raises ChatError.
        """
        if not self.reads_alone:
            async with aclosing(self.stream(messages)) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        break
            return None
        self.last_used = time.monotonic()
        body = {**self._body(messages), "max_tokens": 1, **READ_ONLY}
        del body["stream_options"]
        usage = parse_usage((await self._ask("/chat/completions", body)).get("usage"))
        if usage is not None and usage.prompt_tokens is not None:
            self._sizes.remember(messages[:-1], usage.prompt_tokens)
        return usage

    async def count(self, messages: Sequence[Message], *, opened: bool = True) -> int:
        """Tokens of `messages` as a vLLM server counts them, images as the most they can be. Raises ChatError.

        `opened`: with the opening of the reply, as a request has it.
        """
        body = {**self._body(messages), "add_generation_prompt": opened}
        asked = {name: body[name] for name in ("model", "messages", "add_generation_prompt")}
        asked["chat_template_kwargs"] = body.get("chat_template_kwargs", {})
        answer = await self._ask(f"{server_root(self.base_url)}/tokenize", asked)
        if not isinstance(answer.get("count"), int):
            raise self._faults.malformed("count of tokens")
        return int(answer["count"]) + self._sizes.images(messages)

    async def stream(self, messages: Sequence[Message]) -> AsyncGenerator[ChatEvent, None]:
        """Send `messages`, yield RequestSent, the TextDeltas, then StreamEnd; see ChatModel.

        Raises ChatError, also after some text was yielded.
        """
        model = self.name or (await self.describe()).name
        await self._check_fits(messages)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.llm_first_token_timeout
        believed = self._reasoning_is_reply
        reply = ReplyText(believed)
        finish_reason: str | None = None
        usage: Usage | None = None
        started = done = False
        sent_at = at = self._clock()
        sending = loop.create_task(self._send(model, messages))
        try:
            yield RequestSent(sent_at)
            response = await self._before(deadline, sending, started)
            received = response.aiter_bytes()
            events = EventReader()
            while not done and (data := await self._before(deadline, anext(received, b""), started)):
                at = self._clock()
                progressed = False
                for payload in events.feed(data):
                    if payload.startswith("[DONE]"):
                        done = True
                        break
                    chunk = self._read(payload, model)
                    finish_reason = chunk.finish_reason or finish_reason
                    usage = chunk.usage or usage
                    progressed = progressed or bool(chunk.content or chunk.reasoning)
                    for delta in reply.feed(chunk, at):
                        yield delta
                if progressed:
                    started = True
                    deadline = loop.time() + self._settings.llm_token_timeout
            if not done and finish_reason is None:
                raise self._faults.dropped()
            await _drain(received)
            for delta in reply.finish(at, finish_reason):
                yield delta
            if not reply.spoke:
                raise self._faults.empty()
            yield StreamEnd(at, self._known(messages, usage), finish_reason)
        except ChatError as error:
            if error.code == "llm_no_vision":
                self._info = replace(self._info, vision=False)
            raise
        finally:
            if reply.reasoning_is_reply != believed:
                self._reasoning_is_reply = reply.reasoning_is_reply
            await _close(sending)

    async def _send(self, model: str, messages: Sequence[Message]) -> httpx2.Response:
        """Send the request; the response once its headers are in, its body unread. Raises ChatError."""
        resent = False
        while True:
            try:
                response = await self._post(model, messages)
            except openai.APIStatusError as error:
                body = error_object(error.body)
                if not self._dialect.adapt(error.status_code, str(error.body)):
                    raise await self._refused(error.status_code, body, model) from None
            except openai.APIConnectionError as error:
                # A server may close an idle connection in the very moment we use it. The time this costs stays in TTFT.
                cut = isinstance(error.__cause__, httpx2.NetworkError | httpx2.RemoteProtocolError)
                if resent or not self._has_answered or not cut or isinstance(error.__cause__, httpx2.ConnectError):
                    raise self._faults.unreachable(error) from error
                resent = True
            else:
                self._has_answered = True
                await self._check_kind(response, model)
                return response

    async def _post(self, model: str, messages: Sequence[Message]) -> httpx2.Response:
        """One request, with the client's own errors.

        Through `post`, the client's way for requests it has no method for: `chat.completions.create` walks every
        message through its type annotations, which costs more than all else it does and grows with the history.
        """
        body = {**self._body(messages), "model": model}
        self.last_used = time.monotonic()
        answer: object = await self._client.post(
            "/chat/completions",
            cast_to=httpx2.Response,
            body=body,
            options={"headers": {"Accept-Encoding": "identity"}},  # compression would hold tokens back
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )
        return cast(httpx2.Response, answer)

    def _body(self, messages: Sequence[Message]) -> dict[str, Any]:
        """A request for a streamed reply to `messages`, their prefix padded where this server needs that."""
        return {
            "model": self.name,
            "messages": self.prefixes.padded(messages),
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": self._settings.llm_temperature,
            **self._dialect.fields(self._settings.llm_max_tokens),
        }

    async def _check_fits(self, messages: Sequence[Message]) -> None:
        """Raise the ChatError of a prompt that leaves no room for the reply, before the server sees it.

        Asked of a vLLM server, which counts; and only where the prompt's bytes do not already show that it fits.
        """
        window = self.context_tokens
        if not self.reads_alone or window is None:
            return
        room = window - self._settings.llm_max_tokens
        if self._sizes.bound(messages) <= room:
            return
        tokens = await self.count(messages)
        if tokens > room:
            raise self._faults.too_long(tokens, room)
        self._sizes.remember(messages, tokens)

    def _known(self, messages: Sequence[Message], usage: Usage | None) -> Usage | None:
        """`usage` with what a warm cache would hold of the prefix; what the server counted is remembered."""
        if usage is None:
            return None
        if usage.prompt_tokens is not None:
            self._sizes.remember(messages, usage.prompt_tokens)
        return self.prefixes.noted(messages, usage)

    async def _ask(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """A small question beside the streams; the answer's JSON object. Raises ChatError."""
        try:
            async with asyncio.timeout(self._settings.llm_first_token_timeout):
                response = await self._client.post(path, cast_to=httpx2.Response, body=dict(body))
            answer = response.json()
        except TimeoutError:
            raise self._faults.timeout(self._settings.llm_first_token_timeout) from None
        except openai.APIStatusError as error:
            raise await self._refused(error.status_code, error_object(error.body), self.name) from None
        except openai.APIConnectionError as error:
            raise self._faults.unreachable(error) from error
        except ValueError as error:
            raise self._faults.malformed("answer") from error
        if not isinstance(answer, dict):
            raise self._faults.malformed("answer")
        return answer

    async def _before(self, deadline: float, step: Awaitable[T], started: bool) -> T:
        """The result of one step of a stream. Raises ChatError when it fails or is not there by `deadline`."""
        try:
            async with asyncio.timeout_at(deadline):
                return await step
        except TimeoutError:
            if started:
                raise self._faults.stalled(self._settings.llm_token_timeout) from None
            raise self._faults.timeout(self._settings.llm_first_token_timeout) from None
        except httpx2.RequestError as error:
            raise self._faults.dropped() from error

    def _read(self, payload: str, model: str) -> Chunk:
        """One event read. Raises ChatError for a malformed one, and for the server's own error."""
        try:
            chunk = parse_chunk(payload)
        except ValueError as error:
            raise self._faults.malformed(f"event {payload}") from error
        if chunk.error is not None:
            code = chunk.error.get("code")
            status = code if isinstance(code, int) and 400 <= code <= 599 else 500
            raise self._faults.refused(status, chunk.error, model)
        return chunk

    async def _check_kind(self, response: httpx2.Response, model: str) -> None:
        """Refuse a successful answer that is a page or one JSON document instead of a stream."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if kind not in ("application/json", "text/html"):
            return
        body = (await response.aread()).decode("utf-8", "replace")
        if kind == "application/json":
            self._read(body, model)
        raise self._faults.malformed(f"{kind} in place of an event stream")

    async def _refused(self, status: int, body: object, model: str) -> ChatError:
        """The error for an error answer; a 404 is told from the server's list of models."""
        if status != 404:
            return self._faults.refused(status, body, model)
        self._served_name = ""  # the server may have been restarted with another model
        try:
            served = [str(entry["id"]) for entry in await self._list_models()]
        except (ChatError, openai.APIStatusError):
            return self._faults.refused(status, body, model)
        return self._faults.refused(status, body, model, served)

    async def _list_models(self) -> list[dict[str, Any]]:
        """The entries of `/v1/models`. Raises ChatError, and openai.APIStatusError for an error answer."""
        try:
            async with asyncio.timeout(self._settings.llm_first_token_timeout):
                response = await self._client.get("/models", cast_to=httpx2.Response)
            document = response.json()
        except TimeoutError:
            raise self._faults.timeout(self._settings.llm_first_token_timeout) from None
        except openai.APIConnectionError as error:
            raise self._faults.unreachable(error) from error
        except ValueError as error:
            raise self._faults.malformed("list of models") from error
        entries = document.get("data") if isinstance(document, dict) else None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) and "id" in entry for entry in entries):
            raise self._faults.malformed("list of models")
        return entries


async def _drain(received: AsyncIterator[bytes]) -> None:
    """Read to the end of the body, so that the connection can be used again; give up soon."""
    with contextlib.suppress(TimeoutError, httpx2.RequestError):
        async with asyncio.timeout(_DRAIN_S):
            async for _ in received:
                continue


async def _close(sending: asyncio.Task[httpx2.Response]) -> None:
    """Close the HTTP stream, whether its request is still being sent or its answer was begun."""
    if not sending.done():
        sending.cancel()
        await asyncio.wait([sending])
    if not sending.cancelled() and sending.exception() is None:
        await sending.result().aclose()
