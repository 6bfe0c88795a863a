"""What is said in the benchmark: English speech with its known end, recorded where the checkout has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.audio.vad import speech_spans
from spoken_chat.bench.speech import RECORDINGS, SENTENCES, Sample, recorded, synthesised
from spoken_chat.errors import ChatError
from spoken_chat.settings import Settings

LEAST: Final = 7
"""Fewer utterances than this say little."""

MORE_SENTENCES: Final = (
    ("en", "Please tell me what the weather will be like tomorrow morning."),
    ("en", "Do you know a good book about the history of trains?"),
    ("en", "I would like to learn how to play the guitar this year."),
    ("en", "Can you explain why the sky turns red in the evening?"),
)


@dataclass(frozen=True)
class Utterance:
    """Speech without silence around it: 16 kHz mono, and how many seconds of it there are."""

    name: str
    audio: FloatPcm

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.audio) / ASR_RATE

    def with_pause(self, seconds: float) -> Utterance:
        """The same, with so much silence put where it is quietest in its middle half."""
        window = ASR_RATE // 50
        energy = np.convolve(np.square(self.audio), np.ones(window, np.float32), mode="same")
        first, last = len(energy) // 4, 3 * len(energy) // 4
        place = first + int(np.argmin(energy[first:last]))
        pause = np.zeros(round(seconds * ASR_RATE), np.float32)
        return Utterance(f"{self.name}, pause", np.concatenate([self.audio[:place], pause, self.audio[place:]]))


def utterances(settings: Settings, most: int | None = None) -> list[Utterance]:
    """At least LEAST utterances in English. Raises ChatError when there are fewer."""
    samples = [sample for sample in recorded(RECORDINGS) if sample.language == "en"]
    english = [sentence for sentence in (*SENTENCES, *MORE_SENTENCES) if sentence[0] == "en"]
    samples += synthesised(settings, english)
    return chosen(samples, most)


def chosen(samples: Sequence[Sample], most: int | None = None) -> list[Utterance]:
    """The first `most` of `samples` that hold speech, trimmed to it. Raises ChatError when they are too few."""
    found = []
    for sample in samples:
        spans = speech_spans(sample.audio)
        if spans:
            start, end = spans[0][0], spans[-1][1]
            found.append(Utterance(sample.name, sample.audio[round(start * ASR_RATE) : round(end * ASR_RATE)]))
    if len(found) < LEAST:
        raise ChatError("bench_speech", f"The benchmark needs {LEAST} utterances and found {len(found)}.")
    return found[:most]
