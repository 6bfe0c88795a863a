"""`bench overhead`: which medians meet the targets, and what a short run prints and writes. No timing is judged."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from spoken_chat import __main__ as command_line
from spoken_chat.bench.overhead import SCHEDULES, Comparison, exported_figures, page_figures
from spoken_chat.bench.report import Median
from spoken_chat.llm import Usage
from tests.support.loading import bare_environment
from tests.support.turns import MARKS, turn_with


def comparison(**given: float) -> Comparison:
    """A comparison that meets every target on its bound, but for what is given."""
    values = {"raw_ttft": 25.0, "our_ttft": 27.0, "raw_per_token": 4.0, "our_per_token": 4.0, "clause_added": 10.0}
    medians = {name: Median(given.get(name, value), 40, 0.0, 99.0) for name, value in values.items()}
    return Comparison(schedule="given", **medians, page_differs=int(given.get("page_differs", 0)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"our_ttft": 24.0},
        {"our_per_token": 4.07},
        {"our_per_token": 3.93},
        {"clause_added": -3.0},
    ],
)
def test_targets_are_met_up_to_their_bounds(given: dict[str, float]) -> None:
    assert [target.name for target in comparison(**given).targets() if not target.met] == []


@pytest.mark.parametrize(
    ("given", "missed"),
    [
        ({"our_ttft": 27.01}, "TTFT within 2 ms"),
        ({"our_per_token": 4.09}, "ms/token within 2 %"),
        ({"our_per_token": 3.91}, "ms/token within 2 %"),
        ({"clause_added": 10.01}, "first clause's sound"),
        ({"page_differs": 1}, "page and export differ"),
    ],
)
def test_each_target_is_missed_by_its_own_figure_alone(given: dict[str, float], missed: str) -> None:
    (target,) = [target for target in comparison(**given).targets() if not target.met]
    assert missed in target.name
    assert "given" in target.name, "it says on which schedule"
    assert "NOT met" in target.line()


def test_differences_are_those_of_the_medians() -> None:
    one = comparison(our_ttft=26.5, our_per_token=4.1)
    assert one.ttft_added == 1.5
    assert math.isclose(one.per_token_off, 2.5)
    assert math.isclose(comparison(our_per_token=3.9).per_token_off, 2.5)


@pytest.mark.parametrize(
    ("marks", "usage"),
    [(MARKS, Usage(1212, 24, 1200)), (MARKS, Usage(1212, 24, 0)), (MARKS, None), ({}, None)],
)
def test_the_page_shows_the_exported_figures(marks: dict[str, float], usage: Usage | None) -> None:
    turn = turn_with(marks, usage)
    assert page_figures(turn) == exported_figures(turn.record())
    assert len(page_figures(turn)) == (7 if usage else 4 if marks else 0)


def test_a_page_that_shows_another_figure_is_noticed() -> None:
    turn = turn_with()
    record = turn.record()
    record["metrics"]["ttft_ms"] += 0.1
    assert page_figures(turn) != exported_figures(record)


def test_a_short_run_prints_its_table_and_targets_and_writes_the_same_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bare_environment(monkeypatch)
    file = tmp_path / "overhead.json"
    status = command_line.main(["bench", "overhead", "--repeats", "2", "--json", str(file)])
    said = capsys.readouterr().out
    report = json.loads(file.read_text(encoding="utf-8"))
    assert [one["schedule"] for one in report["comparisons"]] == list(SCHEDULES)
    for one in report["comparisons"]:
        assert one["our_ttft"]["n"] == 2
        assert f"{one['our_ttft']['value']:.2f}" in said
        assert one["page_differs"] == 0, "what is shown is what is exported, however fast it was"
    assert len(report["targets"]) == 8
    assert said.count(", met") + said.count(", NOT met") == 8
    assert status == (0 if all(target["met"] for target in report["targets"]) else 1)
    assert report["machine"]["cores"] >= 1


def test_no_repeats_are_refused_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["bench", "overhead", "--repeats", "0"]) == 2
    assert "--repeats" in capsys.readouterr().err
