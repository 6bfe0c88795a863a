"""Where in the sound somebody speaks: Silero VAD (the ONNX file that faster-whisper bundles, MIT), streaming.

The network looks at 32 ms at a time and carries over its recurrent state (h, c) and the last 64 samples. Fed in
order, any number of chunks at once gives the same probabilities as one by one.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
from faster_whisper.utils import get_assets_path
from numpy.typing import NDArray

from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.errors import ChatError
from spoken_chat.networks import load_network

CHUNK: Final = 512
"""Samples per decision: 32 ms at 16 kHz."""

_MODEL_FILE: Final = "silero_vad_v6.onnx"
_CONTEXT: Final = 64
_STATE_SHAPE: Final = (1, 1, 128)
_BATCH: Final = 32
"""Chunks per call of the network: measured fastest here; one call for a whole utterance is slower than 1 s pieces."""

_AROUND_S: Final = 0.4
_KEPT_PAUSE_S: Final = 3.0
_WORTH_CUTTING_S: Final = 1.0


@functools.cache
def _session() -> onnxruntime.InferenceSession:
    """The one network of this process; its `run` may be called from several threads at once."""
    path = Path(get_assets_path()) / _MODEL_FILE
    if not path.is_file():
        raise ChatError(
            "vad_missing", f"faster-whisper was installed without {_MODEL_FILE}; reinstall with `make install`."
        )
    return load_network(path, 1, what="The speech detector", mend="reinstall with `make install`")


class VoiceDetector:
    """The probability of speech in each 32 ms of one stream. One detector per stream; not shared between threads."""

    def __init__(self) -> None:
        self._session = _session()
        self.reset()

    def reset(self) -> None:
        """Forget the stream: the next chunk is the first of another one."""
        self._h = np.zeros(_STATE_SHAPE, np.float32)
        self._c = np.zeros(_STATE_SHAPE, np.float32)
        self._context = np.zeros(_CONTEXT, np.float32)

    def feed(self, chunk: FloatPcm) -> float:
        """The probability that somebody speaks in the next 512 samples (16 kHz mono). Raises ValueError on others."""
        if chunk.shape != (CHUNK,):
            raise ValueError(f"a chunk must have the shape ({CHUNK},), not {chunk.shape}")
        return float(self.probabilities(chunk)[0])

    def probabilities(self, samples: FloatPcm) -> NDArray[np.float32]:
        """The probability for each of the next chunks, `samples` being a whole number of them."""
        if samples.ndim != 1 or len(samples) % CHUNK:
            raise ValueError(f"samples must be whole chunks of {CHUNK}, not of shape {samples.shape}")
        found = [np.zeros(0, np.float32)]
        for start in range(0, len(samples), CHUNK * _BATCH):
            piece = np.concatenate([self._context, samples[start : start + CHUNK * _BATCH]])
            windows = np.lib.stride_tricks.sliding_window_view(piece, _CONTEXT + CHUNK)[::CHUNK]
            speech, self._h, self._c = self._session.run(
                None, {"input": np.ascontiguousarray(windows), "h": self._h, "c": self._c}
            )
            self._context = piece[-_CONTEXT:]
            found.append(speech.ravel())
        return np.concatenate(found)


@dataclass(frozen=True)
class SpeechRule:
    """When probabilities become speech. It starts at `start` and goes on until `stop` is undercut for `gap_s`."""

    start: float = 0.5
    stop: float = 0.35
    gap_s: float = 0.3
    minimum_s: float = 0.09


DEFAULT_RULE: Final = SpeechRule()


def speech_spans(audio: FloatPcm, rule: SpeechRule = DEFAULT_RULE) -> list[tuple[float, float]]:
    """Where in 16 kHz mono `audio` somebody speaks: (start, end) in seconds, in order, to the 32 ms, without padding.

    Speech shorter than `rule.minimum_s` is a click or a cough and left out.
    """
    padded = np.pad(audio, (0, -len(audio) % CHUNK))
    return spans_of(VoiceDetector().probabilities(padded), len(audio) / ASR_RATE, rule)


def spans_of(
    probabilities: NDArray[np.float32], duration_s: float, rule: SpeechRule = DEFAULT_RULE
) -> list[tuple[float, float]]:
    """`speech_spans` from the probability of each 32 ms of `duration_s` seconds."""
    step = CHUNK / ASR_RATE
    gap = rule.gap_s / step
    spans: list[tuple[int, int]] = []
    first: int | None = None
    last = 0
    for index, probability in enumerate(probabilities):
        if first is None:
            if probability >= rule.start:
                first = last = index
        elif probability >= rule.stop:
            last = index
        elif index - last >= gap:
            spans.append((first, last + 1))
            first = None
    if first is not None:
        spans.append((first, last + 1))
    return [
        (start * step, min(end * step, duration_s))
        for start, end in spans
        if min(end * step, duration_s) - start * step >= rule.minimum_s
    ]


def speech_only(audio: FloatPcm) -> FloatPcm:
    """16 kHz mono `audio` without its long silences: every span of speech with 0.4 s around it, shape (n,).

    Pauses under 3 s stay as they are, since the detector can miss a quiet word beside one; so does everything where
    there is less than a second to cut. Without speech nothing is left: n is 0.
    """
    pieces: list[tuple[int, int]] = []
    for start_s, end_s in speech_spans(audio):
        start = max(0, round((start_s - _AROUND_S) * ASR_RATE))
        end = min(len(audio), round((end_s + _AROUND_S) * ASR_RATE))
        if pieces and start - pieces[-1][1] < (_KEPT_PAUSE_S - 2 * _AROUND_S) * ASR_RATE:
            start, _ = pieces.pop()
        pieces.append((start, end))
    if pieces and len(audio) - sum(end - start for start, end in pieces) < _WORTH_CUTTING_S * ASR_RATE:
        return audio
    return np.concatenate([np.zeros(0, np.float32), *(audio[start:end] for start, end in pieces)])
