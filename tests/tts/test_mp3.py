"""mp3 comes in pieces of any size and goes out as samples, as soon as they can be decoded."""

from __future__ import annotations

import io
import itertools
from fractions import Fraction

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spoken_chat.audio import Pcm16
from spoken_chat.errors import ChatError
from spoken_chat.tts.mp3 import Mp3Decoder
from tests.support.edge_server import FRAME_BYTES, RATE, encode_mp3

SECONDS = 1.0
TONE = (12_000 * np.sin(2 * np.pi * 440 * np.arange(round(SECONDS * RATE)) / RATE)).astype(np.int16)
MP3 = encode_mp3(TONE)


def decoded(pieces: list[bytes]) -> Pcm16:
    decoder = Mp3Decoder()
    return np.concatenate([*(decoder.feed(piece) for piece in pieces), decoder.finish()])


WHOLE = decoded([MP3])


def test_a_tone_comes_back_as_the_same_tone_for_the_same_time() -> None:
    spectrum = np.abs(np.fft.rfft(WHOLE[:RATE].astype(np.float64)))

    assert int(spectrum.argmax()) == 440
    assert np.sqrt(np.mean(WHOLE[RATE // 4 : RATE // 2].astype(np.float64) ** 2)) == pytest.approx(
        12_000 / np.sqrt(2), rel=0.1
    )
    assert len(TONE) <= len(WHOLE) <= len(TONE) + 0.1 * RATE
    assert WHOLE.dtype == np.int16
    assert WHOLE.ndim == 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, len(MP3)), max_size=30).map(sorted))
def test_any_chunking_of_a_stream_gives_the_same_samples(cuts: list[int]) -> None:
    edges = [0, *cuts, len(MP3)]

    assert np.array_equal(decoded([MP3[start:end] for start, end in itertools.pairwise(edges)]), WHOLE)


def test_byte_by_byte_gives_the_same_samples() -> None:
    assert np.array_equal(decoded([MP3[index : index + 1] for index in range(len(MP3))]), WHOLE)


def test_sound_comes_out_before_the_stream_has_ended() -> None:
    decoder = Mp3Decoder()

    assert len(decoder.feed(MP3[: 3 * FRAME_BYTES])) > 0


def test_a_stream_cut_within_a_frame_gives_all_the_whole_frames() -> None:
    part = decoded([MP3[: 10 * FRAME_BYTES + 60]])

    assert np.array_equal(part[: 10 * 576], WHOLE[: 10 * 576])
    assert len(part) <= 11 * 576


def test_a_stereo_stream_of_another_rate_comes_out_as_24_khz_mono() -> None:
    time = np.arange(44_100) / 44_100
    stereo = np.repeat((9000 * np.sin(2 * np.pi * 500 * time)).astype(np.int16), 2).reshape(1, -1)
    file = io.BytesIO()
    with av.open(file, "w", format="mp3") as container:
        stream = container.add_stream("libmp3lame", rate=44_100, layout="stereo")
        frame = av.AudioFrame.from_ndarray(stereo, format="s16", layout="stereo")
        frame.sample_rate = 44_100
        frame.time_base = Fraction(1, 44_100)
        frame.pts = 0
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    pcm = decoded([file.getvalue()])

    assert pcm.ndim == 1
    frames = len(pcm) * 44_100 / RATE / 1152
    assert frames * 1152 == pytest.approx(round(frames) * 1152, abs=4)
    assert RATE <= len(pcm) < 1.1 * RATE
    spectrum = np.abs(np.fft.rfft(pcm[2400 : 2400 + RATE // 2].astype(np.float64)))
    assert int(spectrum.argmax()) * 2 == 500


def test_nothing_in_gives_nothing_out() -> None:
    assert len(decoded([])) == 0
    assert len(decoded([b"", b""])) == 0


def test_bytes_that_cannot_be_mp3_are_told_in_one_sentence() -> None:
    noise = np.random.default_rng(0).integers(0, 256, 20_000).astype(np.uint8).tobytes()

    with pytest.raises(ChatError) as fault:
        decoded([noise])
    assert fault.value.code == "bad_mp3"
