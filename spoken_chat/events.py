"""What a turn tells while it runs, in the order it happens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from spoken_chat.audio import Pcm16
from spoken_chat.errors import ChatError

Status = Literal["running", "completed", "cancelled", "failed"]


@dataclass(frozen=True)
class Heard:
    """The utterance as text."""

    text: str


@dataclass(frozen=True)
class Mood:
    """The reply's persona tag."""

    tag: str


@dataclass(frozen=True)
class ReplyText:
    """More of the reply, as it is shown."""

    text: str


@dataclass(frozen=True)
class AudioOut:
    """More of the reply's sound, 24 kHz mono, ready to play."""

    pcm: Pcm16


@dataclass(frozen=True)
class Notice:
    """Something to tell the user once while the turn goes on."""

    code: str
    message: str
    details: dict[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended:
    """The last event of a turn."""

    status: Status
    error: ChatError | None


TurnEvent = Heard | Mood | ReplyText | AudioOut | Notice | Ended
