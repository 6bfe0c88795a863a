"""The vLLM recipe as data: every flag, why it is there, and the versions of vLLM that have it.

Versions were read from the arguments of vllm 0.17, 0.20, 0.22 and 0.24 to 0.32 (`engine/arg_utils.py`,
`entrypoints/openai/cli_args.py`); where a flag is known to be newer than 0.17, `since` says so.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any, Final, Literal

from packaging.version import InvalidVersion, Version

from spoken_chat.errors import ChatError

OLDEST: Final = Version("0.17")
"""The first that serves Qwen3.6's architecture with a cached prefix."""

FINE_PREFIX: Final = Version("0.26")
"""The first with `--prefix-match-unit`; before it a prefix is cached in whole blocks of 544 tokens."""

SLOW_MTP: Final = ("0.24", "0.27")
"""Releases (major.minor) in which MTP was slower than none, by the model's published figures."""

FINEST_UNIT: Final = 16
"""Tokens: a unit of prefix matching that divides the block of every model."""

MATCH_UNIT: Final = 272
"""Tokens: half of Qwen3.6's block of 544 with the bf16 state on one card. See docs/measurements."""

CAPTURE_SIZES: Final = (1, 2, 4, 6, 8, *range(16, 128, 16), *range(128, 320, 32), 320, 384, 448, 512, 640, 768, 1024)
"""Tokens of a step that a CUDA graph is captured for; a step is padded to the next one."""

IMAGE_TOKEN_PIXELS: Final = 32 * 32
"""Pixels that become one token; see images.py."""

TEXT_ONLY_BELOW_GIB: Final = 30.0
"""A card with less memory than this serves text alone."""

Profile = Literal["text", "image"]


@dataclass(frozen=True)
class Checkpoint:
    """A published set of weights. `weights_gib`: about what they take on the card.

    Of low-latency, 18.6 GiB were measured of a stand-in with its shapes, vision tower included; the others are worked
    out from their number of parameters, and nobody here has loaded them.
    """

    name: str
    repository: str
    weights_gib: float
    what: str


CHECKPOINTS: Final = (
    Checkpoint(
        "low-latency",
        "Twu31/Qwen3.6-35B-A3B-GPTQ-INT4-W4A16-LowLatency",
        19.0,
        "GPTQ INT4 with an INT8 head: the least bytes per token, so the fewest ms per token",
    ),
    Checkpoint("anchor", "QuantTrio/Qwen3.6-35B-A3B-AWQ", 22.0, "AWQ INT4: what the published figures compare with"),
    Checkpoint("base", "Qwen/Qwen3.6-35B-A3B", 66.0, "BF16 as released: the reference for what quantisation costs"),
)


@dataclass(frozen=True)
class Flag:
    """One flag of `vllm serve`: its value as vLLM reads it (None for a switch), and why it is there."""

    name: str
    value: str | None
    reason: str
    since: Version = OLDEST

    @property
    def words(self) -> list[str]:
        """The flag as arguments of a command."""
        return [self.name] if self.value is None else [self.name, self.value]


@dataclass(frozen=True)
class ServerOptions:
    """What is served and how. `model`: a name of CHECKPOINTS, a repository or a folder.

    `gpu_memory`: the share of the card that vLLM may fill, None for its own default. `match_unit`: tokens of
    `--prefix-match-unit`, None for what suits the model. `extra`: more arguments for `vllm serve`; where they name a
    flag of the recipe, they replace it.
    """

    model: str = "low-latency"
    served_name: str = "qwen36"
    host: str = "127.0.0.1"
    port: int = 8000
    profile: Profile = "image"
    context_tokens: int = 12_288
    max_num_seqs: int = 6
    min_pixels: int = 50_176
    max_pixels: int = 200_704
    images_per_prompt: int = 4
    mtp_tokens: int = 0
    tensor_parallel: int = 1
    gpu_memory: float | None = None
    match_unit: int | None = None
    extra: tuple[str, ...] = ()

    @property
    def prefix_unit(self) -> int:
        """Tokens of `--prefix-match-unit`: what was asked for, else what divides the model's block."""
        if self.match_unit is not None:
            return self.match_unit
        known = any(self.model in (one.name, one.repository) for one in CHECKPOINTS)
        return MATCH_UNIT if known and self.tensor_parallel == 1 else FINEST_UNIT


def parse_version(text: str) -> Version:
    """`text` as a version. Raises ChatError where it is none."""
    try:
        return Version(text)
    except InvalidVersion:
        raise ChatError("vllm_version", f"{text!r} is not a version of vLLM; write it as 0.31 or 0.31.0.") from None


def repository(model: str) -> str:
    """The repository or folder behind a checkpoint's name; any other name is one already."""
    return next((one.repository for one in CHECKPOINTS if one.name == model), model)


def recipe(options: ServerOptions, version: Version) -> list[Flag]:
    """The flags of `vllm serve` in vLLM `version`, beside the model. Raises ChatError for one that is too old."""
    if version < OLDEST:
        raise ChatError(
            "vllm_too_old",
            f"vLLM {version} is too old: it does not serve Qwen3.6 with a cached prefix; install {OLDEST} or newer "
            "(requirements-vllm.txt).",
            version=str(version),
        )
    replaced = {word.partition("=")[0] for word in options.extra if word.startswith("--")}
    return [
        flag
        for flag in (*_served(options), *_cached(options), *_quick(options), *_prompt(options), *_asked(options))
        if version >= flag.since and flag.name not in replaced
    ]


def arguments(options: ServerOptions, version: Version) -> list[str]:
    """What `vllm serve` is given, the model first. Raises ChatError as `recipe` does."""
    flags = [word for flag in recipe(options, version) for word in flag.words]
    return [repository(options.model), *flags, *options.extra]


def printed(options: ServerOptions, version: Version) -> str:
    """The command as a person would type it, and above it the reason of each flag."""
    flags = recipe(options, version)
    width = max(len(flag.name) for flag in flags)
    reasons = [f"#   {flag.name:<{width}}  {flag.reason}" for flag in flags]
    lines = [f"vllm serve {shlex.quote(repository(options.model))}", *(shlex.join(flag.words) for flag in flags)]
    if options.extra:
        lines.append(shlex.join(options.extra))
    return "\n".join([f"# vLLM {version}", *reasons, " \\\n  ".join(lines)])


def cautions(options: ServerOptions, version: Version) -> list[str]:
    """What the person should know of this choice, one sentence each."""
    said = []
    if version < FINE_PREFIX:
        said.append(
            f"vLLM {version} caches a prefix in whole blocks only (no --prefix-match-unit before {FINE_PREFIX}); the "
            "persona prefix is padded to the block."
        )
    if options.mtp_tokens and f"{version.major}.{version.minor}" in SLOW_MTP:
        said.append(f"MTP was slower than none in vLLM {version.major}.{version.minor}; leave it out, or take 0.30.")
    return said


def _served(options: ServerOptions) -> list[Flag]:
    return [
        Flag("--served-model-name", options.served_name, "the name requests use, whatever the checkpoint"),
        Flag("--host", options.host, "this machine only: the app is its only client"),
        Flag("--port", str(options.port), "where the app looks for it"),
        Flag("--max-model-len", str(options.context_tokens), "a long talk and its images; less memory than the full"),
        Flag("--max-num-seqs", str(options.max_num_seqs), "five streams and one to spare"),
    ]


def _cached(options: ServerOptions) -> list[Flag]:
    return [
        Flag("--enable-prefix-caching", None, "the persona prefix is read once, not in every turn"),
        Flag(
            "--prefix-match-unit",
            str(options.prefix_unit),
            "a cached prefix may end inside a block; a prompt that crosses no unit is read in one step, not two",
            FINE_PREFIX,
        ),
        Flag("--mamba-ssm-cache-dtype", "bfloat16", "half the state of the linear layers, so blocks of 544 tokens"),
        Flag("--enable-prompt-tokens-details", None, "says how much of a prompt came from the cache"),
    ]


def _quick(options: ServerOptions) -> list[Flag]:
    sizes = sorted({*CAPTURE_SIZES, options.max_num_seqs})
    return [
        Flag(
            "--compilation-config",
            _json({"cudagraph_capture_sizes": sizes}),
            "CUDA graphs for the uncached end of a prompt too, which else is bound by kernel launches",
        ),
    ]


def _prompt(options: ServerOptions) -> list[Flag]:
    flags = [
        Flag("--reasoning-parser", "qwen3", "thinking, should there be any, stays out of the reply"),
        Flag("--default-chat-template-kwargs", _json({"enable_thinking": False}), "thinking off"),
    ]
    if options.profile == "text":
        return [
            *flags,
            Flag("--language-model-only", None, "no vision tower: its memory is for the cache"),
        ]
    pixels = {"min_pixels": options.min_pixels, "max_pixels": options.max_pixels}
    least, most = options.min_pixels // IMAGE_TOKEN_PIXELS, options.max_pixels // IMAGE_TOKEN_PIXELS
    limits = {"image": options.images_per_prompt, "video": 0}
    return [
        *flags,
        Flag("--mm-processor-kwargs", _json(pixels), f"an image is {least} to {most} tokens"),
        Flag("--limit-mm-per-prompt", _json(limits), "memory is set aside for this many images and no video"),
    ]


def _asked(options: ServerOptions) -> list[Flag]:
    flags = []
    if options.mtp_tokens:
        method = {"method": "mtp", "num_speculative_tokens": options.mtp_tokens}
        flags.append(Flag("--speculative-config", _json(method), "the model's own head guesses the next tokens"))
    if options.tensor_parallel > 1:
        flags.append(Flag("--tensor-parallel-size", str(options.tensor_parallel), "the weights lie on several cards"))
    if options.gpu_memory is not None:
        flags.append(Flag("--gpu-memory-utilization", f"{options.gpu_memory:g}", "the share of the card it may fill"))
    return flags


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def split_arguments(text: str) -> tuple[str, ...]:
    """`text` as a shell would split it. Raises ChatError where a quote is open."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ChatError("vllm_arguments", f"The further arguments for vLLM cannot be read: {error}.") from None
