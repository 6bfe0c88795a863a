"""The last turns stand side by side on one scale of time, which runs from the end of speech."""

from __future__ import annotations

import re

import pytest

from spoken_chat.ui.waterfall import MOST_SHOWN, MOST_WRITING, Scale, waterfalls
from tests.support.markup import Element, read
from tests.support.turns import GUESSED, HOSTILE, MARKS, turn_with

LATE = {name: at + 0.5 for name, at in MARKS.items()}


def charts(view: str) -> list[Element]:
    return read(view).find("figure")


def span(chart: Element, stage: str) -> tuple[float, float]:
    """Where the bar of `stage` begins and ends, in per cent of the scale."""
    (bar,) = [one for one in chart.find("i") if f"sc-span sc-{stage}" in str(one.attributes["class"])]
    found = re.fullmatch(r"left:([\d.]+)%;width:([\d.]+)%", str(bar.attributes["style"]))
    assert found is not None
    left, width = map(float, found.groups())
    return left, left + width


def stages(chart: Element) -> list[str]:
    """The stages that have a bar, in order."""
    classes = [str(one.attributes["class"]).split() for one in chart.find("i")]
    return [names[1].removeprefix("sc-") for names in classes if names[0] == "sc-span"]


def test_a_bar_stands_where_its_stage_began_and_ended_after_the_end_of_speech() -> None:
    (chart,) = charts(waterfalls([turn_with(GUESSED, kind="hands_free", speculation="hit")], "en"))
    whole = (10.0528 - 9.6) * 1.03
    for stage, first, last in [("wait", 9.6, 10.0), ("asr", 9.8, 9.861), ("tts", 9.95, 9.987)]:
        assert span(chart, stage) == pytest.approx(((first - 9.6) / whole * 100, (last - 9.6) / whole * 100), abs=0.02)


def test_work_done_before_the_endpoint_lies_in_the_shade_and_what_follows_it_does_not() -> None:
    (chart,) = charts(waterfalls([turn_with(GUESSED, kind="hands_free", speculation="hit")], "en"))
    endpoint = span(chart, "wait")[1]
    (shade,) = chart.find("i", class_="sc-unsure")
    assert shade.attributes["style"] == f"left:0.00%;width:{endpoint:.2f}%"
    assert span(chart, "tts")[1] < endpoint < span(chart, "play")[0]
    assert span(chart, "held")[0] == pytest.approx(span(chart, "tts")[1], abs=0.02)


def test_only_a_hit_was_held_back() -> None:
    (chart,) = charts(waterfalls([turn_with(LATE, kind="hands_free", speculation="miss")], "en"))
    assert stages(chart) == ["wait", "asr", "ttft", "writing", "first_clause", "tts", "wire", "play"]


def test_time_of_a_turn_that_was_not_hands_free_runs_from_its_input_and_has_no_shade() -> None:
    typed = {name: at for name, at in MARKS.items() if not name.startswith("asr")}
    (chart,) = charts(waterfalls([turn_with(typed, kind="typed")], "en"))
    assert stages(chart) == ["ttft", "writing", "first_clause", "tts", "wire", "play"]
    assert chart.find("i", class_="sc-unsure") == []
    assert span(chart, "ttft")[0] == pytest.approx(320 / (500 * 1.03) * 100, abs=0.02)


def test_all_turns_share_one_scale() -> None:
    quick, slow = turn_with(GUESSED, kind="hands_free"), turn_with(LATE)
    slow_chart, quick_chart = charts(waterfalls([quick, slow], "en"))
    assert span(slow_chart, "asr")[0] == pytest.approx(500 / (1000 * 1.03) * 100, abs=0.02)
    assert span(quick_chart, "asr")[0] == pytest.approx(200 / (1000 * 1.03) * 100, abs=0.02)
    axes = [chart.find("div", class_="sc-axis")[0].text for chart in (slow_chart, quick_chart)]
    assert axes[0] == axes[1] != ""


def test_a_long_text_does_not_squeeze_the_rest_and_its_bar_runs_out_of_the_picture() -> None:
    (chart,) = charts(waterfalls([turn_with({**MARKS, "stream_end": 60.0})], "en"))
    whole = 500 * MOST_WRITING * 1.03
    assert span(chart, "asr")[1] == pytest.approx(312.34 / whole * 100, abs=0.02)
    assert span(chart, "writing")[1] == pytest.approx(100, abs=0.02)
    (cut,) = [bar for bar in chart.find("i") if "sc-cut" in str(bar.attributes["class"])]
    assert "LLM turn: 49680.0 ms" in str(cut.attributes["title"]), "how long it really took is told"


def test_each_bar_tells_its_figure_as_the_timeline_rounded_it() -> None:
    turn = turn_with(GUESSED, kind="hands_free", speculation="hit")
    (chart,) = charts(waterfalls([turn], "en"))
    titles = [str(bar.attributes["title"]) for bar in chart.find("i") if "title" in bar.attributes]
    for said in ("endpoint delay: 400.0 ms", "ASR: 61.0 ms", "TTFT: 58.4 ms", "voice: 37.0 ms", "playback: 42.4 ms"):
        assert said in titles
    assert "V2V 452.8 ms" in chart.find("figcaption")[0].text


def test_a_turn_that_nobody_has_heard_yet_tells_its_first_audio() -> None:
    silent = {name: at for name, at in MARKS.items() if not name.startswith("browser")}
    (chart,) = charts(waterfalls([turn_with(silent)], "en"))
    assert "first audio 450.0 ms" in chart.find("figcaption")[0].text
    assert chart.find("i", class_="sc-heard") == []


def test_the_moment_of_hearing_is_marked_at_v2v() -> None:
    (chart,) = charts(waterfalls([turn_with()], "en"))
    (line,) = chart.find("i", class_="sc-heard")
    assert line.attributes["style"] == f"left:{100 / 1.03:.2f}%"


def test_the_latest_turns_are_shown_newest_first_with_their_numbers() -> None:
    turns = [turn_with() for _ in range(MOST_SHOWN + 3)]
    shown = charts(waterfalls(turns, "en"))
    assert [chart.attributes["data-turn"] for chart in shown] == [turn.id for turn in reversed(turns[3:])]
    assert shown[0].find("figcaption")[0].text.startswith(f"#{MOST_SHOWN + 3} ·")


def test_a_turn_in_which_no_stage_came_to_its_end_has_no_chart() -> None:
    stopped = turn_with({"endpoint": 3.0, "asr_start": 3.0})
    chart, older = charts(waterfalls([turn_with(), stopped, turn_with({}, None), turn_with()], "en"))
    assert [one.find("figcaption")[0].text[:2] for one in (chart, older)] == ["#4", "#1"]
    assert waterfalls([stopped], "en") == ""


def test_before_anything_took_time_there_is_nothing_to_show() -> None:
    assert waterfalls([], "en") == ""
    assert waterfalls([turn_with({}, None)], "en") == ""


def test_contradicting_marks_leave_their_bar_out() -> None:
    (chart,) = charts(waterfalls([turn_with({**MARKS, "asr_done": MARKS["asr_start"] - 1})], "en"))
    assert "asr" not in stages(chart)


def test_hostile_ids_stay_attributes() -> None:
    turn = turn_with()
    turn.id = HOSTILE
    view = read(waterfalls([turn], "zh"))
    assert len(view.find(data_turn=HOSTILE)) == 1
    assert not view.names() & {"img", "script"}


@pytest.mark.parametrize(
    ("start", "end", "steps"),
    [
        (0, 515, [0, 200, 400]),
        (0, 1030, [0, 500, 1000]),
        (0, 90, [0, 50]),
        (-300, 600, [0, 500]),
        (0, 4, [0, 1, 2, 3, 4]),
    ],
)
def test_the_scale_has_a_few_round_steps(start: float, end: float, steps: list[float]) -> None:
    assert Scale(start, end).steps() == steps
