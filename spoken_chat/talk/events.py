"""What a talk tells whoever shows it, in the order it happens.

Positions are seconds of microphone sound since the stream began: the listener's side maps them to its own clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spoken_chat.errors import ChatError
from spoken_chat.events import TurnEvent
from spoken_chat.turn import Turn


@dataclass(frozen=True)
class SpeechStarted:
    """Somebody speaks, since `position`. `utterance` names what is being said from here on."""

    utterance: str
    position: float


@dataclass(frozen=True)
class SpeechStopped:
    """The utterance is over; its last speech was at `speech_end`, and `position` is how far the stream had come."""

    utterance: str
    speech_end: float
    position: float


@dataclass(frozen=True)
class Committed:
    """Sound was taken for an utterance by hand (push-to-talk, a client's commit). `seconds`: how long it is."""

    utterance: str
    seconds: float


@dataclass(frozen=True)
class Caption:
    """What was understood of an utterance so far: `stable` will not change any more, `tail` may."""

    utterance: str
    stable: str
    tail: str


@dataclass(frozen=True)
class UtteranceDropped:
    """There were no words in it after all, or it is continued by the utterance that starts next.

    `reason`: `nothing_heard`; `reopened`: its end was taken back, and its reply with it; `cleared`: by hand, or the
    way of listening changed; `failed`: it could not be answered, and a TalkFault says why.
    """

    utterance: str
    reason: Literal["nothing_heard", "reopened", "cleared", "failed"]


@dataclass(frozen=True)
class TurnStarted:
    """A turn runs openly. `utterance` names the speech it answers; None for what was typed or handed in whole."""

    turn: Turn
    utterance: str | None


@dataclass(frozen=True)
class TurnTold:
    """An event of a turn. The last one of each turn is Ended."""

    turn: Turn
    event: TurnEvent


@dataclass(frozen=True)
class TurnUpdated:
    """A turn's figures changed after the fact: the listener's side told when it was heard, or it was cut."""

    turn: Turn


@dataclass(frozen=True)
class Ducked:
    """The reply that plays is to be turned down (`down`), or up again."""

    turn: Turn
    down: bool


@dataclass(frozen=True)
class Silenced:
    """The reply that plays is to stop now and its queue to be emptied: it was spoken over, or stopped by hand."""

    turn: Turn
    interrupted: bool


@dataclass(frozen=True)
class TalkFault:
    """Something failed outside any turn; in one sentence."""

    error: ChatError


TalkEvent = (
    SpeechStarted
    | SpeechStopped
    | Committed
    | Caption
    | UtteranceDropped
    | TurnStarted
    | TurnTold
    | TurnUpdated
    | Ducked
    | Silenced
    | TalkFault
)
