"""Speech with known words for tests: recordings of people where the checkout has them, else the Kokoro voice."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np

from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.audio.pcm import wav_bytes
from spoken_chat.bench.speech import SENTENCES, Sample, recorded, synthesised
from spoken_chat.settings import load


@functools.cache
def human() -> tuple[Sample, ...]:
    """The recordings of people; empty where there are none."""
    return tuple(recorded())


@functools.cache
def samples() -> tuple[Sample, ...]:
    """Some speech in English and Chinese, always."""
    return human() or tuple(synthesised(load(), [SENTENCES[0], SENTENCES[4]]))


def spoken(language: str) -> Sample:
    """The longest sample in `language`."""
    return max((sample for sample in samples() if sample.language == language), key=lambda sample: sample.seconds)


def long_speech(language: str, seconds: float) -> FloatPcm:
    """At least `seconds` of speech in `language`: its samples over and over."""
    audio = np.concatenate([sample.audio for sample in samples() if sample.language == language])
    return np.tile(audio, int(np.ceil(seconds * ASR_RATE / len(audio))))


def english_question(folder: Path) -> tuple[Path, str]:
    """English speech as a WAV file in `folder`, and its longest word, in small letters."""
    sample = spoken("en")
    path = folder / "speech.wav"
    path.write_bytes(wav_bytes((sample.audio * 32767).astype(np.int16), ASR_RATE))
    return path, max(re.findall(r"[a-z]+", sample.words.lower()), key=len)
