"""The latency views show the timeline's figures as they are, and nothing that came from elsewhere as markup."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace

import pytest

from spoken_chat.conversation import ImagePart
from spoken_chat.engines import STAGES, StageName, StageState
from spoken_chat.llm import Usage
from spoken_chat.timeline import figure_text
from spoken_chat.ui.faults import FAULTS_ZH
from spoken_chat.ui.figures import COLUMNS, MOST_ROWS, TILES, loading_line, title_view, turn_card, turns_table
from spoken_chat.ui.text import word
from tests.support.engines import ScriptedModel, ScriptedRecognizer, scripted_stages
from tests.support.markup import Element, read
from tests.support.turns import MARKS, USAGE, turn_with

HOSTILE = "\"><img src=x onerror=alert(1)><script>alert(1)</script>'&amp;{{7*7}}${1}"
LANGUAGES = ["en", "zh"]


def rows(table: Element) -> list[Element]:
    """The rows of turns, as they stand."""
    return [row for row in table.find("tr") if "data-turn" in row.attributes]


# One figure


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("ttft_ms", 25.7, "25.7"),
        ("ttft_ms", 25.0, "25.0"),
        ("ttft_ms", 0.0, "0.0"),
        ("ttft_ms", 12345.6, "12345.6"),
        ("ms_per_token", 4.11, "4.11"),
        ("ms_per_token", 4.0, "4.00"),
        ("cached_tokens", 0, "0"),
        ("prompt_tokens", 1212, "1212"),
        ("ttft_ms", None, ""),
        ("ms_per_token", None, ""),
        ("completion_tokens", None, ""),
    ],
)
def test_a_figure_keeps_its_digits_and_is_blank_when_it_was_not_measured(
    name: str, value: float | None, text: str
) -> None:
    assert figure_text(name, value) == text


# The card


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_of_the_card_is_the_rounded_metric(language: str) -> None:
    turn = turn_with()
    shown = read(turn_card(turn, language)).figures()
    assert shown == {
        "first_audio_ms": "450.0",
        "ttft_ms": "25.7",
        "ms_per_token": "4.11",
        "asr_ms": "312.3",
        "completion_tokens": "24",
        "cached_tokens": "1200",
    }
    for name, text in shown.items():
        assert float(text) == turn.record()["metrics"][name]


def test_what_was_not_measured_is_blank_and_has_no_unit() -> None:
    card = read(turn_card(turn_with({}, None), "en"))
    assert set(card.figures().values()) == {""}
    assert len(card.figures()) == len(TILES)
    assert card.find("small") == []
    assert "None" not in card.text


def test_a_count_of_zero_is_a_figure_and_not_a_blank() -> None:
    turn = turn_with(usage=Usage(100, 1, 0))
    shown = read(turn_card(turn, "en")).figures()
    assert (shown["cached_tokens"], shown["completion_tokens"]) == ("0", "1")
    assert shown["ms_per_token"] == "", "one token has no time between tokens"


def test_a_mark_that_contradicts_another_leaves_its_figure_blank() -> None:
    turn = turn_with({**MARKS, "first_content": MARKS["request_sent"] - 1})
    assert read(turn_card(turn, "en")).figures()["ttft_ms"] == ""


def test_the_bar_has_one_part_for_each_stage_that_was_measured_as_wide_as_it_took() -> None:
    turn = turn_with()
    metrics = turn.metrics.as_dict()
    parts = read(turn_card(turn, "en")).find("i")
    assert [part.attributes["style"] for part in parts] == [
        f"flex-grow:{metrics[name]}" for name in ("asr_ms", "ttft_ms", "first_clause_ms", "tts_ms")
    ]
    assert parts[1].attributes["title"] == "TTFT: 25.7 ms"
    typed = turn_with({name: at for name, at in MARKS.items() if not name.startswith("asr")}, kind="typed")
    assert len(read(turn_card(typed, "en")).find("i")) == 3


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", ["push_to_talk", "typed"])
def test_the_card_says_which_kind_of_turn_it_was(kind: str, language: str) -> None:
    head = read(turn_card(turn_with(kind=kind), language)).find(class_="sc-head")  # type: ignore[arg-type]
    assert word(kind, language) in head[0].text


def test_the_engines_and_the_tokens_of_an_image_are_shown() -> None:
    with_image = read(turn_card(turn_with(image=ImagePart("data:,", 192)), "en"))
    assert "scripted-asr · scripted-llm · 192 image tokens" in with_image.text
    assert "image" not in read(turn_card(turn_with(), "en")).text


def test_before_the_first_turn_the_card_says_what_will_be_there() -> None:
    for language in LANGUAGES:
        assert read(turn_card(None, language)).text == word("no_turns", language)


def test_hostile_names_of_engines_are_text() -> None:
    parts = scripted_stages(
        time.monotonic,
        recognizer=ScriptedRecognizer(name=HOSTILE),
        model=ScriptedModel(time.monotonic, name=HOSTILE),
    )
    card = read(turn_card(turn_with(stages=parts), "en"))
    assert card.text.count(HOSTILE) == 2
    assert not card.names() & {"img", "script"}


def test_hostile_ids_of_turns_stay_attributes() -> None:
    turn = turn_with()
    turn.id = HOSTILE
    for view in (read(turn_card(turn, "en")), read(turns_table([turn], "u", "en"))):
        assert len(view.find(data_turn=HOSTILE)) == 1
        assert not view.names() & {"img", "script"}


# The table


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_of_the_table_is_the_rounded_metric(language: str) -> None:
    turn = turn_with()
    (row,) = rows(read(turns_table([turn], "u", language)))
    metrics = turn.record()["metrics"]
    shown = row.figures()
    assert list(shown) == [name for _, name in COLUMNS]
    assert shown["v2v_ms"] == "500.0"
    for name, text in shown.items():
        assert text == str(metrics[name])


def test_a_turn_without_figures_has_a_row_of_blanks() -> None:
    (row,) = rows(read(turns_table([turn_with({}, None)], "u", "en")))
    assert set(row.figures().values()) == {""}


def test_the_table_has_as_many_headings_as_cells() -> None:
    table = read(turns_table([turn_with(), turn_with()], "u", "en"))
    widths = {len(row.find("td")) for row in table.find("tr") if row.find("td")}
    assert widths == {len(table.find("th"))}


def test_turns_stand_newest_first_with_their_numbers() -> None:
    turns = [turn_with(), turn_with(kind="typed"), turn_with()]
    shown = rows(read(turns_table(turns, "u", "en")))
    assert [row.attributes["data-turn"] for row in shown] == [turn.id for turn in reversed(turns)]
    assert [row.find("td")[0].text for row in shown] == ["3", "2", "1"]
    assert [row.find("td")[1].text for row in shown] == ["spoken", "typed", "spoken"]


def test_the_medians_are_of_all_turns_although_only_the_latest_are_listed() -> None:
    turns = [
        turn_with(
            {**MARKS, "first_content": MARKS["request_sent"] + number / 1000}, replace(USAGE, cached_tokens=number)
        )
        for number in range(1, MOST_ROWS + 12)
    ]
    table = read(turns_table(turns, "u", "en"))
    listed = rows(table)
    assert [row.attributes["data-turn"] for row in listed] == [turn.id for turn in reversed(turns[-MOST_ROWS:])]
    assert listed[0].find("td")[0].text == str(len(turns)), "rows keep their numbers"
    (middle,) = table.find("tr", class_="sc-median")
    of_all = statistics.median(turn.metrics.ttft_ms or 0 for turn in turns)
    of_listed = statistics.median(turn.metrics.ttft_ms or 0 for turn in turns[-MOST_ROWS:])
    assert of_all != of_listed
    assert float(middle.figures()["ttft_ms"]) == of_all
    assert middle.figures()["cached_tokens"] == str((len(turns) + 1) // 2)
    assert middle.find(data_metric="ttft_ms")[0].attributes["title"] == f"n = {len(turns)}"


def test_a_median_rests_on_the_turns_that_have_the_figure_and_says_how_many() -> None:
    table = read(turns_table([turn_with(), turn_with(usage=None), turn_with({}, None)], "u", "en"))
    (middle,) = table.find("tr", class_="sc-median")
    said = {str(cell.attributes["data-metric"]): cell.attributes["title"] for cell in middle.find("td", title="n = 1")}
    assert set(said) == {"ms_per_token", "prompt_tokens", "cached_tokens", "completion_tokens"}
    assert middle.figures()["ms_per_token"] == "4.11"


def test_without_any_turn_there_is_no_table() -> None:
    assert turns_table([], "u", "en") == ""


def test_the_link_of_the_export_is_an_attribute_whatever_it_holds() -> None:
    (link,) = read(turns_table([turn_with()], HOSTILE, "en")).find("a")
    assert link.attributes["href"] == HOSTILE


# The line of loading


def states(**given: StageState) -> dict[StageName, StageState]:
    return {name: given.get(name, StageState("ready", "engine")) for name in STAGES}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("status", ["waiting", "loading"])
def test_a_stage_that_is_not_there_yet_is_marked_and_the_line_says_loading(status: str, language: str) -> None:
    line = read(loading_line(states(llm=StageState(status)), language))  # type: ignore[arg-type]
    (whole,) = line.find("div")
    assert whole.attributes["data-status"] == "loading"
    assert line.find("b")[0].text == word("loading", language)
    (stage,) = line.find("span", class_=f"sc-stage sc-{status}")
    assert stage.text == word("stage_llm", language)
    assert len(line.find("span", class_="sc-stage sc-ready")) == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_when_all_are_ready_the_line_says_so_with_the_engines(language: str) -> None:
    line = read(loading_line(states(asr=StageState("ready", "faster-whisper base")), language))
    assert line.find("div")[0].attributes["data-status"] == "ready"
    assert line.find("b")[0].text == word("ready", language)
    assert [span.text for span in line.find("span")] == [
        f"{word('stage_asr', language)} · faster-whisper base",
        f"{word('stage_llm', language)} · engine",
        f"{word('stage_tts', language)} · engine",
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_stage_that_failed_says_why_in_the_language_of_the_page(language: str) -> None:
    failed = StageState("failed", code="llm_unreachable", detail="The server at 127.0.0.1:9 is not there; start it.")
    line = read(loading_line(states(llm=failed), language))
    (stage,) = line.find("span", class_="sc-stage sc-failed")
    reason = FAULTS_ZH["llm_unreachable"] if language == "zh" else failed.detail
    assert stage.text == f"{word('stage_llm', language)}: {word('failed', language)}. {reason}"
    assert line.find("div")[0].attributes["data-status"] != "ready"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_notice_of_a_ready_stage_is_shown_in_the_language_of_the_page(language: str) -> None:
    voice = StageState("ready", "kokoro", "tts_fallback", "The local voice speaks.")
    line = read(loading_line(states(tts=voice), language))
    assert (FAULTS_ZH["tts_fallback"] if language == "zh" else "The local voice speaks.") in line.text


@pytest.mark.parametrize("status", ["ready", "failed"])
def test_hostile_engines_and_faults_are_text(status: str) -> None:
    state = StageState(status, HOSTILE, "unheard_of", HOSTILE)  # type: ignore[arg-type]
    line = read(loading_line(states(llm=state), "zh"))
    assert HOSTILE in line.text
    assert not line.names() & {"img", "script"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_title_is_in_the_language_of_the_page(language: str) -> None:
    title = read(title_view(language))
    assert title.find("h1")[0].text == word("title", language)
    assert title.find("p")[0].text == word("tagline", language)
