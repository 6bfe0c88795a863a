"""Watches the model server while the app runs: what the page's server card and `/healthz` say of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import httpx2

from spoken_chat.llm.address import server_root
from spoken_chat.server.metrics import ServerNumbers, ask_metrics, ask_version
from spoken_chat.server.start_log import StartFacts


@dataclass(frozen=True)
class ServerCard:
    """What is known of the server. None: it does not say, or it was not measured.

    `prefix_hit_percent`: of the prompt tokens since the app began to watch, how many came from the prefix cache.
    `mtp_accepted_percent`: of the tokens that the MTP head guessed since then, how many the model took.
    `dummy_weights`: its weights are noise, so its figures say something of latency only.
    """

    model: str
    version: str | None = None
    weights_gib: float | None = None
    kv_tokens: int | None = None
    block_tokens: int | None = None
    match_unit: int | None = None
    prefix_hit_percent: float | None = None
    running: int | None = None
    waiting: int | None = None
    mtp_accepted_percent: float | None = None
    dummy_weights: bool = False

    def as_dict(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)


class ServerWatch:
    """Asks one server again and again; `card` is what it said last. `facts` are what its log told, where it is ours."""

    def __init__(self, base_url: str, model: str, facts: StartFacts, *, dummy_weights: bool = False) -> None:
        self._root = server_root(base_url)
        self._facts = facts
        self._client = httpx2.AsyncClient(trust_env=False)
        self._first: ServerNumbers | None = None
        self._last = ServerNumbers()
        self.card = ServerCard(
            model,
            weights_gib=facts.weights_gib,
            kv_tokens=facts.kv_tokens,
            block_tokens=facts.block_tokens,
            dummy_weights=dummy_weights,
        )

    async def look(self) -> ServerCard:
        """Ask now. What it no longer says becomes None, what only its log said stays."""
        if self.card.version is None:
            self.card = replace(self.card, version=await ask_version(self._client, self._root))
        now = await ask_metrics(self._client, self._root)
        self.card = self._with(now) if now is not None else replace(self.card, running=None, waiting=None)
        return self.card

    async def aclose(self) -> None:
        """Close the connection."""
        await self._client.aclose()

    def _with(self, now: ServerNumbers) -> ServerCard:
        first, card = self._first, self.card
        if first is None:
            first = self._first = now
        elif _went_back(self._last, now):
            first = self._first = now
            card = replace(card, version=None)  # it may have come back as another one: asked again at the next look
        self._last = now
        return replace(
            card,
            kv_tokens=self._facts.kv_tokens or now.kv_tokens,
            block_tokens=self._facts.block_tokens or now.block_tokens,
            match_unit=now.match_unit,
            prefix_hit_percent=_percent(first.prefix_hits, now.prefix_hits, first.prefix_queries, now.prefix_queries),
            running=now.running,
            waiting=now.waiting,
            mtp_accepted_percent=_percent(first.accepted, now.accepted, first.drafted, now.drafted),
        )


def _went_back(last: ServerNumbers, now: ServerNumbers) -> bool:
    """Whether the counters began anew: the server was restarted."""
    return (now.prefix_queries or 0) < (last.prefix_queries or 0)


def _percent(part_then: int | None, part_now: int | None, all_then: int | None, all_now: int | None) -> float | None:
    if part_then is None or part_now is None or all_then is None or all_now is None or all_now <= all_then:
        return None
    return round(100 * (part_now - part_then) / (all_now - all_then), 1)
