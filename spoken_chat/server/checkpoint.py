"""What a local folder of weights says of its model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

SHAPES: Final = {
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
}
"""What the block of vLLM's cache follows from, as Qwen3.6-35B-A3B has it."""


def has_qwen36_blocks(model: str) -> bool:
    """Whether `model` is a folder with a model whose cache has Qwen3.6-35B-A3B's blocks, however it is quantised."""
    try:
        config = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
        text = config.get("text_config", config)
        return all(text.get(name) == size for name, size in SHAPES.items())
    except (OSError, ValueError, AttributeError):
        return False
