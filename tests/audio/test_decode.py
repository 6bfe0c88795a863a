from __future__ import annotations

import io
import struct
from pathlib import Path

import av
import numpy as np
import pytest

from spoken_chat.audio import FloatPcm
from spoken_chat.audio.decode import decode_audio
from spoken_chat.audio.pcm import to_pcm16, wav_bytes
from spoken_chat.errors import ChatError

SECONDS = 2.0
FREQUENCY = 500.0


def tone(rate: int, seconds: float = SECONDS) -> FloatPcm:
    return (0.4 * np.sin(2 * np.pi * FREQUENCY * np.arange(round(rate * seconds)) / rate)).astype(np.float32)


def encoded(container: str, codec: str, rate: int, layout: str = "mono", seconds: float = SECONDS) -> bytes:
    """A file with the tone in every channel, written by PyAV."""
    out = io.BytesIO()
    with av.open(out, "w", format=container) as file:
        stream = file.add_stream(codec, rate=rate, layout=layout)
        sample_format = stream.codec_context.codec.audio_formats[0].name
        to_format = av.AudioResampler(format=sample_format, layout=layout, rate=rate, frame_size=960)
        channels = np.tile(tone(rate, seconds), (stream.layout.nb_channels, 1))
        frame = av.AudioFrame.from_ndarray(channels, format="fltp", layout=layout)
        frame.sample_rate = rate
        for ready in [*to_format.resample(frame), *to_format.resample(None)]:
            file.mux(stream.encode(ready))
        file.mux(stream.encode(None))
    return out.getvalue()


def decoded(source: bytes | Path, *, max_seconds: float = 60, max_bytes: int = 10_000_000) -> FloatPcm:
    return decode_audio(source, max_seconds=max_seconds, max_bytes=max_bytes)


def refusal(source: bytes | Path, **limits: float) -> ChatError:
    with pytest.raises(ChatError) as caught:
        decoded(source, **limits)
    assert caught.value.message.endswith(".")
    return caught.value


def pitch(audio: FloatPcm) -> float:
    middle = audio[4000:20_000]
    return float(np.argmax(np.abs(np.fft.rfft(middle)))) * 16_000 / len(middle)


@pytest.mark.parametrize(
    ("container", "codec", "rate", "layout"),
    [
        ("wav", "pcm_s16le", 8_000, "mono"),
        ("wav", "pcm_s16le", 44_100, "stereo"),
        ("wav", "pcm_f32le", 48_000, "stereo"),
        ("wav", "pcm_f64le", 16_000, "mono"),
        ("wav", "pcm_s24le", 48_000, "5.1"),
        ("wav", "pcm_u8", 11_025, "mono"),
        ("wav", "pcm_mulaw", 8_000, "mono"),
        ("mp3", "libmp3lame", 44_100, "stereo"),
        ("mp3", "libmp3lame", 16_000, "mono"),
        ("flac", "flac", 22_050, "stereo"),
        ("ipod", "aac", 48_000, "stereo"),
        ("adts", "aac", 16_000, "mono"),
        ("webm", "libopus", 48_000, "mono"),
        ("ogg", "libopus", 48_000, "stereo"),
    ],
)
def test_any_usual_audio_file_is_read_as_16_khz_mono(container, codec, rate, layout):
    audio = decoded(encoded(container, codec, rate, layout))
    assert audio.dtype == np.float32
    assert audio.ndim == 1
    assert len(audio) == pytest.approx(SECONDS * 16_000, abs=2500), "codecs add up to two frames of padding"
    assert pitch(audio) == pytest.approx(FREQUENCY, abs=2)
    assert np.sqrt(np.square(audio[4000:20_000]).mean()) == pytest.approx(0.4 / np.sqrt(2), rel=0.1)


def test_a_file_on_disk_is_read_too(tmp_path):
    path = tmp_path / "tone.wav"
    path.write_bytes(wav_bytes(to_pcm16(tone(24_000)), 24_000))
    assert len(decoded(path)) == SECONDS * 16_000


def test_the_sound_of_a_video_is_read():
    out = io.BytesIO()
    with av.open(out, "w", format="matroska") as file:
        video = file.add_stream("mpeg4", rate=10)
        video.width = video.height = 32
        video.pix_fmt = "yuv420p"
        sound = file.add_stream("pcm_s16le", rate=16_000, layout="mono")
        for _ in range(5):
            file.mux(video.encode(av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")))
        frame = av.AudioFrame.from_ndarray(to_pcm16(tone(16_000))[np.newaxis], format="s16", layout="mono")
        frame.sample_rate = 16_000
        file.mux(sound.encode(frame))
        file.mux(sound.encode(None))
        file.mux(video.encode(None))
    assert len(decoded(out.getvalue())) == SECONDS * 16_000


def test_a_file_without_a_sound_track_is_refused():
    out = io.BytesIO()
    with av.open(out, "w", format="matroska") as file:
        video = file.add_stream("mpeg4", rate=10)
        video.width = video.height = 32
        video.pix_fmt = "yuv420p"
        file.mux(video.encode(av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")))
        file.mux(video.encode(None))
    assert refusal(out.getvalue()).code == "audio_no_track"


@pytest.mark.parametrize(
    "data", [b"hello, this is text. " * 50, bytes(5000), b"RIFF", b"\x89PNG\r\n\x1a\n" + bytes(99)]
)
def test_what_is_no_audio_is_refused(data):
    assert refusal(data).code == "audio_unreadable"


def test_an_empty_file_and_one_without_samples_are_refused():
    assert refusal(b"").code == "audio_empty"
    assert refusal(wav_bytes(np.zeros(0, np.int16), 16_000)).code in {"audio_empty", "audio_unreadable"}


def test_a_missing_file_is_named(tmp_path):
    error = refusal(tmp_path / "gone.wav")
    assert error.code == "audio_missing"
    assert "gone.wav" in error.message


def test_a_file_over_the_size_limit_is_refused_unread(tmp_path):
    data = wav_bytes(to_pcm16(tone(16_000)), 16_000)
    assert refusal(data, max_bytes=1000).code == "audio_too_large"
    path = tmp_path / "large.wav"
    path.write_bytes(data)
    assert refusal(path, max_bytes=1000).code == "audio_too_large"


def test_a_recording_over_the_time_limit_is_refused():
    assert refusal(encoded("flac", "flac", 16_000), max_seconds=1.5).code == "audio_too_long"


@pytest.mark.parametrize(("container", "codec"), [("wav", "pcm_s16le"), ("flac", "flac"), ("mp3", "libmp3lame")])
def test_of_a_cut_file_what_is_there_is_used_when_it_is_most(container, codec):
    data = encoded(container, codec, 16_000, seconds=10)
    audio = decoded(data[: len(data) * 3 // 4])
    assert 6.5 * 16_000 < len(audio) < 8.5 * 16_000


@pytest.mark.parametrize(("container", "codec"), [("wav", "pcm_s16le"), ("flac", "flac")])
def test_a_file_of_which_most_is_missing_is_refused(container, codec):
    data = encoded(container, codec, 16_000, seconds=10)
    assert refusal(data[: len(data) // 4]).code == "audio_damaged"


def test_a_cut_m4a_whose_index_is_missing_is_refused():
    data = encoded("ipod", "aac", 16_000, seconds=4)
    assert refusal(data[: len(data) // 2]).code in {"audio_unreadable", "audio_damaged"}


def test_a_wav_written_to_a_pipe_with_a_placeholder_length_is_read():
    data = bytearray(wav_bytes(to_pcm16(tone(16_000)), 16_000))
    for size in (0xFFFFFFFF, 0x7FFFF000):
        struct.pack_into("<I", data, 4, size)
        struct.pack_into("<I", data, 40, size)
        assert len(decoded(bytes(data))) == pytest.approx(SECONDS * 16_000, abs=64)


def test_noise_over_half_of_an_mp3_does_not_crash_the_reader():
    data = bytearray(encoded("mp3", "libmp3lame", 16_000, seconds=4))
    half = len(data) // 2
    data[half:] = np.random.default_rng(0).bytes(len(data) - half)
    try:
        assert len(decoded(bytes(data))) > 0
    except ChatError as error:
        assert error.code == "audio_damaged"


@pytest.mark.parametrize(
    "playlist",
    [
        "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\n{url}\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile '{path}'\n",
        "ffconcat version 1.0\nfile '{url}'\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 5004 RTP/AVP 0\n",
    ],
    ids=["hls", "concat path", "concat url", "sdp"],
)
def test_a_playlist_opens_no_other_file(playlist, tmp_path):
    secret = tmp_path / "secret.wav"
    secret.write_bytes(wav_bytes(to_pcm16(tone(16_000)), 16_000))
    text = playlist.format(url=secret.as_uri(), path=secret)
    assert refusal(text.encode()).code == "audio_unreadable"
    on_disk = tmp_path / "list.m3u8"
    on_disk.write_text(text)
    assert refusal(on_disk).code == "audio_unreadable"
