"""mp3 decoded while it arrives, so that the first sound needs no more than the first frames of the stream."""

from __future__ import annotations

import logging
from typing import Final

import av
import numpy as np

from spoken_chat.audio import TTS_RATE, Pcm16
from spoken_chat.errors import ChatError

_log = logging.getLogger(__name__)


class Mp3Decoder:
    """Turns the bytes of one mp3 stream, cut anywhere, into 24 kHz mono int16 samples.

    The samples do not depend on how the stream was cut: the parser reassembles whole frames before decoding. A stream
    of another rate or with two channels is resampled and mixed down. What is no sound, such as a tag or a damaged
    frame, is skipped, as players do.
    """

    def __init__(self) -> None:
        self._codec = av.Codec("mp3float", "r").create("audio")
        self._resampler = av.AudioResampler(format="s16", layout="mono", rate=TTS_RATE)
        self._received = 0
        self._decoded = 0

    def feed(self, data: bytes) -> Pcm16:
        """Take the next bytes; return the samples they complete, shape (n,), n >= 0."""
        self._received += len(data)
        # The parser takes empty input for the end of the stream.
        return self._decode(data) if data else _EMPTY

    def finish(self) -> Pcm16:
        """End the stream: return the samples of its last frame, shape (n,), n >= 0.

        Raises ChatError when bytes came but none of them was mp3.
        """
        rest = np.concatenate([self._decode(b""), *self._resampled(None)])
        if self._received and not self._decoded:
            raise ChatError(
                "bad_mp3", "The voice service sent sound that cannot be decoded; try again or choose another voice."
            )
        return rest

    def _decode(self, data: bytes) -> Pcm16:
        blocks: list[Pcm16] = []
        for packet in self._codec.parse(data):
            try:
                frames = self._codec.decode(packet)
            except av.error.InvalidDataError as error:
                _log.debug("skipped %d bytes of an mp3 stream: %s", packet.size, error)
                continue
            for frame in frames:
                self._decoded += frame.samples
                blocks.extend(self._resampled(frame))
        return np.concatenate(blocks) if blocks else _EMPTY

    def _resampled(self, frame: av.AudioFrame | None) -> list[Pcm16]:
        return [block.to_ndarray()[0] for block in self._resampler.resample(frame)]


_EMPTY: Final[Pcm16] = np.zeros(0, dtype=np.int16)
_EMPTY.setflags(write=False)
