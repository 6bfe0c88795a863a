"""Turns with given figures: what has to show them is tested without running anything."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from spoken_chat.conversation import Conversation, ImagePart
from spoken_chat.events import TurnEvent
from spoken_chat.llm import Usage
from spoken_chat.turn import Kind, Stages, Turn, Utterance
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
        "browser_play": 10.5,
        "last_content": 10.44021,
        "stream_end": 10.441,
    }
)
"""A whole turn, in seconds; its endpoint is at 10 s."""

USAGE: Final = Usage(1212, 24, 1200)


def turn_with(
    marks: Mapping[str, float] = MARKS,
    usage: Usage | None = USAGE,
    *,
    kind: Kind = "push_to_talk",
    image: ImagePart | None = None,
    stages: Stages | None = None,
) -> Turn:
    """A turn that never ran, with `marks` (the endpoint is set to 10 s) and `usage`."""
    persona = scripted_persona()
    utterance = Utterance(audio=np.zeros(160, np.float32) if kind == "push_to_talk" else None, text="hi", image=image)
    parts = stages or scripted_stages(time.monotonic)
    turn = Turn(parts, persona, persona.voices[0], Conversation(), utterance, _ignore, clock=lambda: 10.0)
    for name, at in marks.items():
        turn.timeline.mark(name, at)
    turn.usage = usage
    return turn


def _ignore(_: TurnEvent) -> None:
    """Nobody watches."""
