"""What is being said, and what was said and not answered yet."""

from __future__ import annotations

import dataclasses
import secrets
from dataclasses import dataclass, field

import numpy as np

from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.conversation import ImagePart
from spoken_chat.turn import Utterance

PAUSE_S = 0.3
"""Silence between two pieces of sound that were not spoken in one go."""


@dataclass
class Spoken:
    """Speech in progress. Positions are seconds of the microphone's stream.

    `candidate`: it lies over a reply, and whether it is meant to stop it is not decided yet. `announced`: whoever
    shows the talk knows of it. `before`: what an earlier turn had been given that this speech goes on with, and
    `words`: what was understood of that.
    """

    start: float
    candidate: bool = False
    announced: bool = False
    dropped_starts: int = 0
    reopened: int = 0
    before: Utterance | None = None
    words: str = ""
    id: str = field(default_factory=lambda: "item_" + secrets.token_hex(10))


@dataclass
class Waiting:
    """What was given and not answered yet: sound, text of a turn that was taken back, and an image that goes with
    whatever comes next."""

    sounds: list[FloatPcm] = field(default_factory=list)
    spoken_at: tuple[float, float] | None = None
    utterance: str | None = None
    text: str = ""
    image: ImagePart | None = None

    def add(self, utterance: str, given: Utterance) -> None:
        """Keep what was `given`, by an utterance of that name.

        Sound from several places has no single end of speech: it counts as given.
        """
        self.spoken_at = given.spoken_at if not self.sounds else None
        if given.audio is not None:
            self.sounds.append(given.audio)
        self.text = _lines(self.text, given.text)
        self.image = given.image or self.image
        self.utterance = utterance

    def take(self, given: Utterance) -> tuple[Utterance, str | None]:
        """`given` with all that waits before it, and the name of the speech in it; nothing waits any more."""
        sounds = [*self.sounds, *([] if given.audio is None else [given.audio])]
        whole = dataclasses.replace(
            given,
            audio=joined(sounds) if sounds else None,
            text=_lines(self.text, given.text),
            image=given.image or self.image,
            spoken_at=given.spoken_at if given.audio is not None else self.spoken_at,
        )
        utterance = self.utterance
        self.clear()
        return whole, utterance

    def clear(self) -> None:
        """Nothing waits any more."""
        self.sounds, self.spoken_at, self.utterance, self.text, self.image = [], None, None, "", None


def joined(sounds: list[FloatPcm]) -> FloatPcm:
    """Sounds as one, with a short silence between them."""
    pause = np.zeros(round(PAUSE_S * ASR_RATE), np.float32)
    pieces: list[FloatPcm] = []
    for sound in sounds:
        pieces += [pause, sound] if pieces else [sound]
    return np.concatenate(pieces)


def continued(before: Utterance, now: Utterance) -> Utterance:
    """`now` as the continuation of `before`: sounds, texts and image of both, and the time since the first began."""
    sounds = [sound for sound in (before.audio, now.audio) if sound is not None]
    spoken_at = now.spoken_at
    if before.spoken_at is not None and now.spoken_at is not None:
        spoken_at = (before.spoken_at[0], now.spoken_at[1])
    return Utterance(
        audio=joined(sounds) if sounds else None,
        text=_lines(before.text, now.text),
        image=now.image or before.image,
        received_at=now.received_at,
        spoken_at=spoken_at,
    )


def _lines(*texts: str) -> str:
    return "\n".join(text for text in texts if text)
