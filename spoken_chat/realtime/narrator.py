"""Tells a client what happens in its talk: each event of the talk becomes those of the wire, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from spoken_chat.errors import ChatError
from spoken_chat.events import AudioOut, Ended, Heard, Mood, Notice, ReplyText, TurnEvent
from spoken_chat.realtime import events
from spoken_chat.realtime.events import Emit
from spoken_chat.realtime.items import Item, Items, new_id
from spoken_chat.realtime.replies import Reply
from spoken_chat.realtime.reports import Reports
from spoken_chat.talk.events import (
    Caption,
    Committed,
    Ducked,
    Silenced,
    SpeechStarted,
    SpeechStopped,
    TalkEvent,
    TalkFault,
    TurnStarted,
    TurnTold,
    TurnUpdated,
    UtteranceDropped,
)
from spoken_chat.talk.talk import Talk
from spoken_chat.turn import Turn

MOST_REPLIES: Final = 16
"""Replies remembered after their end: one of them may still play."""

MOST_UTTERANCES: Final = 64
"""Utterances remembered that are not answered yet, or were forgotten without a word."""


@dataclass
class Speech:
    """What is known of an utterance. Seconds; `end` is a position in the talk's stream."""

    seconds: float = 0.0
    start: float | None = None
    end: float | None = None
    draft: str = ""


@dataclass
class Answering:
    """What a turn answers: the item of its sound, if any, the one to name, and the words that were typed with it.

    `joined`: items of further sound that was recognised in one go with it.
    """

    named: str
    sound: Item | None = None
    typed: str = ""
    announced: bool = True
    joined: tuple[Item, ...] = ()


@dataclass
class Asked:
    """What a client's response.create answers: the items it made, by id, and their words."""

    items: frozenset[str]
    typed: str


@dataclass
class Narrator:
    """Of one connection. `own_events`: whether the client knows the events of our own. `position_ms`: where a place in
    the talk's stream lies in this client's sound. `phrase`: a fault or notice in the client's language."""

    talk: Talk
    items: Items
    emit: Emit
    reports: Reports
    own_events: bool
    position_ms: Callable[[float], int]
    phrase: Callable[[str, str], str]
    most_tokens: int
    asked: Asked | None = None
    """Set while a client's response.create is obeyed."""
    stopped_by_client: bool = False
    """Set while a client's wish to stop is obeyed."""
    _speech: dict[str, Speech] = field(default_factory=dict)
    _replies: dict[str, Reply] = field(default_factory=dict)
    _answering: dict[str, Answering] = field(default_factory=dict)

    @property
    def latest(self) -> Reply | None:
        """The latest reply."""
        return next(reversed(self._replies.values()), None)

    def reply_of(self, turn: Turn) -> Reply | None:
        """The reply of `turn`, where it began in this connection and not long ago."""
        return self._replies.get(turn.id)

    def tell(self, event: TalkEvent) -> None:
        """The next event of the talk."""
        match event:
            case TurnTold(turn, told):
                self._turn_told(turn, told)
            case SpeechStarted(utterance, position):
                self._speech_started(utterance, position)
            case Caption(utterance, stable, tail):
                self._captioned(utterance, stable, tail)
            case SpeechStopped(utterance, speech_end, position):
                self._speech_stopped(utterance, speech_end, position)
            case Committed(utterance, seconds):
                self._speech.setdefault(utterance, Speech()).seconds = seconds
                self._add_sound(utterance)
            case UtteranceDropped(utterance, reason):
                self._dropped(utterance, reason)
            case TurnStarted(turn, utterance):
                self._turn_started(turn, utterance)
            case TurnUpdated(turn):
                self.reports.updated(turn)
            case Ducked(turn, down):
                self._own(events.duck(turn.id, down))
            case Silenced(turn, _):
                self._silenced(turn)
            case TalkFault(error):
                message = self.phrase(error.code, error.message)
                self.emit(events.error(error.code, message, kind="server_error"))

    def deleted(self, items: Sequence[Item]) -> None:
        """Take `items` out of the conversation and say so."""
        for item in items:
            self.items.remove(item)
            self.emit(events.item_deleted(item.id))

    def _own(self, event: events.Event) -> None:
        if self.own_events:
            self.emit(event)

    def _speech_started(self, utterance: str, position: float) -> None:
        self._speech[utterance] = Speech(start=position)
        start = self.position_ms(position - self.talk.options.pre_roll)
        self.emit(events.speech_started(utterance, start))

    def _captioned(self, utterance: str, stable: str, tail: str) -> None:
        self._own(events.caption(utterance, stable, tail))
        self._add_to_draft(utterance, stable)

    def _add_to_draft(self, utterance: str, text: str) -> None:
        """Tell what of `text` goes beyond the draft; where it says something else, the draft stays as it is."""
        speech = self._speech.setdefault(utterance, Speech())
        while len(self._speech) > MOST_UTTERANCES:
            del self._speech[next(iter(self._speech))]
        if text.startswith(speech.draft) and text != speech.draft:
            self.emit(events.transcription_delta(utterance, text[len(speech.draft) :]))
            speech.draft = text

    def _speech_stopped(self, utterance: str, speech_end: float, position: float) -> None:
        speech = self._speech.setdefault(utterance, Speech())
        speech.end = speech_end
        if speech.start is not None:
            speech.seconds = position - speech.start
        self.emit(events.speech_stopped(utterance, self.position_ms(position)))
        self._add_sound(utterance)

    def _add_sound(self, utterance: str) -> None:
        """The sound of `utterance` is an item of the conversation from now on."""
        item = Item(utterance, "user", [{"type": "input_audio", "transcript": None}], heard=True)
        self.emit(events.audio_committed(utterance, self.items.last_id))
        self.announce(item)

    def announce(self, item: Item) -> None:
        """Add `item`, whole as it is, and say so."""
        previous = self.items.add(item)
        self.emit(events.item_added(item.wire(), previous))
        self.emit(events.item_done(item.wire(), previous))

    def _dropped(self, utterance: str, reason: str) -> None:
        self._speech.pop(utterance, None)
        self._own(events.input_dropped(utterance, reason))
        item = self.items.find(utterance)
        if item is None:
            return
        turn_id = item.turn_id
        self.deleted([item] if turn_id is None else self.items.of_turn(turn_id))
        if turn_id is not None and (reply := self._replies.get(turn_id)) is not None:
            self.reports.void(reply.turn)

    def _turn_started(self, turn: Turn, utterance: str | None) -> None:
        asked, self.asked = self.asked, None
        answering = self._what_is_answered(turn, utterance, asked)
        self._answering[turn.id] = answering
        reply = Reply(
            turn,
            self.items,
            self.emit,
            conversation_id=f"conv_{self.talk.session.id}",
            voice=self.talk.session.voice.name,
            most_tokens=self.most_tokens,
            spoken=self.talk.options.spoken_reply,
            by_client=asked is not None,
        )
        self._replies[turn.id] = reply
        while len(self._replies) > MOST_REPLIES:
            del self._replies[next(iter(self._replies))]
        speech = self._speech.get(utterance) if utterance is not None else None
        end_ms = self.position_ms(speech.end) if speech is not None and speech.end is not None else None
        if turn.kind != "hands_free":
            end_ms = None
        self._own(events.turn_started(turn.id, turn.kind, answering.named, reply.place.response_id, end_ms))
        self.reports.begin(turn)

    def _what_is_answered(self, turn: Turn, utterance: str | None, asked: Asked | None) -> Answering:
        """Mark the items that `turn` answers. Typed words wait for a response.create; sound and images do not."""
        sounds: list[Item] = []
        named = utterance
        for item in self.items.waiting:
            by_client = asked is not None and item.id in asked.items
            image_only = item.given is not None and not item.given.text and item.given.sound is None
            if not (item.heard or by_client or image_only):
                continue
            if item.given is not None and item.given.sound is not None:
                self._speech[item.id] = Speech(seconds=item.given.seconds)
                sounds.append(item)
            elif item.heard:
                sounds.append(item)
            if utterance is None:
                named = item.id
            item.turn_id, item.given, item.heard = turn.id, None, False
        typed = asked.typed if asked is not None else ""
        if named is None:
            return Answering(new_id(), announced=False)
        sound = sounds[-1] if sounds else None
        if utterance is not None:
            sound = self.items.find(utterance)
        return Answering(named, sound, typed, joined=tuple(item for item in sounds if item is not sound))

    def _turn_told(self, turn: Turn, event: TurnEvent) -> None:
        reply = self._replies.get(turn.id)
        if reply is None:
            return  # it began before this connection
        match event:
            case AudioOut(pcm):
                reply.add_sound(pcm)
                self.reports.sounded(turn)
            case ReplyText(text):
                reply.add_text(text)
            case Heard(text):
                self._heard(turn, text)
                reply.open()
            case Mood(tag):
                self._own(events.mood(turn.id, tag))
            case Notice(code, message):
                reply.notices[code] = self.phrase(code, message)
                self._own(events.notice(code, reply.notices[code]))
            case Ended():
                self._ended(reply, event)
                return
        self.reports.touch(turn)

    def _heard(self, turn: Turn, text: str) -> None:
        answering = self._answering[turn.id]
        if not answering.announced:
            answering.announced = True
            kind = "input_text" if turn.kind == "typed" else "input_audio"
            words = {"text": text} if turn.kind == "typed" else {"transcript": text}
            self.announce(Item(answering.named, "user", [{"type": kind, **words}], turn_id=turn.id))
        elif answering.sound is not None:
            self._transcribed(answering.sound, spoken_part(text, answering.typed))
            self._transcribed_elsewhere(answering)

    def _transcribed(self, item: Item, words: str) -> None:
        for part in item.content:
            if part["type"] == "input_audio":
                part["transcript"] = words
        self._add_to_draft(item.id, words)
        speech = self._speech.pop(item.id, Speech())
        self.emit(events.transcription_completed(item.id, words, speech.seconds))

    def _transcribed_elsewhere(self, answering: Answering) -> None:
        """Each item of sound gets its event, also where several were recognised in one go."""
        for item in answering.joined:
            self._speech.pop(item.id, None)
            message = (
                f"This sound was recognised in one go with that of {answering.named}, whose transcript holds both."
            )
            self.emit(events.transcription_failed(item.id, "transcribed_together", message))

    def _ended(self, reply: Reply, ended: Ended) -> None:
        turn = reply.turn
        answering = self._answering.pop(turn.id)
        if not reply.opened:
            unheard = ended.error is not None and ended.error.code == "nothing_heard"
            if answering.sound is not None:
                for item in (*answering.joined, answering.sound):
                    self._not_transcribed(item, ended)
            if unheard and turn.kind == "hands_free" and not reply.by_client:
                self.reports.void(turn)
                return
            if ended.status == "cancelled" and not reply.by_client:
                self.reports.end(turn)
                return
        if self.stopped_by_client:
            reply.stopped = "client_cancelled"
        reply.close(self._in_words(ended))
        self.reports.end(turn)

    def _not_transcribed(self, item: Item, ended: Ended) -> None:
        """The utterance has no words: there are none in it, or recognition failed, or was stopped."""
        if ended.error is not None and ended.error.code == "nothing_heard":
            self._transcribed(item, "")
            return
        self._speech.pop(item.id, None)
        error = ended.error or ChatError(
            "transcription_stopped", "The turn was cancelled, or its speaker went on, before this was recognised."
        )
        message = self.phrase(error.code, error.message)
        self.emit(events.transcription_failed(item.id, error.code, message))

    def _in_words(self, ended: Ended) -> Ended:
        error = ended.error
        if error is None:
            return ended
        return Ended(ended.status, ChatError(error.code, self.phrase(error.code, error.message), **error.details))

    def _silenced(self, turn: Turn) -> None:
        self.reports.being_stopped(turn)
        reply = self._replies.get(turn.id)
        if reply is not None and reply.sounded:
            self.emit(events.output_cleared(reply.place.response_id))


def spoken_part(text: str, typed: str) -> str:
    """The words that were spoken, of a turn's `text`, which ends with those that were typed."""
    typed = typed.strip()
    return text.removesuffix(typed).rstrip() if typed else text
