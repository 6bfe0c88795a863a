"""Whether a speaker who fell silent has finished, from how it sounds: smart-turn v3.2 (Daily, BSD-2-Clause).

The network (ONNX, 8.7 MB, in the wheel of pipecat-ai, of which nothing is imported) was trained on the last 8 s of
speech ending in about 0.2 s of silence, in 23 languages. It sees them as Whisper does: a log-mel spectrogram.
"""

from __future__ import annotations

import threading
from typing import Any, Final, Protocol

import numpy as np
from faster_whisper.feature_extractor import FeatureExtractor
from numpy.typing import NDArray

from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.networks import load_network
from spoken_chat.weights import package_file

_PACKAGE: Final = "pipecat"
_FILE: Final = "audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx"
_SECONDS: Final = 8
_SAMPLES: Final = _SECONDS * ASR_RATE
_LEAST_VARIANCE: Final = 1e-7

_FINISHED: Final = 0.5
"""From here on the speaker has finished: the bound the network was trained for."""

_UNFINISHED: Final = 0.1
"""Up to here the speaker has not. Of 19 recordings and synthetic sentences in English and Chinese, with four levels of
noise each, not one whole utterance came out this low, and half of the pauses within one did."""


class EndOfTurnModel(Protocol):
    """Says whether a speaker has finished. Blocking; may be called from several threads."""

    def load(self) -> None:
        """Get ready, with one real pass. Raises ChatError."""
        ...

    def finished(self, audio: FloatPcm) -> float:
        """The probability that the speaker of 16 kHz mono `audio`, shape (n,), is done at its end. Raises ChatError."""
        ...


class SmartTurn:
    """The smart-turn network; loaded by `load`, or by the first call. Takes one core while it runs."""

    def __init__(self) -> None:
        self._features = FeatureExtractor(sampling_rate=ASR_RATE, chunk_length=_SECONDS)
        self._loading = threading.Lock()
        self._session: Any = None

    def load(self) -> None:
        """Load the network and run it once. Raises ChatError when it is missing or damaged."""
        self.finished(np.zeros(ASR_RATE, np.float32))

    def finished(self, audio: FloatPcm) -> float:
        """The probability, 0 to 1, that the speaker is done at the end of 16 kHz mono `audio`; its last 8 s count."""
        probability = self._loaded().run(None, {"input_features": self.features(audio)[np.newaxis]})[0]
        return float(probability[0, 0])

    def features(self, audio: FloatPcm) -> NDArray[np.float32]:
        """What the network sees of `audio`: 80 mel bands of 800 frames of 10 ms, shape (80, 800).

        Speech shorter than 8 s has silence before it; loudness is levelled over the 8 s, silence included.
        """
        last = audio[-_SAMPLES:]
        window = np.pad(last, (_SAMPLES - len(last), 0))
        levelled = (window - window.mean()) / np.sqrt(window.var() + np.float32(_LEAST_VARIANCE))
        features: NDArray[np.float32] = self._features(levelled, padding=0)
        return features

    def _loaded(self) -> Any:
        with self._loading:
            if self._session is None:
                self._session = _session()
            return self._session


def wait_for(probability: float, finished_s: float, unfinished_s: float) -> float:
    """The silence in seconds to wait for, when the speaker has finished with that probability.

    `finished_s` from 0.5 on and `unfinished_s` up to 0.1; in between, where whole utterances and pauses within one
    both lie, it shrinks evenly, so that a doubt costs neither the whole wait nor an answer in the middle of a sentence.
    """
    if probability >= _FINISHED:
        return finished_s
    if not probability > _UNFINISHED:  # also when it is not a number
        return unfinished_s
    doubt = (_FINISHED - probability) / (_FINISHED - _UNFINISHED)
    return finished_s + doubt * (unfinished_s - finished_s)


def _session() -> Any:
    path = package_file(_PACKAGE, _FILE)
    return load_network(path, 1, what="The end-of-turn model", mend="reinstall with `make install`")
