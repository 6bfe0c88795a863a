"""The least time that one step of Qwen3.6-35B-A3B INT4 can take: the bytes of weights it must read over the bandwidth.

Shapes are those of the model's configuration; INT4 weights carry one BF16 scale for every 128. Activations, the cache
and the vision tower are left out, so the true bound lies a little higher.
"""

from __future__ import annotations

from typing import Final

BANDWIDTH: Final = 4.3e12
"""Bytes per second that a device-to-device copy reached on an H200 of the kind used here."""

HIDDEN: Final = 2048
FULL_LAYERS: Final = 10
LINEAR_LAYERS: Final = 30
EXPERTS: Final = 256
ROUTED: Final = 8
VOCABULARY: Final = 248_320
EXPERT_WEIGHTS: Final = 3 * HIDDEN * 512

INT4: Final = 0.5 + 2 / 128
INT8: Final = 1.0
BF16: Final = 2.0


def distinct_experts(tokens: int) -> float:
    """How many of a layer's experts `tokens` tokens touch together, each choosing at random."""
    return EXPERTS * (1 - (1 - ROUTED / EXPERTS) ** tokens)


def bytes_of_step(tokens: int) -> float:
    """Bytes of weights that a step over `tokens` tokens reads at least once."""
    full = HIDDEN * (2 * 16 * 256) + 2 * HIDDEN * (2 * 256) + 16 * 256 * HIDDEN
    linear = HIDDEN * (2 * 16 * 128 + 32 * 128) + HIDDEN * 32 * 128 + 32 * 128 * HIDDEN
    layers = FULL_LAYERS + LINEAR_LAYERS
    experts = layers * (distinct_experts(tokens) + 1) * EXPERT_WEIGHTS  # and the shared one
    int4 = INT4 * (FULL_LAYERS * full + LINEAR_LAYERS * linear + experts)
    gates = BF16 * HIDDEN * (LINEAR_LAYERS * 64 + layers * EXPERTS)
    return int4 + gates + INT8 * VOCABULARY * HIDDEN


def least_ms(tokens: int) -> float:
    """The least time of such a step in ms."""
    return bytes_of_step(tokens) / BANDWIDTH * 1000
