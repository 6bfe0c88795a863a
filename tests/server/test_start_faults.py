"""The end of vLLM's log becomes one sentence that says what happened and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from spoken_chat.server.start_faults import start_fault
from spoken_chat.settings import ROOT
from spoken_chat.supervisor import PASSING

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
        ("FileNotFoundError: [Errno 2] No such file or directory: 'gcc'", "vllm_no_compiler", "build-essential"),
        ("sh: 1: /usr/local/cuda/bin/nvcc: not found", "vllm_no_compiler", "build-essential"),
        ("CUDA driver version is insufficient for CUDA runtime version", "vllm_driver", "driver"),
        ("ImportError: libcuda.so.1: cannot open shared object file", "vllm_no_gpu", "nvidia-smi"),
        ("ValueError: 2.1 GiB KV cache is needed, which is larger than the available", "vllm_memory", "context-tokens"),
        ("OSError: x is not a local folder and is not a valid model identifier", "vllm_model_missing", "--vllm-model"),
        ("OSError: You are trying to access a gated repo.", "vllm_model_gated", "HF_TOKEN"),
        ("Cannot access gated repo for url https://huggingface.co/x/y.", "vllm_model_gated", "HF_TOKEN"),
        ("Access to model meta/x is restricted.", "vllm_model_gated", "HF_TOKEN"),
        ("huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach", "vllm_model_unreachable", "folder"),
        ("NameResolutionError: Failed to resolve 'huggingface.co'", "vllm_model_unreachable", "network"),
        ("Transformers does not recognize this architecture. This", "vllm_model_unknown", "newer"),
        ("pydantic_core.ValidationError: 1 validation error for ModelConfig", "vllm_bad_flag", "ModelConfig"),
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


NO_SUCH_MODEL = """\
huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. (Request ID: Root=1-674c)

Repository Not Found for url: https://huggingface.co/api/models/nobody/nothing.
Please make sure you specified the correct `repo_id` and `repo_type`.
If you are trying to access a private or gated repo, make sure you are authenticated and your token has the required \
permissions.
For more details, see https://huggingface.co/docs/huggingface_hub/authentication
"""
"""As huggingface_hub 1.x words it, `_http.py`."""


def test_a_model_that_is_not_there_is_not_called_gated() -> None:
    assert start_fault(NOISE + NO_SUCH_MODEL, 1, "m", LOG).code == "vllm_model_missing"


def test_what_says_most_decides_though_more_follows() -> None:
    said = (
        "torch.OutOfMemoryError: CUDA out of memory.\n(APIServer pid=617) RuntimeError: Engine core initialization "
        "failed. See root cause above. Failed core proc(s): {}\n"
    )
    assert start_fault(NOISE + said, 1, "m", LOG).code == "vllm_memory"
    assert start_fault(f"{NOISE}CUDA out of memory.\n", 128 + 9, "m", LOG).code == "vllm_memory"


@pytest.mark.parametrize("status", [None, 0, 1, 127, 128 + 6, 128 + 9, 128 + 15])
@pytest.mark.parametrize("said", ["", NOISE, NOISE + "RuntimeError: {odd} %s \\1 " + "long " * 300, "\x00\n\n"])
def test_whatever_the_end_it_is_one_short_sentence_that_names_the_model_and_the_log(
    said: str, status: int | None
) -> None:
    fault = start_fault(said, status, "somebody/model", LOG)
    assert fault.message.startswith("vLLM does not serve somebody/model: ")
    assert fault.message.endswith(f" Its log is {LOG}.")
    assert len(fault.message) < 400
    assert "\n" not in fault.message and "Traceback" not in fault.message
    assert fault.details == {"model": "somebody/model", "log": str(LOG)}


def test_a_long_text_of_the_server_is_cut() -> None:
    flags = " ".join(f"--flag-{number}" for number in range(100))
    message = start_fault(f"error: unrecognized arguments: {flags}\n", 2, "m", LOG).message
    assert "--flag-0 --flag-1 " in message and "--flag-99" not in message and "…" in message


LASTING = (
    "vllm_unknown_flag", "vllm_bad_flag", "vllm_model_gated", "vllm_model_missing", "vllm_model_unreachable",
    "vllm_model_unknown", "vllm_no_gpu", "vllm_too_few_gpus", "vllm_driver", "vllm_memory", "vllm_disk",
    "vllm_no_compiler", "vllm_no_headers", "vllm_missing", "vllm_too_old",
)  # fmt: skip
"""What trying again does not mend."""


@pytest.mark.parametrize("code", LASTING)
def test_every_fault_that_lasts_is_one_that_is_raised_and_is_not_tried_again(code: str) -> None:
    sources = [file.read_text("utf-8") for file in (ROOT / "spoken_chat" / "server").glob("*.py")]
    assert any(f'"{code}"' in source for source in sources)
    assert code not in PASSING
