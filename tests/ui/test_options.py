"""A choice on the page changes the talk's options, and nonsense changes nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from spoken_chat.settings import Settings
from spoken_chat.talk.options import TalkOptions
from spoken_chat.ui.options import DETECTIONS, SWITCHES, WAIT_LIMITS_S, WAITS, chosen

OPTIONS = TalkOptions()


@pytest.mark.parametrize("detection", DETECTIONS)
def test_the_way_of_finding_the_end_of_a_turn_can_be_chosen(detection: str) -> None:
    assert chosen(OPTIONS, "detection", detection) == replace(OPTIONS, detection=detection)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("value", [True, False])
def test_each_switch_can_be_set(name: str, value: bool) -> None:
    assert chosen(OPTIONS, name, value) == replace(OPTIONS, **{name: value})  # type: ignore[arg-type]


def test_a_wait_is_taken_within_its_limits() -> None:
    assert chosen(OPTIONS, "wait", 1.2).wait == 1.2
    assert chosen(OPTIONS, "wait", 1).wait == 1.0
    assert (chosen(OPTIONS, "wait", 0).wait, chosen(OPTIONS, "wait", 99).wait) == WAIT_LIMITS_S


def test_a_finished_turn_never_waits_longer_than_an_unfinished_one() -> None:
    longer = chosen(OPTIONS, "wait_finished", 2.0)
    assert (longer.wait_finished, longer.wait_unfinished) == (2.0, 2.0)
    shorter = chosen(OPTIONS, "wait_unfinished", 0.3)
    assert (shorter.wait_finished, shorter.wait_unfinished) == (0.3, 0.3)
    assert chosen(OPTIONS, "wait_unfinished", 2.0).wait_finished == OPTIONS.wait_finished


@pytest.mark.parametrize("value", [None, "", "0.5", math.nan, math.inf, True, [0.5], {"wait": 1}])
@pytest.mark.parametrize("name", [*WAITS, "detection", "answers", "threshold", "nothing"])
def test_nonsense_changes_nothing(name: str, value: object) -> None:
    assert chosen(OPTIONS, name, value) is OPTIONS


@pytest.mark.parametrize("value", [None, 1, 0, "true", [True]])
@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_takes_only_yes_or_no(name: str, value: object) -> None:
    assert chosen(OPTIONS, name, value) is OPTIONS


def test_the_limits_are_those_of_the_settings() -> None:
    for name in ("silence_wait", "silence_wait_finished", "silence_wait_unfinished"):
        limits = Settings.model_fields[name].metadata
        assert tuple(getattr(one, "ge", None) or getattr(one, "le", None) for one in limits) == WAIT_LIMITS_S
