"""One open page: its session, its language, and the transcript as it is shown."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from spoken_chat.audio import TTS_RATE, Pcm16
from spoken_chat.events import AudioOut, Ended, Heard, Notice, ReplyText, TurnEvent
from spoken_chat.session import ChatSession
from spoken_chat.turn import Turn
from spoken_chat.ui.sound import ReplySounds
from spoken_chat.ui.text import fault, sentence, word

THINKING = "…"
"""Stands where the reply will be until its first words come."""

Message = dict[str, Any]
"""A message as gr.Chatbot takes it: `role` and `content`."""


class Page:
    """What one person sees. Events change it at the moment they happen; whoever redraws reads `messages`."""

    def __init__(self, session: ChatSession, language: str) -> None:
        self.session = session
        self.language = language
        self.messages: list[Message] = []
        self.audible = asyncio.Event()
        """Set once the browser says when the latest turn's first sound could be heard."""
        self._claims = 0
        self._sound: tuple[str, list[Pcm16]] = ("", [])

    def claim(self) -> int:
        """Make way for something new; what prepares a turn under an older claim gives up."""
        self._claims += 1
        return self._claims

    def holds(self, claim: int) -> bool:
        """Whether nothing newer came since `claim`."""
        return claim == self._claims

    def greet(self) -> None:
        """The persona's greeting, unless it was the last thing said."""
        greeting = _plain(self.session.persona.greeting)
        if not self.messages or self.messages[-1]["content"] != greeting:
            self.tell(self.session.persona.greeting)

    def tell(self, text: str) -> Message:
        """A message from the app's side."""
        message = {"role": "assistant", "content": _plain(text)}
        self.messages.append(message)
        return message

    def say(self, text: str) -> None:
        """The user's words."""
        self.messages.append({"role": "user", "content": _plain(text)})

    def show_image(self, path: Path) -> None:
        """The user's image."""
        self.messages.append({"role": "user", "content": {"path": str(path), "alt_text": path.name}})

    def wait_for_words(self) -> Message:
        """Speech came in; the message that its words will take the place of."""
        placeholder = {"role": "user", "content": "🎙 " + word("listening", self.language)}
        self.messages.append(placeholder)
        return placeholder

    def take_away(self, placeholder: Message) -> None:
        """Nothing will take the place of `placeholder`."""
        self.messages[:] = [message for message in self.messages if message is not placeholder]

    def begin(self, turn: Turn, sounds: ReplySounds, placeholder: Message | None = None) -> Callable[[TurnEvent], None]:
        """What the events of a new turn do to this page, to its sound, and to what stands for its spoken words."""
        sounds.open(turn.id)
        self.audible.clear()
        reply: Message | None = None
        words = ""

        def tap(event: TurnEvent) -> None:
            nonlocal placeholder, reply, words
            match event:
                case Heard(text):
                    if placeholder is not None:
                        placeholder["content"] = _plain(text)
                        placeholder = None
                    reply = self.tell(THINKING)
                case ReplyText(text):
                    words = (words + text).lstrip()
                    if reply is None:
                        reply = self.tell("")
                    mood = f"[{turn.mood}] " if turn.mood else ""
                    reply["content"] = _plain(mood + words)
                case AudioOut(pcm):
                    sounds.push(turn.id, pcm)
                    if self._sound[0] != turn.id:
                        self._sound = (turn.id, [])
                    self._sound[1].append(pcm)
                case Notice(code, message):
                    self.tell("ℹ️ " + sentence(code, message, self.language))
                case Ended(status, error):
                    sounds.end(turn.id)
                    if placeholder is not None:
                        self.take_away(placeholder)
                    if reply is not None and not words:
                        self.take_away(reply)
                    if error is not None:
                        self.tell("⚠️ " + fault(error, self.language))
                    elif status == "cancelled":
                        self.tell("■ " + word("stopped", self.language))

        return tap

    def sound_of(self, turn: Turn) -> tuple[int, Pcm16] | None:
        """The whole sound of `turn` while it is the latest that spoke: rate in Hz and samples."""
        turn_id, pieces = self._sound
        return (TTS_RATE, np.concatenate(pieces)) if turn_id == turn.id and pieces else None


def _plain(text: str) -> str:
    """`text` for gr.Chatbot, which takes every message for HTML, also when it is told not to render Markdown."""
    return html.escape(text, quote=False)
