"""A page shows what its turns say as it happens; whatever is said stays text, and turns stay apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spoken_chat.audio import TTS_RATE
from spoken_chat.errors import ChatError
from spoken_chat.events import AudioOut, Ended, Heard, Mood, Notice, ReplyText, TurnEvent
from spoken_chat.session import ChatSession
from spoken_chat.turn import Turn
from spoken_chat.ui.faults import FAULTS_ZH
from spoken_chat.ui.sound import ReplySounds
from spoken_chat.ui.text import word
from spoken_chat.ui.transcript import THINKING, Page
from tests.support.engines import scripted_persona
from tests.support.markup import read
from tests.support.turns import turn_with

HOSTILE = "<img src=x onerror=alert(1)><script>alert(1)</script> & {{7*7}} ${1}"


class Shown:
    """A page, its sounds, and the turns begun on it."""

    def __init__(self, language: str = "en", greeting: str = "Hello!") -> None:
        persona = replace(scripted_persona(), greeting=greeting)
        self.page = Page(ChatSession(persona, persona.voices[0], 4000), language)
        self.sounds = ReplySounds()

    def begin(self, *, spoken: bool = False) -> tuple[Turn, Callable[[TurnEvent], None]]:
        """A new turn, and what its events do."""
        placeholder = self.page.wait_for_words() if spoken else None
        turn = turn_with()
        return turn, self.page.begin(turn, self.sounds, placeholder)

    @property
    def said(self) -> list[tuple[str, str]]:
        """Who said what, as a person sees it."""
        return [(message["role"], read(str(message["content"])).text) for message in self.page.messages]


@pytest.fixture
def shown() -> Shown:
    return Shown()


def test_the_words_take_the_place_of_what_stood_for_them(shown: Shown) -> None:
    _, tap = shown.begin(spoken=True)
    assert shown.said == [("user", "🎙 " + word("listening", "en"))]
    tap(Heard("what is your name"))
    assert shown.said == [("user", "what is your name"), ("assistant", THINKING)]
    tap(Ended("completed", None))
    assert shown.said == [("user", "what is your name")]


def test_where_nothing_was_heard_the_place_is_given_up_for_the_fault(shown: Shown) -> None:
    _, tap = shown.begin(spoken=True)
    tap(Ended("failed", ChatError("nothing_heard", "Nothing was heard; speak up.")))
    assert shown.said == [("assistant", "⚠️ Nothing was heard; speak up.")]


def test_a_turn_stopped_before_its_words_came_leaves_no_place_behind(shown: Shown) -> None:
    _, tap = shown.begin(spoken=True)
    tap(Ended("cancelled", None))
    assert shown.said == [("assistant", "■ " + word("stopped", "en"))]


def test_typed_words_are_shown_by_whoever_took_them_and_not_twice(shown: Shown) -> None:
    shown.page.say("hello")
    _, tap = shown.begin()
    tap(Heard("hello"))
    assert shown.said == [("user", "hello"), ("assistant", THINKING)]
    tap(ReplyText("Hi."))
    assert shown.said == [("user", "hello"), ("assistant", "Hi.")]


def test_what_stands_for_a_reply_goes_when_none_comes(shown: Shown) -> None:
    _, tap = shown.begin()
    tap(Heard("hello"))
    tap(Ended("failed", ChatError("llm_timeout", "The model sent nothing; try again.")))
    assert shown.said == [("assistant", "⚠️ The model sent nothing; try again.")]


def test_words_of_two_recordings_take_their_own_places(shown: Shown) -> None:
    _, first = shown.begin(spoken=True)
    _, second = shown.begin(spoken=True)
    first(Ended("cancelled", None))
    second(Heard("the second"))
    assert shown.said == [("user", "the second"), ("assistant", "■ stopped"), ("assistant", THINKING)]


def test_a_notice_of_the_page_does_not_take_the_place_of_the_words(shown: Shown) -> None:
    _, tap = shown.begin(spoken=True)
    shown.page.tell("by the way")
    tap(Heard("hello"))
    assert shown.said == [("user", "hello"), ("assistant", "by the way"), ("assistant", THINKING)]


def test_a_reply_grows_in_one_message(shown: Shown) -> None:
    _, tap = shown.begin()
    for text, whole in [("\n Hel", "Hel"), ("lo ", "Hello "), ("you.", "Hello you.")]:
        tap(ReplyText(text))
        assert shown.said == [("assistant", whole)]


def test_the_mood_stands_before_the_reply_and_is_no_part_of_its_words(shown: Shown) -> None:
    turn, tap = shown.begin()
    rest = turn._tags.feed("[happy] Hello.")
    tap(Mood("happy"))
    assert shown.said == [], "a mood alone is no reply yet"
    tap(ReplyText(rest))
    assert shown.said == [("assistant", "[happy] Hello.")]


def test_a_notice_in_between_does_not_break_the_reply(shown: Shown) -> None:
    _, tap = shown.begin()
    tap(ReplyText("Hello "))
    tap(Notice("tts_fallback", "The local voice speaks."))
    tap(ReplyText("you."))
    assert shown.said == [("assistant", "Hello you."), ("assistant", "ℹ️ The local voice speaks.")]


def test_events_of_an_interrupted_turn_stay_in_its_own_message(shown: Shown) -> None:
    shown.page.say("one")
    _, first = shown.begin()
    first(ReplyText("First "))
    shown.page.say("two")
    _, second = shown.begin()
    second(ReplyText("Second "))
    first(ReplyText("ends."))
    second(ReplyText("goes on."))
    assert shown.said == [
        ("user", "one"), ("assistant", "First ends."), ("user", "two"), ("assistant", "Second goes on.")
    ]  # fmt: skip


def test_an_interrupted_turn_that_had_not_replied_begins_no_reply_in_the_next_ones_message(shown: Shown) -> None:
    _, first = shown.begin()
    _, second = shown.begin()
    second(ReplyText("Second."))
    first(ReplyText("First."))
    second(ReplyText(" More."))
    assert shown.said == [("assistant", "Second. More."), ("assistant", "First.")]


async def test_the_sound_of_a_turn_goes_out_under_its_own_id_and_ends_with_it(shown: Shown) -> None:
    first, tap_first = shown.begin()
    second, tap_second = shown.begin()
    tap_first(AudioOut(np.array([1], np.int16)))
    tap_second(AudioOut(np.array([2], np.int16)))
    tap_first(Ended("cancelled", None))
    tap_second(Ended("completed", None))
    for turn, sound in ((first, b"\x01\x00"), (second, b"\x02\x00")):
        stream = shown.sounds.take(turn.id)
        assert stream is not None
        assert [chunk async for chunk in stream] == [sound]


def test_the_whole_sound_of_the_turn_that_spoke_last_can_be_heard_again(shown: Shown) -> None:
    first, tap = shown.begin()
    assert shown.page.sound_of(first) is None
    for samples in ([1, 2], [3]):
        tap(AudioOut(np.array(samples, np.int16)))
    again = shown.page.sound_of(first)
    assert again is not None
    assert (again[0], again[1].tolist()) == (TTS_RATE, [1, 2, 3])
    second, tap = shown.begin()
    assert shown.page.sound_of(second) is None
    tap(AudioOut(np.array([4], np.int16)))
    assert shown.page.sound_of(first) is None
    sound = shown.page.sound_of(second)
    assert sound is not None
    assert sound[1].tolist() == [4]


def test_whatever_is_said_is_shown_as_text() -> None:
    shown = Shown(greeting=HOSTILE)
    shown.page.greet()
    shown.page.say(HOSTILE)
    _, tap = shown.begin(spoken=True)
    tap(Heard(HOSTILE))
    for piece in (HOSTILE[:7], HOSTILE[7:]):
        tap(ReplyText(piece))
    tap(Notice("unheard_of", HOSTILE))
    tap(Ended("failed", ChatError("unheard_of", HOSTILE)))
    assert len(shown.said) == 6
    for message, (_, text) in zip(shown.page.messages, shown.said, strict=True):
        assert text.endswith(HOSTILE)
        assert read(message["content"]).names() == set(), "no markup of theirs, and none of ours"


def test_a_stopped_turn_and_a_failed_one_say_so_in_the_language_of_the_page() -> None:
    shown = Shown("zh")
    _, tap = shown.begin()
    tap(Notice("tts_fallback", "The local voice speaks."))
    tap(Ended("cancelled", None))
    _, tap = shown.begin()
    tap(Ended("failed", ChatError("llm_empty", "The model sent an empty reply.")))
    _, tap = shown.begin()
    tap(Ended("completed", None))
    assert [text for _, text in shown.said] == [
        "ℹ️ " + FAULTS_ZH["tts_fallback"], "■ " + word("stopped", "zh"), "⚠️ " + FAULTS_ZH["llm_empty"]
    ]  # fmt: skip


def test_an_image_is_shown_as_the_file_it_is(shown: Shown, tmp_path: Path) -> None:
    shown.page.show_image(tmp_path / "photo.png")
    (message,) = shown.page.messages
    assert message["role"] == "user"
    assert message["content"]["path"] == str(tmp_path / "photo.png")


def test_a_greeting_is_not_repeated_right_after_itself(shown: Shown) -> None:
    shown.page.greet()
    shown.page.greet()
    assert shown.said == [("assistant", "Hello!")]
    shown.page.say("hi")
    shown.page.greet()
    assert shown.said[-1] == ("assistant", "Hello!")
    assert len(shown.said) == 3
