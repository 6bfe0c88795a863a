"""The end of vLLM's log becomes one sentence that says what happened and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from spoken_chat.server.start_faults import start_fault

LOG = Path("/somewhere/vllm.log")
NOISE = "(EngineCore pid=7) INFO 12-01 12:43:04 starting\nTraceback (most recent call last):\n  File x, line 3\n"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("api_server.py: error: unrecognized arguments: --no-such-flag", "vllm_unknown_flag", "--no-such-flag"),
        ("error: argument --max-num-seqs: invalid int value: 'many'", "vllm_bad_flag", "--max-num-seqs"),
        ("OSError: [Errno 98] Address already in use", "vllm_port", "--vllm-port"),
        ("main.c:3:10: fatal error: Python.h: No such file or directory", "vllm_no_headers", "python3-dev"),
        ("RuntimeError: Failed to find C compiler. Please specify via CC", "vllm_no_compiler", "build-essential"),
        ("/bin/sh: 1: gcc: not found", "vllm_no_compiler", "build-essential"),
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040)", "vllm_driver", "driver"),
        ("RuntimeError: Failed to infer device type", "vllm_no_gpu", "nvidia-smi"),
        ("RuntimeError: No CUDA GPUs are available", "vllm_no_gpu", "nvidia-smi"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "vllm_memory", "--vllm-profile"),
        ("ValueError: Free memory on device (3/24 GiB) is less than desired GPU memory utilization", "vllm_memory", ""),
        ("ValueError: No available memory for the cache blocks. Try increasing", "vllm_memory", ""),
        ("OSError: [Errno 28] No space left on device", "vllm_disk", "HF_HOME"),
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error.", "vllm_model_gated", "HF_TOKEN"),
        ("huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error.", "vllm_model_missing", "--vllm-model"),
        ("HFValidationError: Repo id must be in the form 'repo_name'", "vllm_model_missing", "--vllm-model"),
        ("OSError: We couldn't connect to 'https://huggingface.co' to load", "vllm_model_unreachable", "network"),
        ("huggingface_hub.errors.LocalEntryNotFoundError: Cannot find", "vllm_model_unreachable", "folder"),
        ("ValueError: Model architectures ['New'] are not supported for now.", "vllm_model_unknown", "newer"),
        ("ValueError: Invalid prefix_match_unit=272; prefix-cacheable", "vllm_bad_flag", "--prefix-match-unit 272"),
    ],
)
def test_each_cause_has_its_own_sentence(line: str, code: str, said: str) -> None:
    fault = start_fault(f"{NOISE}{line}\n", 1, "low-latency", LOG)
    assert fault.code == code
    assert said in fault.message and "low-latency" in fault.message and str(LOG) in fault.message
    assert "\n" not in fault.message and "Traceback" not in fault.message


def test_a_server_that_the_system_killed_wanted_for_memory_most_likely() -> None:
    assert start_fault(NOISE, 137, "m", LOG).code == "vllm_killed"
    assert "signal 11" in start_fault(NOISE, 128 + 11, "m", LOG).message


def test_an_unknown_cause_is_told_in_the_servers_own_last_words() -> None:
    said = (
        f"{NOISE}(EngineCore pid=7) ERROR 12-01 [core.py:1] ValueError: the first\nRuntimeError: the last {'x' * 500}\n"
    )
    fault = start_fault(said, 1, "m", LOG)
    assert fault.code == "vllm_crashed" and "RuntimeError: the last" in fault.message
    assert len(fault.message) < 400
    assert "status 3" in start_fault("", 3, "m", LOG).message
    assert "does not get on" in start_fault("", None, "m", LOG).message
