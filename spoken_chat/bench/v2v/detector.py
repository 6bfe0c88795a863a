"""What listening itself costs: detector and endpointer, per 32 ms of sound."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import numpy as np

from spoken_chat.audio.endpointing import EndpointRule
from spoken_chat.audio.vad import CHUNK, VoiceDetector
from spoken_chat.bench.report import Target, at_most, spread
from spoken_chat.bench.v2v.utterances import Utterance
from spoken_chat.talk.listener import Listener
from spoken_chat.timeline import percentile

LIMIT_MS: Final = 0.4


def measure(utterances: Sequence[Utterance]) -> list[float]:
    """Milliseconds of each chunk of `utterances`, one stream after the other."""
    times: list[float] = []
    for utterance in utterances:
        listener = Listener(VoiceDetector(), EndpointRule(), 0.6)
        audio = np.pad(utterance.audio, (0, -len(utterance.audio) % CHUNK))
        for start in range(0, len(audio), CHUNK):
            began = time.perf_counter()
            for _ in listener.hear(audio[start : start + CHUNK], 0.0, deaf=False):
                pass
            times.append((time.perf_counter() - began) * 1000)
    return times


def report(times: Sequence[float]) -> tuple[str, list[Target]]:
    """The line and the target."""
    text = f"detector and endpointing per 32 ms of sound: {spread(times, 3)}"
    return text, [at_most(f"p95 under {LIMIT_MS} ms (n = {len(times)})", percentile(list(times), 0.95), LIMIT_MS, "ms")]
