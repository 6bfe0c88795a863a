"""The recipe: every flag of the design with its reason, for the versions that have it."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import pytest
from packaging.version import Version

from spoken_chat.errors import ChatError
from spoken_chat.server.recipe import (
    CAPTURE_SIZES,
    CHECKPOINTS,
    MATCH_UNIT,
    Flag,
    ServerOptions,
    arguments,
    cautions,
    parse_version,
    printed,
    recipe,
    repository,
    split_arguments,
)

NOW = Version("0.31")
BLOCK = 544
"""Tokens of Qwen3.6's block on one card with the bf16 state, as the log of vLLM 0.26 gives it."""


def by_name(options: ServerOptions, version: Version = NOW) -> dict[str, str | None]:
    return {flag.name: flag.value for flag in recipe(options, version)}


def test_the_designs_recipe_is_all_there() -> None:
    flags = by_name(ServerOptions())
    assert flags["--served-model-name"] == "qwen36"
    assert (flags["--max-model-len"], flags["--max-num-seqs"]) == ("12288", "6")
    assert flags["--enable-prefix-caching"] is None and flags["--enable-prompt-tokens-details"] is None
    assert flags["--mamba-ssm-cache-dtype"] == "bfloat16"
    assert flags["--reasoning-parser"] == "qwen3"
    assert json.loads(flags["--default-chat-template-kwargs"] or "") == {"enable_thinking": False}
    assert json.loads(flags["--mm-processor-kwargs"] or "") == {"min_pixels": 50_176, "max_pixels": 200_704}
    assert arguments(ServerOptions(), NOW)[0] == "Twu31/Qwen3.6-35B-A3B-GPTQ-INT4-W4A16-LowLatency"


def test_every_flag_says_why_it_is_there_and_is_there_once() -> None:
    flags = recipe(ServerOptions(mtp_tokens=2, tensor_parallel=2, gpu_memory=0.9), NOW)
    assert all(flag.reason for flag in flags)
    assert len({flag.name for flag in flags}) == len(flags)


@pytest.mark.parametrize(
    ("options", "unit"),
    [
        (ServerOptions(), MATCH_UNIT),
        (ServerOptions(model="anchor"), MATCH_UNIT),
        (ServerOptions(model="base"), MATCH_UNIT),
        (ServerOptions(model=CHECKPOINTS[0].repository), MATCH_UNIT),
        (ServerOptions(model="somebody/else"), 16),
        (ServerOptions(tensor_parallel=2), 16),
        (ServerOptions(match_unit=136), 136),
    ],
)
def test_the_match_unit_suits_the_models_block(options: ServerOptions, unit: int) -> None:
    assert by_name(options)["--prefix-match-unit"] == str(unit)
    assert BLOCK % unit == 0


def test_what_a_version_does_not_have_is_left_out_and_said() -> None:
    assert "--prefix-match-unit" not in by_name(ServerOptions(), Version("0.25.1"))
    assert "--prefix-match-unit" in by_name(ServerOptions(), Version("0.26.0"))
    (caution,) = cautions(ServerOptions(), Version("0.25.1"))
    assert "padded" in caution
    assert cautions(ServerOptions(), Version("0.26")) == []


@pytest.mark.parametrize("version", ["0.16", "0.16.9", "0.8.5", "0.17rc1"])
def test_a_version_that_cannot_serve_the_model_is_refused(version: str) -> None:
    with pytest.raises(ChatError, match="too old") as caught:
        recipe(ServerOptions(), Version(version))
    assert caught.value.code == "vllm_too_old"


@pytest.mark.parametrize(("version", "slow"), [("0.24.0", True), ("0.27.1", True), ("0.26", False), ("0.30", False)])
def test_mtp_is_there_on_request_with_a_caution_where_it_was_slower(version: str, slow: bool) -> None:
    asked = ServerOptions(mtp_tokens=2)
    assert "--speculative-config" not in by_name(ServerOptions(), Version(version))
    value = by_name(asked, Version(version))["--speculative-config"]
    assert json.loads(value or "") == {"method": "mtp", "num_speculative_tokens": 2}
    assert any("MTP" in caution for caution in cautions(asked, Version(version))) is slow
    assert not any("MTP" in caution for caution in cautions(ServerOptions(), Version(version)))


def test_text_alone_has_no_vision_tower_and_images_have_bounds() -> None:
    text, image = by_name(ServerOptions(profile="text")), by_name(ServerOptions(images_per_prompt=3))
    assert "--language-model-only" in text and "--mm-processor-kwargs" not in text
    assert "--language-model-only" not in image
    assert json.loads(image["--limit-mm-per-prompt"] or "") == {"image": 3, "video": 0}


def test_several_cards_and_a_share_of_the_memory_are_passed_on() -> None:
    flags = by_name(ServerOptions(tensor_parallel=4, gpu_memory=0.85))
    assert (flags["--tensor-parallel-size"], flags["--gpu-memory-utilization"]) == ("4", "0.85")
    assert not {"--tensor-parallel-size", "--gpu-memory-utilization"} & set(by_name(ServerOptions()))


@pytest.mark.parametrize("seqs", [1, 5, 6, 9, 2000])
def test_graphs_are_captured_for_the_ends_of_prompts_and_for_every_number_of_streams(seqs: int) -> None:
    sizes = json.loads(by_name(ServerOptions(max_num_seqs=seqs))["--compilation-config"] or "")[
        "cudagraph_capture_sizes"
    ]
    assert sizes == sorted(set(sizes)) and seqs in sizes and set(CAPTURE_SIZES) <= set(sizes)


@pytest.mark.parametrize("extra", [("--max-model-len", "4096"), ("--max-model-len=4096",)])
def test_an_argument_of_the_person_replaces_that_of_the_recipe_and_stands_last(extra: tuple[str, ...]) -> None:
    words = arguments(ServerOptions(extra=extra), NOW)
    assert tuple(words[-len(extra) :]) == extra
    assert sum(word.partition("=")[0] == "--max-model-len" for word in words) == 1


def test_checkpoints_go_by_name_and_anything_else_by_its_own() -> None:
    assert repository("anchor") == "QuantTrio/Qwen3.6-35B-A3B-AWQ"
    assert repository("base") == "Qwen/Qwen3.6-35B-A3B"
    assert repository("/models/mine") == "/models/mine"


@pytest.mark.parametrize(
    "options",
    [
        ServerOptions(),
        ServerOptions(profile="text", mtp_tokens=2, tensor_parallel=2, gpu_memory=0.9),
        ServerOptions(model="/my models/x", extra=("--seed", "1")),
        ServerOptions(served_name="it's # 1", extra=("--override", '{"a": "b c"}')),
    ],
)
def test_what_is_printed_can_be_pasted_and_explains_every_flag(options: ServerOptions) -> None:
    text = printed(options, NOW)
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert shlex.split(" ".join(line.removesuffix("\\") for line in lines)) == [
        "vllm", "serve", *arguments(options, NOW)
    ]  # fmt: skip
    for flag in recipe(options, NOW):
        assert any(flag.name in line and flag.reason in line for line in text.splitlines() if line.startswith("#"))


def test_a_switch_is_one_word_and_a_value_follows_its_flag() -> None:
    assert Flag("--on", None, "why").words == ["--on"]
    assert Flag("--at", "1", "why").words == ["--at", "1"]


@pytest.mark.parametrize("text", ["", "new", "0.31.x"])
def test_what_is_no_version_is_told(text: str) -> None:
    with pytest.raises(ChatError) as caught:
        parse_version(text)
    assert caught.value.code == "vllm_version"


def test_further_arguments_are_split_as_a_shell_does() -> None:
    assert split_arguments("--a '{\"b\": 1}' --c") == ("--a", '{"b": 1}', "--c")
    with pytest.raises(ChatError) as caught:
        split_arguments("--a 'open")
    assert caught.value.code == "vllm_arguments"


def test_the_sizes_of_graphs_and_the_match_unit_are_kept_in_order() -> None:
    assert list(CAPTURE_SIZES) == sorted(set(CAPTURE_SIZES))
    assert (MATCH_UNIT, BLOCK % MATCH_UNIT) == (272, 0)


def test_text_alone_keeps_no_flag_of_images() -> None:
    names = set(by_name(ServerOptions())) - set(by_name(ServerOptions(profile="text")))
    assert names == {"--mm-processor-kwargs", "--limit-mm-per-prompt"}


@pytest.mark.parametrize("options", [ServerOptions(mtp_tokens=2), ServerOptions(profile="text")])
def test_every_value_in_braces_is_json(options: ServerOptions) -> None:
    values = [value for value in by_name(options).values() if value is not None and value.startswith("{")]
    assert len(values) >= 2
    assert all(isinstance(json.loads(value), dict) for value in values)


@pytest.mark.parametrize(
    "extra", [("--prefix-match-unit", "16"), ("--language-model-only",), ("--reasoning-parser=x",)]
)
def test_a_flag_of_the_person_leaves_the_others_of_the_recipe_alone(extra: tuple[str, ...]) -> None:
    options = ServerOptions(profile="text")
    replaced = {extra[0].partition("=")[0]}
    assert set(by_name(replace(options, extra=extra))) == set(by_name(options)) - replaced


def test_a_version_that_was_slow_and_coarse_says_both() -> None:
    assert len(cautions(ServerOptions(mtp_tokens=2), Version("0.24.0"))) == 2
