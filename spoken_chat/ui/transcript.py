"""One open page: its talk, its language, and the transcript as it is shown."""

from __future__ import annotations

import asyncio
import html
from typing import Any

import numpy as np

from spoken_chat.audio import TTS_RATE, Pcm16
from spoken_chat.conversation import heard_text
from spoken_chat.errors import ChatError
from spoken_chat.events import AudioOut, Ended, Heard, Notice, ReplyText, TurnEvent
from spoken_chat.session import ChatSession
from spoken_chat.talk.events import (
    Committed,
    SpeechStopped,
    TalkEvent,
    TalkFault,
    TurnStarted,
    TurnTold,
    TurnUpdated,
    UtteranceDropped,
)
from spoken_chat.talk.registry import OpenTalk
from spoken_chat.talk.talk import Talk
from spoken_chat.turn import Turn
from spoken_chat.ui.text import fault, sentence, word

THINKING = "…"
"""Stands where the reply will be until its first words come."""

Message = dict[str, Any]
"""A message as gr.Chatbot takes it: `role` and `content`."""


class Page:
    """What one person sees. Events of the talk change it as they happen; whoever redraws reads `messages`."""

    def __init__(self, opened: OpenTalk) -> None:
        self.opened = opened
        self.messages: list[Message] = []
        self.closed = False
        self.conversation = 0
        """How often the person began anew."""
        self.news = asyncio.Event()
        """Set by the next change. Whoever waits for one takes it before they look at what is there."""
        self._claims = 0
        self._handed_in: list[Message] = []
        self._waiting: dict[str, Message] = {}
        self._turns: dict[str, ShownTurn] = {}
        self._sound: tuple[Turn, list[Pcm16]] | None = None
        self._unsubscribe = opened.talk.subscribe(self.take)

    @property
    def talk(self) -> Talk:
        """The page's talk."""
        return self.opened.talk

    @property
    def session(self) -> ChatSession:
        """The page's session."""
        return self.opened.session

    @property
    def language(self) -> str:
        """`zh` or `en`."""
        return self.opened.language

    def close(self) -> None:
        """Nobody looks any more."""
        self.closed = True
        self._unsubscribe()
        self.changed()

    def changed(self) -> None:
        """Wake whoever waits for news."""
        self.news.set()
        self.news = asyncio.Event()

    def claim(self) -> int:
        """Make way for something new; what prepares a turn under an older claim gives up."""
        self._claims += 1
        return self._claims

    def holds(self, claim: int) -> bool:
        """Whether nothing newer came since `claim`."""
        return claim == self._claims

    def clear(self) -> None:
        """An empty page, for another conversation."""
        self.conversation += 1
        self.messages.clear()
        self._handed_in.clear()
        self._waiting.clear()
        self._turns.clear()
        self._sound = None

    def greet(self) -> None:
        """The persona's greeting, unless it was the last thing said."""
        greeting = _plain(self.session.persona.greeting)
        if not self.messages or self.messages[-1]["content"] != greeting:
            self.tell(self.session.persona.greeting)

    def tell(self, text: str) -> Message:
        """A message from the app's side."""
        return self.add("assistant", text)

    def tell_fault(self, error: ChatError) -> Message:
        """What went wrong, in one sentence."""
        return self.tell("⚠️ " + fault(error, self.language))

    def add(self, role: str, text: str) -> Message:
        """A message at the end."""
        message = {"role": role, "content": _plain(text)}
        self.messages.append(message)
        return message

    def remove(self, messages: list[Message]) -> None:
        """Take messages away; those that are not there any more do not matter."""
        gone = {id(message) for message in messages}
        self.messages[:] = [message for message in self.messages if id(message) not in gone]

    def hand_in(self) -> Message:
        """A recording was handed in; the message that its words will take the place of."""
        place = self._place()
        self._handed_in.append(place)
        return place

    def give_up(self, place: Message) -> None:
        """Take away what `hand_in` gave, unless a turn has taken it."""
        if any(one is place for one in self._handed_in):
            self._handed_in = [one for one in self._handed_in if one is not place]
            self.remove([place])

    def over(self, turn: Turn) -> bool:
        """Whether nothing more of `turn` will be shown."""
        shown = self._turns.get(turn.id)
        return self.closed or shown is None or shown.ended

    def take_sound(self) -> tuple[int, Pcm16] | None:
        """The whole sound of the turn that spoke last, once it is over: rate in Hz and samples. Given only once."""
        if self._sound is None or not self.over(self._sound[0]):
            return None
        (_, pieces), self._sound = self._sound, None
        return TTS_RATE, np.concatenate(pieces)

    def take(self, event: TalkEvent) -> None:
        """What an event of the talk changes."""
        match event:
            case SpeechStopped(utterance) | Committed(utterance):
                self._waiting[utterance] = self._place()
            case UtteranceDropped(utterance):
                self._drop(utterance)
            case TurnStarted(turn, utterance):
                self._begin(turn, utterance)
            case TurnTold(turn, told):
                self._told(turn, told)
            case TurnUpdated(turn):
                if (shown := self._turns.get(turn.id)) is not None:
                    shown.draw()
            case TalkFault(error):
                self.tell_fault(error)
            case _:
                return
        self.changed()

    def _place(self) -> Message:
        return self.add("user", "🎙 " + word("listening", self.language))

    def _drop(self, utterance: str) -> None:
        place = self._waiting.pop(utterance, None)
        self.remove([place] if place is not None else [])
        for turn_id, shown in list(self._turns.items()):
            if shown.utterance == utterance:
                self._forget(turn_id)

    def _begin(self, turn: Turn, utterance: str | None) -> None:
        self._forget_taken_back()
        place = None if utterance is None else self._waiting.pop(utterance, None)
        if place is None and turn.kind == "push_to_talk" and self._handed_in:
            place = self._handed_in.pop(0)
        self._turns[turn.id] = ShownTurn(self, turn, utterance, place)

    def _told(self, turn: Turn, told: TurnEvent) -> None:
        if isinstance(told, AudioOut):
            if self._sound is None or self._sound[0] is not turn:
                self._sound = (turn, [])
            self._sound[1].append(told.pcm)
        if (shown := self._turns.get(turn.id)) is not None:
            shown.take(told)

    def _forget_taken_back(self) -> None:
        """A turn without an utterance that was taken back, for the next one goes on with it, is shown there."""
        kept = {turn.id for turn in self.session.turns}
        for turn_id in list(self._turns):
            if turn_id not in kept:
                self._forget(turn_id)

    def _forget(self, turn_id: str) -> None:
        """Nothing of a turn is left."""
        self.remove(self._turns.pop(turn_id).messages)
        if self._sound is not None and self._sound[0].id == turn_id:
            self._sound = None


class ShownTurn:
    """The messages of one turn."""

    def __init__(self, page: Page, turn: Turn, utterance: str | None, place: Message | None) -> None:
        self.utterance = utterance
        self.ended = False
        self.messages = [place] if place is not None else []
        self._page = page
        self._turn = turn
        self._place = place
        self._reply: Message | None = None
        self._words = ""
        self._heard = False

    def take(self, event: TurnEvent) -> None:
        """What an event of the turn changes."""
        match event:
            case Heard(text):
                self._heard = True
                self._say(text)
                self._reply = self._tell(THINKING)
            case ReplyText(text):
                self._words = (self._words + text).lstrip()
                self.draw()
            case Notice(code, message):
                self._tell("ℹ️ " + sentence(code, message, self._page.language))
            case Ended(_, error):
                self._end(error)

    def draw(self) -> None:
        """Show the reply as far as it has come, or as far as it was heard before it was stopped."""
        turn, language = self._turn, self._page.language
        words = self._words if self._heard_whole() else self._words_heard()
        mood = f"[{turn.mood}] " if turn.mood and words else ""
        lines = [mood + words] if words else []
        if turn.status == "cancelled" or not self._heard_whole():
            by_speech = turn.circumstances.interrupted
            lines.append("✋ " + word("interrupted", language) if by_speech else "■ " + word("stopped", language))
        if not lines:
            return
        if self._reply is None:
            self._reply = self._tell("")
        self._reply["content"] = _plain("\n".join(lines))

    def _heard_whole(self) -> bool:
        """Whether nobody said that less than all of the reply's sound was heard."""
        heard, turn = self._turn.heard_seconds, self._turn
        return heard is None or turn.status == "running" or heard >= sum(clause.seconds for clause in turn.clauses)

    def _words_heard(self) -> str:
        clauses = [(clause.text, clause.seconds) for clause in self._turn.clauses]
        return heard_text(clauses, self._turn.heard_seconds or 0.0).lstrip()

    def _say(self, text: str) -> None:
        """What the person said or sent, with a word for the image that went along."""
        image = f"🖼 {word('image', self._page.language)}" if self._turn.image_tokens else ""
        said = " · ".join(part for part in (image, text) if part)
        if self._place is None:
            self._place = self._page.add("user", said)
            self.messages.append(self._place)
        self._place["content"] = _plain(said)

    def _tell(self, text: str) -> Message:
        message = self._page.tell(text)
        self.messages.append(message)
        return message

    def _end(self, error: ChatError | None) -> None:
        self.ended = True
        if self._place is not None and not self._heard:
            self._page.remove([self._place])
        if self._reply is not None and not self._words:
            self._page.remove([self._reply])
            self._reply = None
        if error is not None:
            self.messages.append(self._page.tell_fault(error))
        self.draw()


def _plain(text: str) -> str:
    """`text` for gr.Chatbot, which takes every message for HTML, also when it is told not to render Markdown."""
    return html.escape(text, quote=False)
