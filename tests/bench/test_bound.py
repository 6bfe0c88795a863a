"""The bound that measured figures are compared with."""

from __future__ import annotations

import pytest

from spoken_chat.bench.model_server.bound import EXPERTS, ROUTED, bytes_of_step, distinct_experts, least_ms


def test_one_token_reads_its_own_experts_and_many_read_all_of_them() -> None:
    assert distinct_experts(1) == pytest.approx(ROUTED)
    assert ROUTED * 4 < distinct_experts(5) < ROUTED * 5
    assert distinct_experts(500) == pytest.approx(EXPERTS, abs=0.01)


def test_a_token_reads_about_the_active_parameters_and_a_prompt_about_the_whole_model() -> None:
    assert 1.5e9 < bytes_of_step(1) < 2.5e9, "3 billion active ones, half a byte each, and the head"
    assert 17e9 < bytes_of_step(500) < 20e9, "18.6 GiB were measured, embeddings and vision tower included"


def test_more_tokens_never_take_less() -> None:
    times = [least_ms(tokens) for tokens in (1, 2, 5, 16, 128, 1024)]
    assert times == sorted(times) and times[0] > 0
