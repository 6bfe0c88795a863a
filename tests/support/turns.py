"""Turns with given figures: what has to show them is tested without running anything."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from spoken_chat.circumstances import Circumstances
from spoken_chat.conversation import Conversation, ImagePart
from spoken_chat.events import TurnEvent
from spoken_chat.llm import Usage
from spoken_chat.stages import Stages
from spoken_chat.turn import Kind, Turn, Utterance
from tests.support.engines import scripted_persona, scripted_stages

MARKS: Final = MappingProxyType(
    {
        "asr_start": 10.0,
        "asr_done": 10.31234,
        "request_sent": 10.32,
        "first_content": 10.34567,
        "first_clause": 10.36,
        "tts_first_byte": 10.4444,
        "first_audio_sent": 10.45,
        "browser_received": 10.4621,
        "browser_play": 10.5,
        "last_content": 10.44021,
        "stream_end": 10.441,
    }
)
"""A whole turn, in seconds; its endpoint is at 10 s."""

SPOKEN_AT: Final = (8.2, 9.6)
"""When the speech of a hands-free turn began and ended."""

GUESSED: Final = MappingProxyType(
    {
        "asr_start": 9.8,
        "asr_done": 9.861,
        "request_sent": 9.863,
        "first_content": 9.9214,
        "first_clause": 9.95,
        "tts_first_byte": 9.987,
        "first_audio_sent": 10.0013,
        "browser_received": 10.0104,
        "browser_play": 10.0528,
        "last_content": 10.014,
        "stream_end": 10.0151,
    }
)
"""A hands-free turn whose work was done before its endpoint at 10 s: 400 ms after its speech ended."""

HOSTILE: Final = "\"><img src=x onerror=alert(1)><script>alert(1)</script>'&amp;{{7*7}}${1}"
"""What nobody must be able to put into the page as markup."""

USAGE: Final = Usage(1212, 24, 1200)


def turn_with(
    marks: Mapping[str, float] = MARKS,
    usage: Usage | None = USAGE,
    *,
    kind: Kind = "push_to_talk",
    image: ImagePart | None = None,
    stages: Stages | None = None,
    **about: Any,
) -> Turn:
    """A turn that never ran, with `marks` (the endpoint is set to 10 s), `usage`, and `about` its circumstances."""
    persona = scripted_persona()
    utterance = Utterance(
        audio=None if kind == "typed" else np.zeros(160, np.float32),
        text="hi",
        image=image,
        spoken_at=SPOKEN_AT if kind == "hands_free" else None,
    )
    parts = stages or scripted_stages(time.monotonic)
    turn = Turn(parts, persona, persona.voices[0], Conversation(), utterance, _ignore, clock=lambda: 10.0)
    for name, at in marks.items():
        turn.timeline.mark(name, at)
    turn.usage = usage
    turn.circumstances = Circumstances(**about)
    return turn


def _ignore(_: TurnEvent) -> None:
    """Nobody watches."""
