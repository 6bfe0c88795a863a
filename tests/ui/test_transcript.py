"""A page shows what its talk tells as it happens; whatever is said stays text, and turns stay apart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from spoken_chat.audio import TTS_RATE
from spoken_chat.conversation import ImagePart
from spoken_chat.errors import ChatError
from spoken_chat.events import AudioOut, Ended, Heard, Mood, Notice, ReplyText, Status, TurnEvent
from spoken_chat.settings import load
from spoken_chat.talk.events import (
    Caption,
    Committed,
    Ducked,
    SpeechStarted,
    SpeechStopped,
    TalkFault,
    TurnStarted,
    TurnTold,
    TurnUpdated,
    UtteranceDropped,
)
from spoken_chat.talk.registry import TalkRegistry
from spoken_chat.turn import SpokenClause, Turn
from spoken_chat.ui.faults import FAULTS_ZH
from spoken_chat.ui.text import word
from spoken_chat.ui.transcript import THINKING, Page
from tests.support.app import ScriptedEngines
from tests.support.engines import scripted_persona
from tests.support.loading import bare_environment
from tests.support.markup import read
from tests.support.turns import HOSTILE, turn_with

LISTENING = ("user", "🎙 " + word("listening", "en"))
STOPPED = "■ stopped"
INTERRUPTED = "✋ interrupted"


class Shown:
    """A page, and the turns its talk tells of."""

    def __init__(self, language: str = "en", greeting: str = "Hello!") -> None:
        self.page = Page(TalkRegistry(ScriptedEngines(load())).open(language))
        self.page.session.persona = replace(scripted_persona(), greeting=greeting)

    def speak(self, utterance: str = "item_1") -> None:
        """Somebody spoke, and their speech is over."""
        self.page.take(SpeechStarted(utterance, 0.0))
        self.page.take(SpeechStopped(utterance, 1.0, 1.4))

    def begin(self, utterance: str | None = None, kind: str | None = None, image: ImagePart | None = None) -> Turn:
        """A turn begins, as the answer to `utterance` where there is one."""
        turn = turn_with(kind=kind or ("hands_free" if utterance else "typed"), image=image)  # type: ignore[arg-type]
        self.page.take(TurnStarted(turn, utterance))
        self.page.session.turns.append(turn)
        return turn

    def tell(self, turn: Turn, *events: TurnEvent) -> None:
        """What the turn tells."""
        for event in events:
            if isinstance(event, Ended):
                turn.status, turn.error = event.status, event.error
            self.page.take(TurnTold(turn, event))

    def reply(self, turn: Turn, *clauses: str, status: Status | None = "completed") -> None:
        """A reply of clauses of one second each; without `status` it does not end."""
        self.tell(turn, Heard("hello"))
        for clause in clauses:
            turn.clauses.append(SpokenClause(clause, clause, 1.0))
            self.tell(turn, ReplyText(clause), AudioOut(np.ones(TTS_RATE, np.int16)))
        if status is not None:
            self.tell(turn, Ended(status, None))

    @property
    def said(self) -> list[tuple[str, str]]:
        """Who said what, as a person sees it."""
        return [(message["role"], read(str(message["content"])).text) for message in self.page.messages]


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    bare_environment(monkeypatch)


@pytest.fixture
def shown() -> Iterator[Shown]:
    one = Shown()
    yield one
    one.page.close()


# What was said


def test_the_words_take_the_place_of_what_stood_for_them(shown: Shown) -> None:
    shown.speak()
    assert shown.said == [LISTENING]
    turn = shown.begin("item_1")
    shown.tell(turn, Heard("what is your name"))
    assert shown.said == [("user", "what is your name"), ("assistant", THINKING)]
    shown.tell(turn, Ended("completed", None))
    assert shown.said == [("user", "what is your name")]


def test_sound_that_was_committed_by_hand_has_a_place_too(shown: Shown) -> None:
    shown.page.take(Committed("item_1", 1.5))
    turn = shown.begin("item_1", "push_to_talk")
    assert shown.said == [LISTENING]
    shown.tell(turn, Heard("what is your name"))
    assert shown.said[0] == ("user", "what is your name")


def test_typed_words_are_shown_once_they_are_taken(shown: Shown) -> None:
    turn = shown.begin()
    assert shown.said == []
    shown.tell(turn, Heard("hello"), ReplyText("Hi."))
    assert shown.said == [("user", "hello"), ("assistant", "Hi.")]


@pytest.mark.parametrize(("text", "said"), [("look", "🖼 image · look"), ("", "🖼 image")])
def test_an_image_that_went_along_is_mentioned(shown: Shown, text: str, said: str) -> None:
    shown.tell(shown.begin(image=ImagePart("data:,", 192)), Heard(text))
    assert shown.said[0] == ("user", said)


@pytest.mark.parametrize("reason", ["nothing_heard", "cleared", "failed"])
def test_an_utterance_that_is_dropped_leaves_no_place_behind(shown: Shown, reason: str) -> None:
    shown.speak()
    shown.page.take(UtteranceDropped("item_1", reason))  # type: ignore[arg-type]
    assert shown.said == []


def test_sound_without_words_heard_hands_free_leaves_nothing_at_all(shown: Shown) -> None:
    shown.speak()
    turn = shown.begin("item_1")
    shown.tell(turn, Ended("failed", ChatError("nothing_heard", "Nothing was heard; speak up.")))
    shown.page.take(UtteranceDropped("item_1", "nothing_heard"))
    assert shown.said == []


def test_a_turn_that_is_taken_back_disappears_with_its_reply_and_the_next_one_holds_all_words(shown: Shown) -> None:
    shown.speak()
    turn = shown.begin("item_1")
    shown.tell(turn, Heard("what is"), ReplyText("It is "), Notice("tts_fallback", "The local voice speaks."))
    shown.tell(turn, Ended("cancelled", None))
    shown.page.session.turns.remove(turn)
    shown.page.take(UtteranceDropped("item_1", "reopened"))
    assert shown.said == []
    shown.speak("item_2")
    shown.tell(shown.begin("item_2"), Heard("what is your name"))
    assert shown.said == [("user", "what is your name"), ("assistant", THINKING)]


def test_a_typed_turn_that_is_taken_back_disappears_when_the_next_one_begins(shown: Shown) -> None:
    typed = shown.begin()
    shown.tell(typed, Heard("what"), Ended("cancelled", None))
    shown.page.session.turns.remove(typed)
    shown.speak()
    shown.tell(shown.begin("item_1"), Heard("what is your name"))
    assert shown.said == [("user", "what is your name"), ("assistant", THINKING)]


def test_words_of_two_utterances_take_their_own_places(shown: Shown) -> None:
    shown.speak("item_1")
    first = shown.begin("item_1")
    shown.speak("item_2")
    second = shown.begin("item_2")
    shown.tell(first, Ended("cancelled", None))
    shown.tell(second, Heard("the second"))
    assert shown.said == [("user", "the second"), ("assistant", STOPPED), ("assistant", THINKING)]


def test_a_recording_that_was_handed_in_waits_for_its_own_turn_only(shown: Shown) -> None:
    place = shown.page.hand_in()
    typed = shown.begin()
    shown.tell(typed, Heard("hello"))
    handed_in = shown.begin(kind="push_to_talk")
    shown.page.give_up(place)
    shown.tell(handed_in, Heard("what is your name"))
    assert shown.said == [
        ("user", "what is your name"), ("user", "hello"), ("assistant", THINKING), ("assistant", THINKING)
    ]  # fmt: skip


def test_a_recording_that_no_turn_took_leaves_no_place_behind(shown: Shown) -> None:
    first, second = shown.page.hand_in(), shown.page.hand_in()
    shown.page.give_up(first)
    assert shown.said == [LISTENING]
    turn = shown.begin(kind="push_to_talk")
    shown.page.give_up(second)
    shown.tell(turn, Heard("the second"))
    assert shown.said == [("user", "the second"), ("assistant", THINKING)]


# The reply


def test_what_stands_for_a_reply_goes_when_none_comes(shown: Shown) -> None:
    error = ChatError("llm_timeout", "The model sent nothing; try again.")
    shown.tell(shown.begin(), Heard("hello"), Ended("failed", error))
    assert shown.said == [("user", "hello"), ("assistant", "⚠️ The model sent nothing; try again.")]


def test_where_nothing_was_heard_the_place_is_given_up_for_the_fault(shown: Shown) -> None:
    shown.page.take(Committed("item_1", 1.0))
    turn = shown.begin("item_1", "push_to_talk")
    shown.tell(turn, Ended("failed", ChatError("nothing_heard", "Nothing was heard; speak up.")))
    assert shown.said == [("assistant", "⚠️ Nothing was heard; speak up.")]


def test_a_reply_grows_in_one_message(shown: Shown) -> None:
    turn = shown.begin()
    shown.tell(turn, Heard("hello"))
    for text, whole in [("\n Hel", "Hel"), ("lo ", "Hello "), ("you.", "Hello you.")]:
        shown.tell(turn, ReplyText(text))
        assert shown.said[1:] == [("assistant", whole)]


def test_the_mood_stands_before_the_reply_and_is_no_part_of_its_words(shown: Shown) -> None:
    turn = shown.begin()
    rest = turn._tags.feed("[happy] Hello.")
    shown.tell(turn, Heard("hello"), Mood("happy"))
    assert shown.said[1:] == [("assistant", THINKING)], "a mood alone is no reply yet"
    shown.tell(turn, ReplyText(rest))
    assert shown.said[1:] == [("assistant", "[happy] Hello.")]


def test_a_notice_in_between_does_not_break_the_reply(shown: Shown) -> None:
    turn = shown.begin()
    shown.tell(turn, Heard("hello"), ReplyText("Hello "), Notice("tts_fallback", "The local voice speaks."))
    shown.tell(turn, ReplyText("you."))
    assert shown.said[1:] == [("assistant", "Hello you."), ("assistant", "ℹ️ The local voice speaks.")]


def test_events_of_an_earlier_turn_stay_in_its_own_message(shown: Shown) -> None:
    first = shown.begin()
    shown.tell(first, Heard("one"), ReplyText("First "))
    second = shown.begin()
    shown.tell(second, Heard("two"), ReplyText("Second "))
    shown.tell(first, ReplyText("ends."))
    shown.tell(second, ReplyText("goes on."))
    assert shown.said == [
        ("user", "one"), ("assistant", "First ends."), ("user", "two"), ("assistant", "Second goes on.")
    ]  # fmt: skip


# A reply that was cut short


def test_a_reply_that_was_spoken_over_shows_what_was_heard_and_says_so(shown: Shown) -> None:
    turn = shown.begin()
    shown.reply(turn, "One here. ", "Two there. ", "Three.", status=None)
    turn.circumstances.interrupted = True
    turn.heard_seconds = 1.0
    shown.tell(turn, Ended("cancelled", None))
    assert shown.said[1:] == [("assistant", f"One here.\n{INTERRUPTED}")]


def test_a_finished_reply_whose_sound_was_cut_off_shows_what_was_heard(shown: Shown) -> None:
    turn = shown.begin()
    shown.reply(turn, "One here. ", "Two there.")
    assert shown.said[1:] == [("assistant", "One here. Two there.")]
    turn.cut(1.0)
    shown.page.take(TurnUpdated(turn))
    assert shown.said[1:] == [("assistant", f"One here.\n{STOPPED}")]


def test_a_reply_of_which_nothing_was_heard_leaves_only_the_mark(shown: Shown) -> None:
    turn = shown.begin()
    shown.reply(turn, "One here. ", status=None)
    turn.heard_seconds = 0.0
    shown.tell(turn, Ended("cancelled", None))
    assert shown.said[1:] == [("assistant", STOPPED)]


def test_a_reply_that_was_heard_to_its_end_has_no_mark(shown: Shown) -> None:
    turn = shown.begin()
    shown.reply(turn, "One here. ", "Two there.")
    turn.cut(2.0)
    shown.page.take(TurnUpdated(turn))
    assert shown.said[1:] == [("assistant", "One here. Two there.")]


def test_a_turn_stopped_before_its_words_came_leaves_no_place_behind(shown: Shown) -> None:
    shown.speak()
    shown.tell(shown.begin("item_1"), Ended("cancelled", None))
    assert shown.said == [("assistant", STOPPED)]


# The sound


def test_the_whole_sound_of_the_turn_that_spoke_last_can_be_heard_again_once_it_is_over(shown: Shown) -> None:
    first, second = shown.begin(), shown.begin()
    shown.tell(first, AudioOut(np.array([9], np.int16)), Ended("cancelled", None))
    for samples in ([1, 2], [3]):
        shown.tell(second, AudioOut(np.array(samples, np.int16)))
    assert shown.page.take_sound() is None, "it is not over yet"
    shown.tell(second, Ended("completed", None))
    sound = shown.page.take_sound()
    assert sound is not None
    assert (sound[0], sound[1].tolist()) == (TTS_RATE, [1, 2, 3])
    assert shown.page.take_sound() is None, "the page has it already"


def test_the_sound_of_a_turn_that_was_taken_back_is_gone(shown: Shown) -> None:
    shown.speak()
    turn = shown.begin("item_1")
    shown.tell(turn, AudioOut(np.array([1], np.int16)), Ended("cancelled", None))
    shown.page.take(UtteranceDropped("item_1", "reopened"))
    assert shown.page.take_sound() is None


# News


async def test_each_change_wakes_whoever_waits_for_one_also_when_it_came_before_they_did(shown: Shown) -> None:
    news = shown.page.news
    shown.speak()
    await asyncio.wait_for(news.wait(), 1)
    later = shown.page.news
    assert not later.is_set()
    shown.page.close()
    await asyncio.wait_for(later.wait(), 1)


def test_what_is_not_shown_here_wakes_nobody(shown: Shown) -> None:
    turn = shown.begin()
    news = shown.page.news
    for event in (SpeechStarted("item_1", 0.0), Caption("item_1", "hello", "you"), Ducked(turn, True)):
        shown.page.take(event)
    assert not news.is_set()


def test_a_page_that_is_closed_hears_of_nothing_more(shown: Shown) -> None:
    turn = shown.begin()
    assert not shown.page.over(turn)
    shown.page.close()
    assert shown.page.over(turn)
    shown.page.talk._tell(TalkFault(ChatError("x", "Something is wrong.")))
    assert shown.said == []


# Words


def test_a_fault_outside_any_turn_is_told(shown: Shown) -> None:
    shown.page.take(TalkFault(ChatError("still_loading", "The models are still loading.")))
    assert shown.said == [("assistant", "⚠️ The models are still loading.")]


def test_whatever_is_said_is_shown_as_text() -> None:
    shown = Shown(greeting=HOSTILE)
    shown.page.greet()
    shown.speak()
    turn = shown.begin("item_1")
    shown.tell(turn, Heard(HOSTILE), ReplyText(HOSTILE[:7]), ReplyText(HOSTILE[7:]), Notice("unheard_of", HOSTILE))
    shown.tell(turn, Ended("failed", ChatError("unheard_of", HOSTILE)))
    assert len(shown.said) == 5
    for message, (_, text) in zip(shown.page.messages, shown.said, strict=True):
        assert text.endswith(HOSTILE)
        assert read(message["content"]).names() == set(), "no markup of theirs, and none of ours"


def test_marks_and_faults_are_in_the_language_of_the_page() -> None:
    shown = Shown("zh")
    turn = shown.begin()
    shown.tell(turn, Notice("tts_fallback", "The local voice speaks."), Ended("cancelled", None))
    shown.tell(shown.begin(), Ended("failed", ChatError("llm_empty", "The model sent an empty reply.")))
    shown.tell(shown.begin(), Ended("completed", None))
    assert [text for _, text in shown.said] == [
        "ℹ️ " + FAULTS_ZH["tts_fallback"], "■ " + word("stopped", "zh"), "⚠️ " + FAULTS_ZH["llm_empty"]
    ]  # fmt: skip


def test_a_greeting_is_not_repeated_right_after_itself(shown: Shown) -> None:
    shown.page.greet()
    shown.page.greet()
    assert shown.said == [("assistant", "Hello!")]
    shown.page.add("user", "hi")
    shown.page.greet()
    assert shown.said[-1] == ("assistant", "Hello!")
    assert len(shown.said) == 3
