"""Samples in one form: dtype, downmix and resampling in one place, at once or as a stream."""

from __future__ import annotations

import io
import wave
from typing import Any, Final

import av
import numpy as np
from numpy.typing import NDArray

from spoken_chat.audio import FloatPcm, Pcm16

_MAX_CHANNELS: Final = 8
_CANCELLED: Final = 1e-4
"""Share of the channels' energy below which a downmix counts as cancelled out (-40 dB)."""
_BLOCKS_PER_SECOND: Final = 50
_SPEECH_LEVEL: Final = 0.1
"""Root mean square of loud speech (-20 dBFS)."""
_LEVEL_BLOCK: Final = 5
_MAX_GAIN: Final = 100.0


def to_mono(samples: NDArray[Any], rate_in: int, rate_out: int) -> FloatPcm:
    """Any audio array as mono float32 in [-1, 1] at `rate_out` samples per second, shape (n,).

    `samples` is uint8, int16, int32 or any float; its shape is (n,), (n, channels) as Gradio gives it, or
    (channels, n) with at most 8 channels and more than 8 samples. Raises ValueError for another dtype or shape.
    """
    if samples.ndim == 2 and samples.shape[0] <= _MAX_CHANNELS < samples.shape[1]:
        samples = samples.T
    mono = downmix(samples)
    if rate_in == rate_out:
        return mono
    resampler = Resampler(rate_in, rate_out)
    return np.concatenate([resampler.feed(mono), resampler.finish()])


def downmix(samples: NDArray[Any]) -> FloatPcm:
    """Samples of shape (n,) or (n, channels) as mono float32 in [-1, 1]: NaN is silence, what is louder is clipped.

    The mean of the channels, or the first one where they cancel out, as a balanced microphone in a stereo jack does.
    Raises ValueError for another dtype or shape.
    """
    floats = _as_float(samples)
    if floats.ndim == 1:
        return floats
    if floats.ndim != 2 or floats.shape[1] == 0:
        raise ValueError(f"audio must have the shape (n,) or (n, channels), not {samples.shape}")
    mixed: FloatPcm = floats.mean(axis=1, dtype=np.float32)
    if np.square(mixed).sum() < _CANCELLED * np.square(floats).mean(axis=1).sum():
        return np.ascontiguousarray(floats[:, 0])
    return mixed


def _as_float(samples: NDArray[Any]) -> NDArray[np.float32]:
    if samples.dtype == np.uint8:
        return (samples.astype(np.float32) - np.float32(128)) / np.float32(128)
    if samples.dtype in (np.int16, np.int32):
        return np.asarray(samples / -float(np.iinfo(samples.dtype).min), dtype=np.float32)
    if not np.issubdtype(samples.dtype, np.floating):
        raise ValueError(f"audio samples cannot be of type {samples.dtype}")
    finite = np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0)
    return np.asarray(np.clip(finite, -1, 1), dtype=np.float32)


class Resampler:
    """Changes the sample rate of a mono stream; however the stream is cut into pieces, the result is the same.

    The result has round(samples in * rate_out / rate_in) samples. FFmpeg's resampler does the work. It fails on
    frames of a few samples, so that it is given whole blocks of 20 ms, the last one filled up with silence.
    """

    def __init__(self, rate_in: int, rate_out: int) -> None:
        """Rates in samples per second. Raises ValueError when one is not positive."""
        if rate_in <= 0 or rate_out <= 0:
            raise ValueError(f"sample rates must be positive, not {rate_in} and {rate_out}")
        self._rate_in = rate_in
        self._rate_out = rate_out
        self._block = max(1, rate_in // _BLOCKS_PER_SECOND)
        self._resampler = av.AudioResampler(format="flt", layout="mono", rate=rate_out)
        self._pending: FloatPcm = np.zeros(0, np.float32)
        self._fed = 0
        self._given = 0

    def feed(self, samples: FloatPcm) -> FloatPcm:
        """Take `samples`, shape (n,), and return what is ready: possibly nothing, at most 20 ms and a filter behind."""
        self._fed += len(samples)
        pending = np.concatenate([self._pending, samples])
        whole = len(pending) - len(pending) % self._block
        self._pending = pending[whole:]
        return self._push(pending[:whole]) if whole else np.zeros(0, np.float32)

    def finish(self) -> FloatPcm:
        """The rest, after the last `feed`."""
        if not self._fed:
            return np.zeros(0, np.float32)
        last = np.zeros(self._block, np.float32)
        last[: len(self._pending)] = self._pending
        left = round(self._fed * self._rate_out / self._rate_in) - self._given
        tail = np.concatenate([self._push(last), self._collect(self._resampler.resample(None))])
        return tail[:left]

    def _push(self, block: FloatPcm) -> FloatPcm:
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(block[np.newaxis]), format="flt", layout="mono")
        frame.sample_rate = self._rate_in
        frame.pts = None
        return self._collect(self._resampler.resample(frame))

    def _collect(self, frames: list[av.AudioFrame]) -> FloatPcm:
        pieces = [frame.to_ndarray().ravel() for frame in frames]
        samples: FloatPcm = np.concatenate([np.zeros(0, np.float32), *pieces]).clip(-1, 1)
        self._given += len(samples)
        return samples


def to_pcm16(samples: FloatPcm) -> Pcm16:
    """Float samples in [-1, 1] as 16-bit ones; louder ones are clipped, NaN is silence."""
    finite = np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0)
    return np.clip(np.round(finite * 32768.0), -32768, 32767).astype(np.int16)


def from_pcm16(samples: Pcm16) -> FloatPcm:
    """16-bit samples as float32 in [-1, 1)."""
    return samples.astype(np.float32) / np.float32(32768)


def wav_bytes(samples: Pcm16, rate: int) -> bytes:
    """A mono 16-bit WAV file with `samples`, shape (n,), at `rate` samples per second."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())
    return out.getvalue()


def levelled(samples: FloatPcm, rate: int) -> FloatPcm:
    """`samples` without DC offset, and raised to the level of speech where they are quieter (at most 40 dB).

    The level is that of the fifth-loudest 32 ms, so that a click does not pass for loudness and a pause not for quiet.
    """
    if not len(samples):
        return samples
    centred = samples - samples.mean(dtype=np.float64).astype(np.float32)
    block = max(1, rate * 32 // 1000)
    blocks = np.pad(centred, (0, -len(centred) % block)).reshape(-1, block)
    loudness = np.sort(np.sqrt(np.square(blocks).mean(axis=1)))
    level = float(loudness[-min(len(loudness), _LEVEL_BLOCK)])
    gain = min(_MAX_GAIN, max(1.0, _SPEECH_LEVEL / level)) if level else 1.0
    raised: FloatPcm = (centred * np.float32(gain)).clip(-1, 1)
    return raised
