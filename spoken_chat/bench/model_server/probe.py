"""One server as the measurements use it: timed replies over a raw socket, and its small questions beside them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

import httpx2

from spoken_chat.bench.raw_http import RawClient, RawTimes
from spoken_chat.llm.address import server_root
from spoken_chat.llm.openai_chat import READ_ONLY
from spoken_chat.server.metrics import ask_metrics

NO_THINKING: Final = {"chat_template_kwargs": {"enable_thinking": False}}

FORCED: Final = 24
"""Tokens of every timed reply: weights of noise never stop by themselves."""


class Probe:
    """A server at `base_url` serving `model`."""

    def __init__(self, base_url: str, model: str) -> None:
        self.base_url = base_url
        self.model = model
        self.raw = RawClient(base_url, model)
        self._root = server_root(base_url)
        self._http = httpx2.AsyncClient(timeout=120.0, trust_env=False)

    async def close(self) -> None:
        """Close every connection."""
        await self.raw.close()
        await self._http.aclose()

    async def reply(self, messages: Sequence[dict[str, Any]], tokens: int = FORCED, **fields: Any) -> RawTimes:
        """A chat reply of exactly `tokens` tokens, greedy, thinking off."""
        return await self.raw.reply(messages, **_forced(tokens), **NO_THINKING, **fields)

    async def complete(self, prompt: Sequence[int], tokens: int = FORCED) -> RawTimes:
        """The same of a prompt in token ids."""
        return await self.raw.complete(prompt, **_forced(tokens))

    async def tokens(self, messages: Sequence[dict[str, Any]]) -> list[int]:
        """The token ids of a chat prompt."""
        body = {"model": self.model, "messages": list(messages), **NO_THINKING}
        answer = await self._http.post(f"{self._root}/tokenize", json=body)
        answer.raise_for_status()
        found: list[int] = answer.json()["tokens"]
        return found

    async def read_ahead(self, messages: Sequence[dict[str, Any]]) -> float:
        """Have the server read a chat up to where the user's words will come, as the app does; ms that it took."""
        started = time.monotonic()
        body = {"model": self.model, "messages": list(messages), "max_tokens": 1, **READ_ONLY, **NO_THINKING}
        (await self._http.post(f"{self.base_url}/chat/completions", json=body)).raise_for_status()
        return (time.monotonic() - started) * 1000

    async def read(self, prompt: Sequence[int]) -> None:
        """Have the server read `prompt`, so that its cache holds it."""
        body = {"model": self.model, "prompt": list(prompt), "max_tokens": 1, "temperature": 0}
        (await self._http.post(f"{self.base_url}/completions", json=body)).raise_for_status()

    async def running(self) -> int:
        """Requests that the server works on now, by its own metrics."""
        found = await ask_metrics(self._http, self._root)
        if found is None or found.running is None:
            raise ValueError("the server does not say how many requests it runs")
        return found.running

    async def refused(self) -> float:
        """Chat requests that the server has answered with 4xx so far."""
        text = (await self._http.get(f"{self._root}/metrics")).text
        lines = [line for line in text.splitlines() if line.startswith("http_requests_total{") and '"4xx"' in line]
        return sum(float(line.rpartition(" ")[2]) for line in lines if "/chat/completions" in line)

    async def freed_after(self, messages: Sequence[dict[str, Any]]) -> tuple[float, int]:
        """Start a long reply, close it after its first words; (ms until the slot was free, running before)."""
        one = RawClient(self.base_url, self.model)
        task = asyncio.create_task(one.reply(messages, **_forced(2000), **NO_THINKING))
        before, deadline = 0, time.monotonic() + 10
        while not before and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
            before = await self.running()
        task.cancel()
        await asyncio.wait([task])
        closed = time.monotonic()
        await one.close()
        while await self.running() and time.monotonic() < closed + 10:  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(0.005)
        return (time.monotonic() - closed) * 1000, before


def _forced(tokens: int) -> dict[str, Any]:
    return {"max_tokens": tokens, "min_tokens": tokens, "ignore_eos": True, "temperature": 0}
