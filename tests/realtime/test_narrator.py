"""Events of a talk as those of the wire, in sequences that are hard to come by with a whole talk."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spoken_chat.conversation import Conversation
from spoken_chat.errors import ChatError
from spoken_chat.events import AudioOut, Ended, Heard, Notice, ReplyText, TurnEvent
from spoken_chat.realtime.items import Items
from spoken_chat.realtime.narrator import MOST_UTTERANCES, Narrator
from spoken_chat.realtime.reports import Reports
from spoken_chat.session import ChatSession
from spoken_chat.talk.events import (
    Caption,
    Silenced,
    SpeechStarted,
    SpeechStopped,
    TalkFault,
    TurnStarted,
    TurnTold,
    TurnUpdated,
    UtteranceDropped,
)
from spoken_chat.talk.options import TalkOptions
from spoken_chat.turn import Turn, Utterance
from tests.support.engines import scripted_persona, scripted_stages
from tests.support.realtime import check

SOUND = np.zeros(24_000, np.int16)


@dataclass
class Quiet:
    """Stands for a talk in which nothing happens by itself."""

    session: ChatSession
    options: TalkOptions = field(default_factory=TalkOptions)


@dataclass
class Told:
    """A narrator and what it sent."""

    narrator: Narrator
    session: ChatSession
    sent: list[dict[str, Any]]

    @property
    def kinds(self) -> list[str]:
        return [event["type"] for event in self.sent]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.sent if event["type"] == kind]

    def turn(self, utterance: str | None, *, spoken_at: tuple[float, float] | None = (0.0, 1.0)) -> Turn:
        """A turn that has started and does nothing of its own."""
        audio = None if utterance is None else np.zeros(1600, np.float32)
        given = Utterance(
            audio=audio, text="" if audio is not None else "hi", spoken_at=spoken_at if utterance else None
        )
        persona = scripted_persona()
        turn = Turn(
            scripted_stages(lambda: 2.0), persona, persona.voices[0], Conversation(), given, _ignore, lambda: 2.0
        )
        self.narrator.tell(TurnStarted(turn, utterance))
        self.session.turns.append(turn)
        return turn

    def told(self, turn: Turn, *events: TurnEvent) -> None:
        for event in events:
            self.narrator.tell(TurnTold(turn, event))

    def utter(self, name: str) -> None:
        """Somebody spoke for a second."""
        self.narrator.tell(SpeechStarted(name, 1.0))
        self.narrator.tell(SpeechStopped(name, 2.0, 2.4))


def _ignore(_: TurnEvent) -> None:
    """Nobody watches."""


@contextmanager
def narrating(*, own_events: bool = True) -> Iterator[Told]:
    persona = scripted_persona()
    session = ChatSession(persona, persona.voices[0], 4000)
    sent: list[dict[str, Any]] = []

    def emit(event: dict[str, Any]) -> None:
        check(event)
        sent.append(event)

    reports = Reports(session, emit, progress=own_events)
    narrator = Narrator(
        Quiet(session),  # type: ignore[arg-type]
        Items(),
        emit,
        reports,
        own_events,
        lambda position: round(position * 1000),
        lambda code, message: f"({code}) {message}",
        220,
    )
    try:
        yield Told(narrator, session, sent)
    finally:
        reports.close()


async def test_a_draft_that_changes_its_mind_is_not_taken_back_but_not_told_further() -> None:
    with narrating() as told:
        told.narrator.tell(SpeechStarted("u", 1.0))
        for stable, tail in [("what", " is"), ("what is", ""), ("that", " was"), ("what is your", " name")]:
            told.narrator.tell(Caption("u", stable, tail))
        told.narrator.tell(SpeechStopped("u", 2.0, 2.4))
        told.told(told.turn("u"), Heard("what is your name"))
        deltas = [event["delta"] for event in told.of("conversation.item.input_audio_transcription.delta")]
        assert deltas == ["what", " is", " your", " name"]
        assert [(one["stable"], one["tail"]) for one in told.of("input.caption")][2] == ("that", " was")


async def test_a_final_transcript_that_differs_from_the_draft_is_told_whole_without_a_delta() -> None:
    with narrating() as told:
        told.narrator.tell(SpeechStarted("u", 1.0))
        told.narrator.tell(Caption("u", "watt is", ""))
        told.narrator.tell(SpeechStopped("u", 2.0, 2.4))
        told.told(told.turn("u"), Heard("What is your name?"))
        assert len(told.of("conversation.item.input_audio_transcription.delta")) == 1
        (completed,) = told.of("conversation.item.input_audio_transcription.completed")
        assert completed["transcript"] == "What is your name?" and completed["usage"]["seconds"] == 1.4


async def test_an_utterance_that_could_not_be_answered_is_taken_back_with_an_error() -> None:
    with narrating() as told:
        told.utter("u")
        told.narrator.tell(UtteranceDropped("u", "failed"))
        told.narrator.tell(TalkFault(ChatError("still_loading", "The models are still loading.")))
        assert told.kinds[-3:] == ["input.dropped", "conversation.item.deleted", "error"]
        assert told.sent[-1]["error"]["message"] == "(still_loading) The models are still loading."
        assert told.sent[-1]["error"]["type"] == "server_error"


async def test_a_reply_taken_back_is_no_turn_and_its_items_go() -> None:
    with narrating() as told:
        told.utter("u")
        turn = told.turn("u")
        told.told(turn, Heard("what"), ReplyText("Well"), AudioOut(SOUND))
        told.narrator.tell(Silenced(turn, False))
        told.told(turn, Ended("cancelled", None))
        told.narrator.tell(TurnUpdated(turn))
        told.session.turns.clear()
        told.narrator.tell(UtteranceDropped("u", "reopened"))
        await asyncio.sleep(0.1)
        assert "turn.timeline" not in told.kinds
        assert {event["item_id"] for event in told.of("conversation.item.deleted")} == {"u", f"item_{turn.id}"}
        assert told.of("response.done")[0]["response"]["status_details"]["reason"] == "turn_detected"
        assert told.kinds.index("output_audio_buffer.cleared") < told.kinds.index("response.done")


async def test_a_spoken_utterance_stopped_before_it_has_words_makes_no_response() -> None:
    with narrating() as told:
        told.utter("u")
        turn = told.turn("u")
        told.narrator.tell(Silenced(turn, False))
        told.told(turn, Ended("cancelled", None))
        told.narrator.tell(TurnUpdated(turn))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        (failed,) = told.of("conversation.item.input_audio_transcription.failed")
        assert failed["error"]["code"] == "transcription_stopped"
        assert not told.of("response.created") and not told.of("output_audio_buffer.cleared")
        assert len(told.of("turn.timeline")) == 1


async def test_notices_go_to_pages_only() -> None:
    for own_events, expected in [(True, ["(tts_fallback) The voice changed."]), (False, [])]:
        with narrating(own_events=own_events) as told:
            turn = told.turn(None)
            told.told(turn, Heard("hi"), Notice("tts_fallback", "The voice changed."))
            assert [event["message"] for event in told.of("notice")] == expected


async def test_sound_without_text_still_makes_a_whole_item() -> None:
    with narrating() as told:
        turn = told.turn(None)
        told.told(turn, Heard("hi"), AudioOut(SOUND), Ended("completed", None))
        assert told.of("response.done")[0]["response"]["output"][0]["content"] == [
            {"type": "output_audio", "transcript": ""}
        ]


async def test_what_is_remembered_of_utterances_is_bounded() -> None:
    with narrating() as told:
        for number in range(10 * MOST_UTTERANCES):
            told.narrator.tell(Caption(f"u{number}", "words", ""))
        assert len(told.narrator._speech) <= MOST_UTTERANCES + 1


async def test_turns_that_began_before_the_connection_are_not_told() -> None:
    with narrating() as told:
        turn = told.turn(None)
    with narrating() as later:
        later.told(turn, ReplyText("Well"), AudioOut(SOUND), Ended("completed", None))
        later.narrator.tell(TurnUpdated(turn))
        later.narrator.tell(Silenced(turn, True))
        assert later.sent == []
