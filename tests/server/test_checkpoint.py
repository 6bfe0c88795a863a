"""A local copy of the model is known by its shapes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spoken_chat.server.checkpoint import SHAPES, has_qwen36_blocks
from spoken_chat.server.recipe import MATCH_UNIT
from spoken_chat.server.vllm import VllmServer
from spoken_chat.settings import load


@pytest.mark.parametrize("nested", [True, False])
def test_a_folder_with_its_shapes_gets_its_match_unit(nested: bool, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"text_config": SHAPES} if nested else SHAPES))
    assert has_qwen36_blocks(str(tmp_path))
    settings = load(vllm_model=str(tmp_path))
    assert VllmServer(settings).options("text").prefix_unit == MATCH_UNIT
    several = settings.model_copy(update={"vllm_tensor_parallel": 2})
    assert VllmServer(several).options("text").prefix_unit == 16


@pytest.mark.parametrize("content", [json.dumps(SHAPES | {"head_dim": 64}), "{", "[]", '{"text_config": 3}', "{}"])
def test_any_other_folder_does_not(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    assert not has_qwen36_blocks(str(tmp_path))
    assert VllmServer(load(vllm_model=str(tmp_path))).options("text").prefix_unit == 16


def test_a_name_that_is_no_folder_does_not() -> None:
    assert not has_qwen36_blocks("somebody/some-model")
