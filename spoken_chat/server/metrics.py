"""What a vLLM server tells of itself under `/metrics` and `/version`; other engines tell less or nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import httpx2
from prometheus_client.parser import text_string_to_metric_families

_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True)
class ServerNumbers:
    """Counters since the server's start, and what it does now. None where it does not say.

    Tokens of prompts that were looked up in the prefix cache and found there; requests running and waiting; tokens
    that the MTP head drafted and the model accepted; the cache's size, block and match unit in tokens.
    """

    prefix_queries: int | None = None
    prefix_hits: int | None = None
    running: int | None = None
    waiting: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    kv_tokens: int | None = None
    block_tokens: int | None = None
    match_unit: int | None = None


_COUNTS: Final = {
    "vllm:prefix_cache_queries_total": "prefix_queries",
    "vllm:prefix_cache_hits_total": "prefix_hits",
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:spec_decode_num_draft_tokens_total": "drafted",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted",
}
"""Sample name to field; several engines behind one server add up."""

_LABELS: Final = {"kv_cache_size_tokens": "kv_tokens", "block_size": "block_tokens", "prefix_match_unit": "match_unit"}
"""Labels of `vllm:cache_config_info`, which is how vLLM tells its configuration."""


def parse_metrics(text: str) -> ServerNumbers | None:
    """The numbers in the text of `/metrics`; None where it is not a vLLM server's. Raises ValueError for other text."""
    found: dict[str, int] = {}
    known = False
    for family in text_string_to_metric_families(text):
        known = known or family.name.startswith("vllm:")
        for sample in family.samples:
            if sample.name in _COUNTS and math.isfinite(sample.value):
                name = _COUNTS[sample.name]
                found[name] = found.get(name, 0) + int(sample.value)
            elif sample.name == "vllm:cache_config_info":
                found |= {
                    name: int(sample.labels[label])
                    for label, name in _LABELS.items()
                    if sample.labels.get(label, "").isdigit()
                }
    return ServerNumbers(**found) if known else None


async def ask_metrics(client: httpx2.AsyncClient, root: str) -> ServerNumbers | None:
    """The numbers of the server at `root`; None where it tells none or cannot be reached."""
    try:
        answer = await client.get(f"{root}/metrics", timeout=_TIMEOUT_S)
        return parse_metrics(answer.text) if answer.status_code == 200 else None
    except (httpx2.HTTPError, ValueError):
        return None


async def ask_version(client: httpx2.AsyncClient, root: str) -> str | None:
    """The server's version; None where it tells none or cannot be reached."""
    try:
        answer = await client.get(f"{root}/version", timeout=_TIMEOUT_S)
        version = answer.json().get("version") if answer.status_code == 200 else None
    except (httpx2.HTTPError, ValueError, AttributeError):
        return None
    return version if isinstance(version, str) else None
