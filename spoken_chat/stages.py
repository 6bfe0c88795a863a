"""The engines of a turn, joined."""

from __future__ import annotations

from dataclasses import dataclass

from spoken_chat.asr import Recognizer
from spoken_chat.llm import ChatModel
from spoken_chat.tts import Synthesizer


@dataclass(frozen=True)
class Stages:
    """The engines of a turn. Without a synthesiser the reply is only written."""

    recognizer: Recognizer
    model: ChatModel
    synthesizer: Synthesizer | None
