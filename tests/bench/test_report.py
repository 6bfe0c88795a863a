from __future__ import annotations

import json

import pytest

from spoken_chat.bench.report import Median, at_least, at_most, median, table, write_json
from spoken_chat.errors import ChatError


def test_a_median_says_how_many_values_and_their_range():
    assert median([3.0, 1.0, 2.0]) == Median(2.0, 3, 1.0, 3.0)
    with pytest.raises(ValueError, match="at least one"):
        median([])


def test_a_target_is_met_on_its_bound():
    assert at_least("fast", 2.5, 2.5).met
    assert not at_least("fast", 2.49, 2.5).met
    assert at_most("small", 1.0, 1.0, "points").line() == "small: 1.00 points, met"
    assert at_most("small", 1.1, 1.0).line() == "small: 1.10, NOT met"


def test_a_table_lines_up_numbers_and_wide_characters():
    lines = table(["file", "ms"], [["你好", 12.351], ["a", 3.0]]).splitlines()
    assert lines == ["file     ms", "----  -----", "你好  12.35", "a      3.00"]


def test_a_table_without_rows_is_its_head():
    assert table(["a", "b"], []).splitlines() == ["a  b", "-  -"]


def test_json_holds_the_figures_the_targets_and_the_machine(tmp_path):
    file = tmp_path / "report.json"
    write_json(file, {"speed": 3.0}, [at_least("fast", 3.0, 2.5)])
    written = json.loads(file.read_text(encoding="utf-8"))
    assert written["speed"] == 3.0
    assert written["targets"] == [{"name": "fast", "measured": 3.0, "unit": "", "met": True}]
    assert written["machine"]["cores"] >= 1


def test_json_that_cannot_be_written_is_one_clear_error(tmp_path):
    with pytest.raises(ChatError) as caught:
        write_json(tmp_path / "no folder" / "report.json", {}, [])
    assert caught.value.code == "report_not_written"


def test_without_a_file_nothing_is_written():
    write_json(None, {}, [])
