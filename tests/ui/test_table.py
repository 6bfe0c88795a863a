"""The table shows each turn's figures, and medians and percentiles that rest on all of them."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pytest

from spoken_chat.timeline import percentiles
from spoken_chat.ui.table import COLUMNS, DEFINED, MOST_ROWS, turns_table
from spoken_chat.ui.text import definition
from tests.support.markup import Element, read
from tests.support.turns import GUESSED, HOSTILE, MARKS, USAGE, turn_with

LANGUAGES = ["en", "zh"]


def rows(table: Element) -> list[Element]:
    """The rows of turns, as they stand."""
    return [row for row in table.find("tr") if "data-turn" in row.attributes]


def counts(table: Element) -> dict[str, str]:
    """On how many turns each figure rests."""
    (row,) = table.find("tr", class_="sc-count")
    return {str(cell.attributes["data-count"]): cell.text for cell in row.find("td") if "data-count" in cell.attributes}


def many_turns() -> Element:
    turns = [
        turn_with(
            {**MARKS, "first_content": MARKS["request_sent"] + number / 1000}, replace(USAGE, cached_tokens=number)
        )
        for number in range(1, MOST_ROWS + 12)
    ]
    return read(turns_table(turns, "u", "en"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_of_the_table_is_the_rounded_metric(language: str) -> None:
    turn = turn_with(GUESSED, kind="hands_free")
    (row,) = rows(read(turns_table([turn], "u", language)))
    metrics = turn.record()["metrics"]
    assert list(row.figures()) == list(COLUMNS)
    assert row.figures()["v2v_ms"] == "452.8"
    for name, text in row.figures().items():
        assert text == str(metrics[name])


def test_a_turn_without_figures_has_a_row_of_blanks() -> None:
    (row,) = rows(read(turns_table([turn_with({}, None)], "u", "en")))
    assert set(row.figures().values()) == {""}


def test_the_table_has_as_many_headings_as_cells() -> None:
    table = read(turns_table([turn_with(), turn_with()], "u", "en"))
    widths = {len(row.find("td")) for row in table.find("tr") if row.find("td")}
    assert widths == {len(table.find("th"))}


def test_turns_stand_newest_first_with_their_numbers_and_circumstances() -> None:
    turns = [turn_with(), turn_with(kind="typed"), turn_with(GUESSED, kind="hands_free", speculation="hit")]
    shown = rows(read(turns_table(turns, "u", "en")))
    assert [row.attributes["data-turn"] for row in shown] == [turn.id for turn in reversed(turns)]
    assert [row.find("td")[0].text for row in shown] == ["3", "2", "1"]
    assert [row.find("td")[1].text for row in shown] == ["hands-free · speculation hit", "typed", "push-to-talk"]


def test_the_medians_are_of_all_turns_although_only_the_latest_are_listed() -> None:
    table = many_turns()
    assert len(rows(table)) == MOST_ROWS
    (middle,) = table.find("tr", class_="sc-median")
    assert float(middle.figures()["ttft_ms"]) == statistics.median(range(1, MOST_ROWS + 12))
    assert middle.figures()["cached_tokens"] == str((MOST_ROWS + 12) // 2)
    assert rows(table)[0].find("td")[0].text == str(MOST_ROWS + 11), "rows keep their numbers"


def test_the_95th_percentiles_are_those_of_the_timeline() -> None:
    turns = [turn_with({**MARKS, "asr_done": MARKS["asr_start"] + number / 10}) for number in range(1, 8)]
    (row,) = read(turns_table(turns, "u", "en")).find("tr", class_="sc-p95")
    expected = percentiles([turn.metrics for turn in turns], 0.95)
    assert float(row.figures()["asr_ms"]) == expected.asr_ms
    assert expected.asr_ms is not None
    assert 600 < expected.asr_ms < 700


def test_a_figure_rests_on_the_turns_that_have_it_and_says_how_many() -> None:
    table = read(turns_table([turn_with(), turn_with(usage=None), turn_with({}, None)], "u", "en"))
    assert (counts(table)["ttft_ms"], counts(table)["ms_per_token"]) == ("2", "1")
    assert counts(table)["endpoint_delay_ms"] == "0"
    (middle,) = table.find("tr", class_="sc-median")
    assert middle.figures()["ms_per_token"] == "4.11"
    assert middle.figures()["endpoint_delay_ms"] == ""


def test_hits_misses_and_turns_without_speculation_are_counted_over_the_hands_free_ones() -> None:
    turns = [
        turn_with(kind="hands_free", speculation="hit", dropped_starts=1),
        turn_with(kind="hands_free", speculation="hit"),
        turn_with(kind="hands_free", speculation="miss", dropped_starts=2),
        turn_with(kind="hands_free"),
        turn_with(kind="typed"),
    ]
    (said,) = read(turns_table(turns, "u", "en")).find("b", class_="sc-counts")
    assert said.text == "hits 2 · misses 1 (dropped starts 3) · off 1"
    assert read(turns_table([turn_with(kind="typed")], "u", "en")).find("b", class_="sc-counts") == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_figure_of_the_table_is_defined_in_one_line(language: str) -> None:
    table = read(turns_table([turn_with()], "u", language))
    assert set(COLUMNS) <= set(DEFINED)
    told = [line.text for line in table.find("dd")]
    assert told == [definition(name, language) for name in DEFINED]
    assert all("\n" not in line and len(line) < 160 for line in told)


def test_without_any_turn_there_is_no_table() -> None:
    assert turns_table([], "u", "en") == ""


def test_what_comes_from_elsewhere_stays_in_attributes() -> None:
    turn = turn_with()
    turn.id = HOSTILE
    table = read(turns_table([turn], HOSTILE, "en"))
    (link,) = table.find("a")
    assert link.attributes["href"] == HOSTILE
    assert len(table.find(data_turn=HOSTILE)) == 1
    assert not table.names() & {"img", "script"}
