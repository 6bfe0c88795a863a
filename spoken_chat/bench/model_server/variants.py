"""The sets of flags that are compared: the recipe with some flags left out, replaced or added."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from packaging.version import Version

from spoken_chat.server.recipe import ServerOptions, recipe

TUNED: Final = ("--compilation-config", "--limit-mm-per-prompt")
"""What this project added to the model card's recipe, beside another `--prefix-match-unit`."""

PUBLISHED_UNIT: Final = {"--prefix-match-unit": "16"}
"""The model card's own."""


@dataclass(frozen=True)
class Variant:
    """`without`: flags of the recipe that are left out. `added`: further ones; the value None is a switch."""

    name: str
    what: str
    without: tuple[str, ...] = ()
    added: Mapping[str, str | None] | None = None

    def words(self, options: ServerOptions, version: Version) -> list[str]:
        """The flags of `vllm serve` in this variant."""
        added = self.added or {}
        kept = [flag for flag in recipe(options, version) if flag.name not in (*self.without, *added)]
        extra = [word for name, value in added.items() for word in ([name] if value is None else [name, value])]
        return [word for flag in kept for word in flag.words] + extra


def _sizes(*sizes: int) -> str:
    return json.dumps({"cudagraph_capture_sizes": sizes}, separators=(",", ":"))


LISTED: Final = _sizes(1, 2, 4, 6, 8, 16, 24, 32, 48, 64, 96, 128, 256)
DENSE: Final = _sizes(1, 2, 4, 6, 8, *range(16, 577, 16))

VARIANTS: Final = {
    one.name: one
    for one in (
        Variant("plain", "the model card's recipe", TUNED, PUBLISHED_UNIT),
        Variant(
            "sizes",
            "the model card's with CUDA graphs up to 256 tokens",
            TUNED,
            {**PUBLISHED_UNIT, "--compilation-config": LISTED},
        ),
        Variant(
            "batched",
            "the model card's with --max-num-batched-tokens 4096",
            TUNED,
            {**PUBLISHED_UNIT, "--max-num-batched-tokens": "4096"},
        ),
        Variant(
            "unit-16",
            "the recipe with cached prefixes that end within 16 tokens",
            added=PUBLISHED_UNIT,
        ),
        Variant(
            "unit-136",
            "the recipe with cached prefixes that end within 136 tokens",
            added={"--prefix-match-unit": "136"},
        ),
        Variant(
            "unit-272",
            "the recipe with cached prefixes that end within 272 tokens",
            added={"--prefix-match-unit": "272"},
        ),
        Variant(
            "blocks",
            "no --prefix-match-unit, CUDA graphs up to 576 tokens: the end of a prompt in one step",
            (*TUNED, "--prefix-match-unit"),
            {"--compilation-config": DENSE},
        ),
    )
}
