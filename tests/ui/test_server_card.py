"""The card of the model server shows what it says, and leaves blank what it does not say."""

from __future__ import annotations

import pytest

from spoken_chat.server.watch import ServerCard
from spoken_chat.ui.server_card import SHOWN, server_view
from spoken_chat.ui.text import word
from tests.support.markup import read
from tests.support.turns import HOSTILE

WHOLE = ServerCard("qwen36", "0.31.0", 18.6, 113_981, 544, 272, 98.1, 1, 0, 56.2)


def figures(card: ServerCard, language: str = "en") -> dict[str, str]:
    view = read(server_view(card, language))
    return {one.attributes["data-server"]: one.text for one in [*view.find("b"), *view.find("dd")]}


def test_every_figure_is_the_servers_own() -> None:
    assert figures(WHOLE) == {
        "model": "qwen36", "version": "0.31.0", "weights_gib": "18.6GiB", "kv_tokens": "113,981", "block_tokens": "544",
        "prefix_hit_percent": "98.1%", "running": "1", "waiting": "0", "mtp_accepted_percent": "56.2%",
    }  # fmt: skip


def test_what_is_not_known_is_blank() -> None:
    blank = figures(ServerCard("qwen36"))
    assert blank.pop("model") == "qwen36"
    assert blank == {name: "" for name, _ in SHOWN}


def test_a_server_that_tells_nothing_has_no_card() -> None:
    assert server_view(None, "en") == ""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_weights_of_noise_are_labelled(language: str) -> None:
    label = word("dummy_weights", language)
    assert label not in server_view(WHOLE, language)
    assert label in server_view(ServerCard("x", dummy_weights=True), language)


def test_a_hostile_name_is_text() -> None:
    card = ServerCard(HOSTILE, version=HOSTILE)
    assert figures(card)["model"] == HOSTILE and figures(card)["version"] == HOSTILE


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_figure_has_its_name_and_what_it_means_in_the_language_of_the_page(language: str) -> None:
    view = read(server_view(WHOLE, language))
    assert [name.text for name in view.find("dt")] == [word(f"server_{name}", language) for name, _ in SHOWN]
    assert [one.attributes["title"] for one in view.find("div") if "title" in one.attributes] == [
        word(f"server_{name}_info", language) for name, _ in SHOWN
    ]
    assert word("server", language) in view.text


@pytest.mark.parametrize("field", ["prefix_hit_percent", "mtp_accepted_percent"])
def test_none_at_all_is_a_figure_and_not_a_blank(field: str) -> None:
    assert figures(ServerCard("x", **{field: 0.0}))[field] == "0.0%"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_hostile_card_has_no_elements_of_its_own(language: str) -> None:
    hostile = read(server_view(ServerCard(HOSTILE, version=HOSTILE, dummy_weights=True), language))
    plain = read(server_view(ServerCard("x", version="1", dummy_weights=True), language))
    assert hostile.names() == plain.names()
    assert [set(one.attributes) for one in hostile.find()] == [set(one.attributes) for one in plain.find()]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_label_of_noise_stands_once_beside_the_name(language: str) -> None:
    (label,) = read(server_view(ServerCard("x", dummy_weights=True), language)).find("span")
    assert (label.text, label.attributes["class"]) == (word("dummy_weights", language), "sc-badge sc-dummy")
