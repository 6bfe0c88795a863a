"""How one conversation listens: what the settings say, as its page or its client may change it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from spoken_chat.settings import Settings

Detection = Literal["adaptive", "fixed", "manual"]
"""How the end of a turn is found: by silence as long as the smart-turn model advises, by a fixed silence, or only by
hand: a button, a key, the client's commit."""

WORK_AFTER_S: Final = 0.192
"""Silence after which speculative work begins: 200 ms, in whole decisions of the detector (six of 32 ms)."""

RAISE_AFTER_S: Final = 0.16
"""A reply that was turned down for what did not become speech is raised again after this much quiet."""

CONFIRM_AFTER_S: Final = 0.4
"""Speech over the reply that stops it, whatever was said."""

ECHO_WARM_UP_S: Final = 0.3
"""Speech is not taken for an interruption this long after the reply was first heard: echo cancellation needs as long
to adapt."""

PLAYING_THRESHOLD: Final = 0.7
"""The least probability of speech that may stop a reply: what is left of its own echo lies below. To turn it down, the
usual one is enough."""

ECHO_TAIL_S: Final = 0.3
"""How long after its last sample the reply may still be in the room."""


@dataclass(frozen=True)
class TalkOptions:
    """Times in seconds. `threshold`: the least probability of speech that starts it, 0 to 1."""

    detection: Detection = "adaptive"
    threshold: float = 0.5
    pre_roll: float = 0.3
    wait: float = 0.6
    wait_finished: float = 0.4
    wait_unfinished: float = 1.5
    reopen_within: float = 1.0
    utterance_max: float = 60.0
    answers: bool = True
    """Whether a turn that the detector ended is answered without being asked (`create_response`)."""
    speculation: bool = True
    speculation_most: int = 4
    """With more active conversations than this, nothing is begun before a turn's end: guesses cost others' time."""
    partial_transcripts: bool = True
    barge_in: bool = True
    half_duplex: bool = False
    spoken_reply: bool = True
    """False: replies are only written (`output_modalities` is text)."""

    @classmethod
    def of(cls, settings: Settings) -> TalkOptions:
        """What the settings say."""
        return cls(
            detection=settings.turn_detection,
            wait=settings.silence_wait,
            wait_finished=settings.silence_wait_finished,
            wait_unfinished=settings.silence_wait_unfinished,
            reopen_within=settings.reopen_within,
            utterance_max=settings.utterance_max_seconds,
            speculation=settings.speculation,
            speculation_most=settings.speculation_most_sessions,
            partial_transcripts=settings.partial_transcripts,
            barge_in=settings.barge_in,
            half_duplex=settings.half_duplex,
        )
