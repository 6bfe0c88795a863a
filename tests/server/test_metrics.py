"""What a vLLM server tells under `/metrics`, and what is made of a server that tells nothing."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoken_chat.server import metrics
from spoken_chat.server.metrics import ServerNumbers, ask_metrics, ask_version, parse_metrics
from tests.support.openai_server import ScriptedServer
from tests.support.scripted_vllm import ScriptedVllm, text_answer

TEXT = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="qwen36"} 1.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="qwen36"} 2.0
# TYPE vllm:prefix_cache_queries counter
vllm:prefix_cache_queries_total{engine="0",model_name="qwen36"} 144558.0
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{engine="0",model_name="qwen36"} 135040.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="128",kv_cache_size_tokens="1048576",prefix_match_unit="16",sliding_window="None"} 1.0
"""


def test_the_numbers_are_read() -> None:
    assert parse_metrics(TEXT) == ServerNumbers(
        prefix_queries=144_558, prefix_hits=135_040, running=1, waiting=2,
        kv_tokens=1_048_576, block_tokens=128, match_unit=16,
    )  # fmt: skip


def test_several_engines_behind_one_server_add_up() -> None:
    more = TEXT.replace('running{engine="0",model_name="qwen36"} 1.0', 'running{engine="0"} 1.0\n'
                        'vllm:num_requests_running{engine="1"} 3.0')  # fmt: skip
    found = parse_metrics(more)
    assert found is not None and found.running == 4


def test_what_is_not_said_is_not_known() -> None:
    found = parse_metrics(TEXT.replace('prefix_match_unit="16"', 'prefix_match_unit="None"'))
    assert found is not None and found.match_unit is None and found.drafted is None


def test_another_engine_tells_nothing_that_is_read() -> None:
    assert parse_metrics("# TYPE llamacpp:requests_processing gauge\nllamacpp:requests_processing 1\n") is None
    assert parse_metrics("") is None
    with pytest.raises(ValueError):
        parse_metrics("<html>{ not metrics")


async def test_a_server_is_asked_and_one_without_metrics_or_without_life_says_nothing(
    monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setattr(metrics, "_TIMEOUT_S", 0.2)
    async with httpx2.AsyncClient(trust_env=False) as client, ScriptedVllm() as vllm, ScriptedServer() as other:
        root = vllm.base_url.removesuffix("/v1")
        vllm.metrics = TEXT
        found = await ask_metrics(client, root)
        assert found is not None and found.running == 1
        assert await ask_version(client, root) == "0.31.0"
        vllm.metrics = "<html>{ not metrics"
        assert await ask_metrics(client, root) is None
        vllm.others["/version"] = lambda _: text_answer("[]")
        assert await ask_version(client, root) is None
        for silent in (other.base_url.removesuffix("/v1"), f"http://127.0.0.1:{unused_tcp_port}"):
            assert await ask_metrics(client, silent) is None
            assert await ask_version(client, silent) is None


async def test_a_server_that_accepts_and_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_TIMEOUT_S", 0.1)
    closed = asyncio.Event()

    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await closed.wait()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with httpx2.AsyncClient(trust_env=False) as client:
        assert await ask_metrics(client, f"http://{host}:{port}") is None
        assert await ask_version(client, f"http://{host}:{port}") is None
    closed.set()
    server.close()


def test_what_the_head_guessed_is_read_too() -> None:
    found = parse_metrics(
        "# TYPE vllm:spec_decode_num_draft_tokens counter\nvllm:spec_decode_num_draft_tokens_total 200.0\n"
        "# TYPE vllm:spec_decode_num_accepted_tokens counter\nvllm:spec_decode_num_accepted_tokens_total 112.0\n"
    )
    assert found == ServerNumbers(drafted=200, accepted=112)


def test_a_vllm_that_tells_other_things_is_one_of_which_nothing_is_known() -> None:
    assert parse_metrics("# TYPE vllm:num_preemptions counter\nvllm:num_preemptions_total 3.0\n") == ServerNumbers()


@given(st.text() | st.text(alphabet='vllm:_num requests{}=",# \n1.0e+'))
def test_text_that_is_no_metrics_is_read_or_refused_in_one_way(text: str) -> None:
    try:
        found = parse_metrics(text)
    except ValueError:
        return
    assert found is None or found == ServerNumbers()


@pytest.mark.parametrize(
    "value",
    [
        "NaN",
        "+Inf",
    ],
)
async def test_a_number_that_is_none_is_told_as_nothing(value: str) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client, ScriptedVllm() as vllm:
        vllm.metrics = f"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running {value}\n"
        assert await ask_metrics(client, vllm.base_url.removesuffix("/v1")) == ServerNumbers()


@pytest.mark.parametrize(
    "answer", ["{}", '{"version": 31}', '"0.31.0"', "null", "<html>", '{"version": null}', "[1", '{"detail": "no"}']
)
async def test_a_version_that_is_no_text_is_not_told(answer: str) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client, ScriptedVllm() as vllm:
        vllm.others["/version"] = lambda _: text_answer(answer)
        assert await ask_version(client, vllm.base_url.removesuffix("/v1")) is None
