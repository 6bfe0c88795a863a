"""The server's card: counted from the first look, blank where nothing is known."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from spoken_chat.server.start_log import StartFacts
from spoken_chat.server.watch import ServerWatch
from tests.support.scripted_vllm import NAME, ScriptedVllm


def told(queries: int, hits: int, running: int = 0, drafted: int = 0, accepted: int = 0) -> str:
    return "".join(
        f"# TYPE vllm:{name} {kind}\nvllm:{name}{suffix} {value}\n"
        for name, kind, suffix, value in (
            ("prefix_cache_queries", "counter", "_total", queries),
            ("prefix_cache_hits", "counter", "_total", hits),
            ("num_requests_running", "gauge", "", running),
            ("num_requests_waiting", "gauge", "", 0),
            ("spec_decode_num_draft_tokens", "counter", "_total", drafted),
            ("spec_decode_num_accepted_tokens", "counter", "_total", accepted),
        )
    )


@pytest.fixture
async def server() -> AsyncIterator[ScriptedVllm]:
    async with ScriptedVllm() as server:
        yield server


@pytest.fixture
async def watch(server: ScriptedVllm) -> AsyncIterator[ServerWatch]:
    watch = ServerWatch(server.base_url, NAME, StartFacts(18.6, 113_981, 544))
    yield watch
    await watch.aclose()


async def test_rates_count_from_the_first_look_and_are_blank_before_anything_happened(
    server: ScriptedVllm, watch: ServerWatch
) -> None:
    server.metrics = told(1000, 100)
    card = await watch.look()
    assert card.prefix_hit_percent is None and card.mtp_accepted_percent is None
    server.metrics = told(1400, 400, drafted=100, accepted=56)
    card = await watch.look()
    assert (card.prefix_hit_percent, card.mtp_accepted_percent) == (75.0, 56.0)


async def test_a_restarted_server_is_counted_anew(server: ScriptedVllm, watch: ServerWatch) -> None:
    server.metrics = told(1000, 100)
    await watch.look()
    server.metrics = told(10, 10)
    assert (await watch.look()).prefix_hit_percent is None
    server.metrics = told(20, 15)
    assert (await watch.look()).prefix_hit_percent == 50.0


async def test_what_only_the_log_said_stays_and_what_the_server_stops_saying_goes(
    server: ScriptedVllm, watch: ServerWatch
) -> None:
    server.metrics = told(1000, 100, running=3)
    card = await watch.look()
    assert (card.version, card.weights_gib, card.kv_tokens, card.block_tokens) == ("0.31.0", 18.6, 113_981, 544)
    assert (card.running, card.waiting) == (3, 0)
    server.metrics = ""
    card = await watch.look()
    assert (card.running, card.waiting, card.weights_gib) == (None, None, 18.6)


async def test_weights_of_noise_are_labelled(server: ScriptedVllm) -> None:
    watch = ServerWatch(server.base_url, NAME, StartFacts(), dummy_weights=True)
    assert (await watch.look()).as_dict()["dummy_weights"] is True
    await watch.aclose()


async def test_nothing_looked_up_since_the_last_start_leaves_the_rate_blank(
    server: ScriptedVllm, watch: ServerWatch
) -> None:
    server.metrics = told(1000, 900)
    assert [(await watch.look()).prefix_hit_percent for _ in range(3)] == [None, None, None]


async def test_a_restart_is_noticed_though_the_counters_have_passed_the_first_look_again(
    server: ScriptedVllm, watch: ServerWatch
) -> None:
    seen = []
    for queries, hits in ((1000, 900), (5000, 4500), (2000, 100), (2400, 400)):
        server.metrics = told(queries, hits)
        seen.append((await watch.look()).prefix_hit_percent)
    assert seen == [None, 90.0, None, 75.0]


async def test_a_server_that_is_gone_leaves_what_was_counted(server: ScriptedVllm, watch: ServerWatch) -> None:
    server.metrics = told(0, 0)
    await watch.look()
    server.metrics = told(200, 150, running=2, drafted=50, accepted=20)
    before = await watch.look()
    await server.stop()
    after = await watch.look()
    assert after == replace(before, running=None, waiting=None)
    assert (after.prefix_hit_percent, after.mtp_accepted_percent, after.version) == (75.0, 40.0, "0.31.0")


@pytest.mark.parametrize(
    ("facts", "kv_tokens", "block_tokens"),
    [
        (StartFacts(18.6, 113_981, 544), 113_981, 544),
        (StartFacts(18.6, None, 544), 1_048_576, 544),
        (StartFacts(), 1_048_576, 128),
    ],
)
async def test_what_the_log_said_of_sizes_counts_more_than_what_the_server_tells(
    facts: StartFacts, kv_tokens: int, block_tokens: int, server: ScriptedVllm
) -> None:
    server.metrics = (
        "# TYPE vllm:cache_config_info gauge\n"
        'vllm:cache_config_info{block_size="128",kv_cache_size_tokens="1048576",prefix_match_unit="16"} 1.0\n'
    )
    watch = ServerWatch(server.base_url, NAME, facts)
    card = await watch.look()
    await watch.aclose()
    assert (card.weights_gib, card.kv_tokens, card.block_tokens) == (facts.weights_gib, kv_tokens, block_tokens)
    assert card.match_unit == 16


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
async def test_the_address_may_be_that_of_the_server_or_of_its_api(ending: str, server: ScriptedVllm) -> None:
    watch = ServerWatch(server.base_url.removesuffix("/v1") + ending, NAME, StartFacts())
    assert (await watch.look()).version == "0.31.0"
    await watch.aclose()
