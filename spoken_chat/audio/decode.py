"""Audio files of any usual kind, read into what the recogniser hears. Only the given bytes are read, nothing else."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import av
import numpy as np
from av.container import InputContainer
from numpy.typing import NDArray

from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.audio.pcm import Resampler, downmix
from spoken_chat.errors import ChatError

_FORMATS: Final = "wav,w64,aiff,au,caf,mp3,flac,aac,ogg,matroska,webm,mov,mp4,m4a,3gp,3g2,amr,asf,avi,ac3,wv"
"""FFmpeg demuxers that may look at the bytes: files that hold their own sound, no playlists or scripts."""

_HEADER_TELLS_LENGTH: Final = ("flac", "mov")
"""Containers of which FFmpeg reads in the header how long the sound is. Elsewhere it estimates from what is there."""

_RIFF_PLACEHOLDER: Final = 0x7FFF_0000
"""A WAV header that claims more bytes was written before the length was known, as recorders to a pipe do."""

_LEAST_SHARE: Final = 0.5
"""A damaged file is used when at least this share of it can be read."""

Frame = tuple[NDArray[Any], int]
"""Samples of shape (n, channels), and their rate."""


def decode_audio(source: bytes | Path, *, max_seconds: float, max_bytes: int) -> FloatPcm:
    """The sound of an audio file as 16 kHz mono float32, shape (n,), n > 0.

    Takes what FFmpeg reads: wav, mp3, flac, m4a, webm, ogg and others, at any rate, channels and sample format; the
    first audio track of a video file too. A damaged or cut file is used when most of it is readable. Raises ChatError
    when the file is missing, empty, longer than `max_bytes` or `max_seconds`, has no sound, or is mostly unreadable.
    """
    data = _read(source, max_bytes)
    pieces: list[FloatPcm] = []
    seconds = 0.0
    with _open(data) as container:
        if not container.streams.audio:
            raise ChatError("audio_no_track", "This file has no sound in it; please give an audio recording.")
        reader = _Reader(container, _share_of_riff(data))
        resampler: Resampler | None = None
        rate = 0
        for samples, rate_in in reader.frames():
            if resampler is None or rate_in != rate:
                pieces += [resampler.finish()] if resampler else []
                resampler, rate = Resampler(rate_in, ASR_RATE), rate_in
            pieces.append(resampler.feed(downmix(samples)))
            seconds += len(samples) / rate_in
            if seconds > max_seconds:
                raise ChatError(
                    "audio_too_long",
                    f"This recording is longer than {max_seconds:g} seconds; please give a shorter one.",
                    max_seconds=max_seconds,
                )
        pieces += [resampler.finish()] if resampler else []
        reader.check(seconds)
    return np.concatenate(pieces)


def _read(source: bytes | Path, max_bytes: int) -> bytes:
    try:
        size = len(source) if isinstance(source, bytes) else source.stat().st_size
        if size > max_bytes:
            raise ChatError(
                "audio_too_large",
                f"This audio file has {size / 1e6:.1f} MB and the limit is {max_bytes / 1e6:g} MB; "
                "please give a smaller one.",
                size=size,
                max_bytes=max_bytes,
            )
        data = source if isinstance(source, bytes) else source.read_bytes()
    except OSError as error:
        raise ChatError(
            "audio_missing", f"The audio file {source!s} cannot be read: {error.strerror}.", file=str(source)
        ) from error
    if not data:
        raise ChatError("audio_empty", "This audio file is empty; please record or choose another one.")
    return data


def _open(data: bytes) -> InputContainer:
    """Open from memory: FFmpeg gets no file name, no playlist reader, and no way to open anything else."""
    try:
        return av.open(
            io.BytesIO(data),
            mode="r",
            metadata_errors="replace",
            io_open=_refuse,
            container_options={"format_whitelist": _FORMATS, "protocol_whitelist": "none"},
        )
    except (av.FFmpegError, ValueError) as error:
        raise _unreadable() from error


def _refuse(url: str, _flags: int, _options: dict[str, str]) -> NoReturn:
    raise PermissionError(f"an audio file may not open {url}")


def _unreadable() -> ChatError:
    return ChatError(
        "audio_unreadable",
        "This file could not be read as audio; please give a wav, mp3, flac, m4a, ogg or webm file.",
    )


class _Reader:
    """Decodes one container's first audio track, going on after damaged places, and judges how much was lost."""

    def __init__(self, container: InputContainer, share: float) -> None:
        """`share` is how much of the file is there at all, 0 to 1."""
        self._container = container
        self._share = share
        self._stream = container.streams.audio[0]
        self._damaged = 0
        self._packets = 0

    def frames(self) -> Iterator[Frame]:
        for packet in self._demux():
            self._packets += 1
            try:
                frames = self._stream.decode(packet)
            except av.EOFError:
                return
            except av.FFmpegError:
                self._damaged += 1
                continue
            for frame in frames:
                if frame.samples:
                    yield _samples(frame), frame.sample_rate

    def _demux(self) -> Iterator[av.Packet[Any] | None]:
        packets = self._container.demux(self._stream)
        while True:
            try:
                packet = next(packets)
            except StopIteration:
                return
            except av.FFmpegError:
                # The container is broken from here on: count one lost packet and let the decoder give its rest.
                self._damaged += 1
                yield None
                return
            yield packet

    def check(self, seconds: float) -> None:
        """Raise ChatError when of the file's sound not enough was read, `seconds` being what was."""
        if not seconds:
            if self._damaged:
                raise _unreadable()
            raise ChatError("audio_empty", "There is no sound in this file; please record or choose another one.")
        claimed = self._claimed_seconds() or seconds
        read = min(self._share, seconds / claimed, 1 - self._damaged / max(1, self._packets))
        if read < _LEAST_SHARE:
            raise ChatError(
                "audio_damaged",
                f"Only {read:.0%} of this audio file could be read, it seems to be cut off or damaged; "
                "please send it again.",
                percent=round(read * 100),
            )

    def _claimed_seconds(self) -> float | None:
        duration = self._container.duration
        if duration is None or not self._container.format.name.startswith(_HEADER_TELLS_LENGTH):
            return None
        return duration / av.time_base


def _share_of_riff(data: bytes) -> float:
    """How much of a WAV file is there, by the size in its header; 1 for every other file."""
    if data[:4] != b"RIFF" or len(data) < 8:
        return 1.0
    claimed = int.from_bytes(data[4:8], "little")
    return min(1.0, len(data) / (claimed + 8)) if claimed < _RIFF_PLACEHOLDER else 1.0


def _samples(frame: av.AudioFrame) -> NDArray[Any]:
    """A decoded frame's samples in the shape (n, channels)."""
    array = frame.to_ndarray()
    return array.T if frame.format.is_planar else array.reshape(-1, frame.layout.nb_channels)
