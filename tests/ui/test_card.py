"""The card shows the timeline's figures as they are, and nothing that came from elsewhere as markup."""

from __future__ import annotations

import time

import pytest

from spoken_chat.conversation import ImagePart
from spoken_chat.llm import Usage
from spoken_chat.ui.card import PARTS, TILES, turn_card
from spoken_chat.ui.text import definition, figure_name, word
from tests.support.engines import ScriptedModel, ScriptedRecognizer, scripted_stages
from tests.support.markup import Element, read
from tests.support.turns import GUESSED, HOSTILE, MARKS, turn_with

LANGUAGES = ["en", "zh"]


def parts(card: Element) -> dict[str, str]:
    """The text of each part of V2V that is labelled."""
    return {str(item.attributes["data-part"]): item.text for item in card.find("li")}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_of_the_card_is_the_rounded_metric(language: str) -> None:
    turn = turn_with()
    shown = read(turn_card(turn, language)).figures()
    assert shown == {
        "v2v_ms": "500.0",
        "ttft_ms": "25.7",
        "ms_per_token": "4.11",
        "first_audio_ms": "450.0",
        "endpoint_delay_ms": "",
        "asr_ms": "312.3",
        "completion_tokens": "24",
        "cached_tokens": "1200",
    }
    for name, text in shown.items():
        assert (float(text) if text else None) == turn.record()["metrics"][name]


def test_what_was_not_measured_is_blank_and_has_no_unit() -> None:
    card = read(turn_card(turn_with({}, None), "en"))
    assert set(card.figures().values()) == {""}
    assert len(card.figures()) == len(TILES)
    assert card.find("small") == []
    assert "None" not in card.text


def test_a_count_of_zero_is_a_figure_and_not_a_blank() -> None:
    shown = read(turn_card(turn_with(usage=Usage(100, 1, 0)), "en")).figures()
    assert (shown["cached_tokens"], shown["completion_tokens"]) == ("0", "1")
    assert shown["ms_per_token"] == "", "one token has no time between tokens"


def test_a_mark_that_contradicts_another_leaves_its_figure_blank() -> None:
    turn = turn_with({**MARKS, "first_content": MARKS["request_sent"] - 1})
    assert read(turn_card(turn, "en")).figures()["ttft_ms"] == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_parts_of_v2v_are_each_shown_with_their_figure_and_as_wide_as_they_took(language: str) -> None:
    turn = turn_with(GUESSED, kind="hands_free", speculation="hit")
    card = read(turn_card(turn, language))
    metrics = turn.record()["metrics"]
    assert list(parts(card)) == [name for _, name in PARTS]
    for name, text in parts(card).items():
        assert text == f"{figure_name(name, language)} {metrics[name]} ms"
    segments = [part for part in card.find("i") if "style" in part.attributes]
    assert [part.attributes["style"] for part in segments] == [f"flex-grow:{metrics[name]}" for _, name in PARTS]
    assert sum(metrics[name] for _, name in PARTS) == pytest.approx(metrics["v2v_ms"], abs=0.2)


def test_a_turn_that_was_not_hands_free_has_no_endpoint_delay_among_its_parts() -> None:
    assert list(parts(read(turn_card(turn_with(), "en")))) == ["first_audio_ms", "wire_ms", "playback_ms"]


def test_parts_that_the_browser_has_not_told_yet_are_blank_and_take_no_room() -> None:
    silent = {name: at for name, at in GUESSED.items() if not name.startswith("browser")}
    card = read(turn_card(turn_with(silent, kind="hands_free"), "en"))
    assert parts(card)["wire_ms"] == "wire "
    assert parts(card)["playback_ms"] == "playback "
    assert len([part for part in card.find("i") if "style" in part.attributes]) == 2


def test_each_tile_says_what_its_figure_means() -> None:
    tiles = [tile for tile in read(turn_card(turn_with(), "en")).find("div") if "title" in tile.attributes]
    assert [tile.attributes["title"] for tile in tiles] == [definition(name, "en") for name, _ in TILES]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", ["hands_free", "push_to_talk", "typed"])
def test_the_card_says_which_kind_of_turn_it_was(kind: str, language: str) -> None:
    card = read(turn_card(turn_with(kind=kind), language))  # type: ignore[arg-type]
    assert [badge.text for badge in card.find("span", class_=f"sc-badge sc-{kind}")] == [word(kind, language)]


def test_the_engines_and_the_tokens_of_an_image_are_shown() -> None:
    with_image = read(turn_card(turn_with(image=ImagePart("data:,", 192)), "en"))
    assert "scripted-asr · scripted-llm · 192 image tokens" in with_image.text
    assert "image" not in read(turn_card(turn_with(), "en")).text


def test_before_the_first_turn_the_card_says_what_will_be_there() -> None:
    for language in LANGUAGES:
        assert read(turn_card(None, language)).text == word("no_turns", language)


def test_hostile_names_of_engines_are_text() -> None:
    stages = scripted_stages(
        time.monotonic,
        recognizer=ScriptedRecognizer(name=HOSTILE),
        model=ScriptedModel(time.monotonic, name=HOSTILE),
    )
    card = read(turn_card(turn_with(stages=stages), "en"))
    assert card.text.count(HOSTILE) == 2
    assert not card.names() & {"img", "script"}


def test_a_hostile_id_of_a_turn_stays_an_attribute() -> None:
    turn = turn_with()
    turn.id = HOSTILE
    card = read(turn_card(turn, "en"))
    assert len(card.find(data_turn=HOSTILE)) == 1
    assert not card.names() & {"img", "script"}
