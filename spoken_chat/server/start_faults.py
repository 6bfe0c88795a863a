"""Why vLLM did not start, or ended: the end of its log as one sentence that says what to do.

Wordings are those of vllm 0.17 to 0.32, torch, triton and huggingface_hub. The first sign found decides, so what says
most stands first.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from spoken_chat.errors import ChatError

_SIGNS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "vllm_unknown_flag",
        r"unrecognized arguments: (?P<what>[^\n]+)",
        "this version does not know {what}; take it out of --vllm-arguments, or install a version that has it",
    ),
    (
        "vllm_bad_flag",
        r"error: argument (?P<what>[^\n]+)",
        "a flag cannot have its value ({what}); see --vllm-arguments",
    ),
    (
        "vllm_port",
        r"address already in use|Errno 98",
        "its port is in use by another program; choose another with --vllm-port",
    ),
    (
        "vllm_no_headers",
        r"Python\.h: No such file",
        "the C headers of its Python are missing; install them (Debian: apt install python3-dev)",
    ),
    (
        "vllm_no_compiler",
        r"Failed to find C compiler|\b(?:gcc|cc|c\+\+|g\+\+|nvcc)\S*: (?:command )?not found"
        r"|No such file or directory: '(?:gcc|cc)'",
        "there is no C compiler to build its kernels; install one (Debian: apt install build-essential)",
    ),
    (
        "vllm_driver",
        r"driver on your system is too old|CUDA driver version is insufficient",
        "the NVIDIA driver is too old for it; update the driver, or install an older vLLM",
    ),
    (
        "vllm_no_gpu",
        r"Failed to infer device type|No CUDA GPUs are available|libcuda\.so\.1: cannot open",
        "it found no GPU; check that nvidia-smi answers",
    ),
    (
        "vllm_memory",
        r"less than desired GPU memory utilization|No available memory for the cache blocks|out of memory"
        r"|KV cache is needed, which is larger than the available|OutOfMemoryError",
        "the GPU has too little free memory; end what else uses it, or take --vllm-profile text, a smaller "
        "--vllm-context-tokens or a smaller model",
    ),
    ("vllm_disk", r"No space left on device", "the disk is full; make room where the weights are kept (HF_HOME)"),
    (
        "vllm_model_missing",
        r"RepositoryNotFoundError|Repository Not Found|is not a local folder and is not a valid model identifier"
        r"|Invalid repository ID or local directory|Repo id must be in the form",
        "there is no such model; check the name given with --vllm-model, and HF_TOKEN if it is private",
    ),
    (
        "vllm_model_gated",
        r"GatedRepoError|gated repo|Access to model \S+ is restricted",
        "the model is gated; accept its terms on its page and set HF_TOKEN",
    ),
    (
        "vllm_model_unreachable",
        r"couldn't connect to '?https://huggingface|LocalEntryNotFoundError|OfflineModeIsEnabled|offline mode"
        r"|Failed to resolve 'huggingface|NameResolutionError|Cannot find an appropriate cached snapshot",
        "the model is not on this machine and its hub cannot be reached; check the network, or give a local folder "
        "with --vllm-model",
    ),
    (
        "vllm_model_unknown",
        r"does not recognize this architecture|Model architectures \[[^\]]*\] (?:are not supported|failed)",
        "this version does not know the model's architecture; install a newer vLLM",
    ),
    (
        "vllm_bad_flag",
        r"ValidationError: \d+ validation errors? for (?P<what>[^\n]+)|Invalid prefix_match_unit=(?P<unit>\d+)",
        "it refused a setting ({what}); see --vllm-arguments and the log",
    ),
)

_ERROR_LINE: Final = re.compile(
    r"^(?:\([^)]*\) )?(?:ERROR [^\]]*\] )?((?:\w+\.)*\w*(?:Error|Exception): .+)$", re.MULTILINE
)
_QUOTED: Final = 200


def start_fault(said: str, status: int | None, model: str, log: Path) -> ChatError:
    """The fault behind the end of a log, `said`; `status` as guard.py gives it, None where the server still ran."""
    for code, sign, reason in _SIGNS:
        if found := re.search(sign, said, re.IGNORECASE):
            groups = found.groupdict()
            what = groups.get("what") or (f"--prefix-match-unit {groups['unit']}" if groups.get("unit") else "")
            return _fault(code, model, reason.format(what=_line(what)), log)
    if status == 128 + 9:
        return _fault(
            "vllm_killed", model, "the system ended it, most likely for want of memory; end what else uses it", log
        )
    if status is not None and status > 128:
        return _fault("vllm_crashed", model, f"signal {status - 128} ended it", log)
    errors = _ERROR_LINE.findall(said)
    reason = f"it ended with status {status}" if status is not None else "it does not get on"
    return _fault("vllm_crashed", model, reason + (f" ({_line(errors[-1])})" if errors else ""), log)


def _fault(code: str, model: str, reason: str, log: Path) -> ChatError:
    return ChatError(code, f"vLLM does not serve {model}: {reason}. Its log is {log}.", model=model, log=str(log))


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _QUOTED else line[: _QUOTED - 1] + "…"
