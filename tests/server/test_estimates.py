"""How long the last start took is remembered, and a file that cannot be used only costs the estimate."""

from __future__ import annotations

from pathlib import Path

import pytest

from spoken_chat.server.estimates import StartTimes


def test_the_last_start_of_the_same_is_what_is_expected(tmp_path: Path) -> None:
    times = StartTimes(tmp_path / "new" / "starts.json")
    assert times.expected("qwen | 0.31") is None
    times.keep("qwen | 0.31", 95.04)
    times.keep("qwen | 0.31", 80.06)
    times.keep("other", 5.0)
    again = StartTimes(tmp_path / "new" / "starts.json")
    assert (again.expected("qwen | 0.31"), again.expected("other"), again.expected("third")) == (80.1, 5.0, None)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"qwen": "soon"}', '{"qwen": -3}', "\x00"])
def test_a_damaged_file_tells_nothing_and_is_written_anew(content: str, tmp_path: Path) -> None:
    file = tmp_path / "starts.json"
    file.write_text(content)
    times = StartTimes(file)
    assert times.expected("qwen") is None
    times.keep("qwen", 7.0)
    assert times.expected("qwen") == 7.0


def test_a_place_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    times = StartTimes(tmp_path / "file" / "starts.json")
    times.keep("qwen", 7.0)
    assert times.expected("qwen") is None


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b'{"qwen": null}', b'{"qwen": 0}', b'{"qwen": [7]}', b'{"qwen": NaN}']
)
def test_a_time_that_is_none_is_not_expected(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "starts.json"
    file.write_bytes(content)
    assert StartTimes(file).expected("qwen") is None


def test_what_else_the_file_holds_stays_and_no_draft_is_left_behind(tmp_path: Path) -> None:
    file = tmp_path / "starts.json"
    file.write_text('{"模型": 12.5}', encoding="utf-8")
    StartTimes(file).keep("qwen", 7.0)
    assert StartTimes(file).expected("模型") == 12.5
    assert [one.name for one in tmp_path.iterdir()] == ["starts.json"]
