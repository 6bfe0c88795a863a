"""A turn says under what circumstances its figures were taken."""

from __future__ import annotations

from typing import Any

import pytest

from spoken_chat.llm import Usage
from spoken_chat.ui.badges import badges, badges_view
from spoken_chat.ui.words import WORDS
from tests.support.markup import read
from tests.support.turns import turn_with


def said(**about: Any) -> list[str]:
    kind = about.pop("kind", "hands_free")
    return [text for _, text in badges(turn_with(kind=kind, **about), "en")]


def test_a_plain_hands_free_turn_says_that_nothing_was_begun_before_its_end() -> None:
    assert said() == ["hands-free", "no speculation"]


@pytest.mark.parametrize("kind", ["push_to_talk", "typed"])
def test_turns_whose_end_needs_no_guess_say_nothing_of_speculation(kind: str) -> None:
    assert said(kind=kind) == [WORDS[kind][0]]


def test_hits_and_misses_say_how_many_starts_were_thrown_away() -> None:
    assert said(speculation="hit") == ["hands-free", "speculation hit"]
    assert said(speculation="hit", dropped_starts=1) == ["hands-free", "speculation hit · dropped starts 1"]
    assert said(speculation="miss", dropped_starts=2) == ["hands-free", "speculation miss · dropped starts 2"]


def test_everything_that_makes_a_turn_special_is_said() -> None:
    assert said(speculation="hit", interrupted=True, reopened=2, order="after_idle") == [
        "hands-free", "speculation hit", "interrupted", "reopened ×2", "after idle"
    ]  # fmt: skip
    assert said(order="first")[-1] == "first turn"


def test_a_turn_that_was_spoken_over_is_not_called_stopped_as_well() -> None:
    stopped, interrupted, failed = turn_with(), turn_with(interrupted=True), turn_with()
    stopped.status = interrupted.status = "cancelled"
    failed.status = "failed"
    assert [text for _, text in badges(stopped, "en")] == ["push-to-talk", "stopped"]
    assert [text for _, text in badges(interrupted, "en")] == ["push-to-talk", "interrupted"]
    assert [text for _, text in badges(failed, "en")] == ["push-to-talk", "failed"]


@pytest.mark.parametrize(
    ("usage", "shown"),
    [
        (None, False),
        (Usage(1500, 20, 1360), False),
        (Usage(1500, 20, None, 1360), False),
        (Usage(1500, 20, 1360, 1360), False),
        (Usage(1500, 20, 1088, 1360), True),
    ],
)
def test_a_turn_whose_prefix_was_not_in_the_cache_says_so(usage: Usage | None, shown: bool) -> None:
    turn = turn_with()
    turn.usage = usage
    assert ("prefix not cached" in [text for _, text in badges(turn, "en")]) is shown
    assert turn.record()["prefix_missed"] is (usage.prefix_missed if usage is not None else None)


def test_the_markup_has_one_element_for_each_badge_in_the_language_of_the_page() -> None:
    view = read(badges_view(turn_with(kind="hands_free", speculation="hit"), "zh"))
    assert [badge.text for badge in view.find("span")] == ["免提", "预备命中"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_missed_prefix_has_a_badge_of_its_own_in_the_language_of_the_page(language: str) -> None:
    view = read(badges_view(turn_with(usage=Usage(1500, 20, 0, 1360)), language))
    (badge,) = view.find("span", class_="sc-badge sc-prefix-missed")
    assert badge.text == WORDS["prefix_missed"][language == "zh"]
