"""What a person hands in is read and checked against the settings before a turn begins."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spoken_chat.audio.pcm import wav_bytes
from spoken_chat.errors import ChatError
from spoken_chat.intake import check_text, read_image, read_speech
from spoken_chat.settings import Settings, load


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Two seconds of a tone, 24 kHz."""
    path = tmp_path / "speech.wav"
    path.write_bytes(wav_bytes((np.sin(np.arange(48_000) * 0.1) * 9000).astype(np.int16), 24_000))
    return path


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.png"
    Image.new("RGB", (800, 600), "teal").save(path)
    return path


def test_a_recording_becomes_16_khz_mono(recording: Path) -> None:
    speech = read_speech(recording, load())
    assert speech.dtype == np.float32
    assert len(speech) == pytest.approx(32_000, abs=200)
    assert 0.2 < np.abs(speech).max() < 0.35


def test_an_image_becomes_a_data_url_within_the_bounds_with_its_tokens(photo: Path) -> None:
    part = read_image(photo, load(image_max_pixels=100_000))
    kind, _, data = part.data_url.partition(",")
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    assert kind.startswith("data:image/")
    assert image.width * image.height <= 100_000
    assert part.tokens == image.width * image.height // 32**2


def test_an_image_can_be_given_by_its_content(photo: Path) -> None:
    assert read_image(photo.read_bytes(), load()) == read_image(photo, load())


def test_a_small_image_is_scaled_up_to_the_least_number_of_pixels(photo: Path) -> None:
    Image.new("RGB", (64, 64), "teal").save(photo)
    few = read_image(photo, load()).tokens
    assert read_image(photo, load(image_min_pixels=150_000)).tokens > few


@pytest.mark.parametrize(
    ("limit", "code"),
    [({"audio_max_seconds": 1.5}, "audio_too_long"), ({"audio_max_bytes": 1000}, "audio_too_large")],
)
def test_a_recording_beyond_a_setting_is_refused(limit: dict[str, float], code: str, recording: Path) -> None:
    with pytest.raises(ChatError) as caught:
        read_speech(recording, load(**limit))
    assert caught.value.code == code


def test_an_image_beyond_the_setting_is_refused(photo: Path) -> None:
    with pytest.raises(ChatError) as caught:
        read_image(photo, load(image_max_bytes=100))
    assert caught.value.code == "image_too_large"


@pytest.mark.parametrize("read", [read_speech, read_image])
def test_a_file_that_is_gone_or_something_else_is_a_clear_fault(
    read: Callable[[Path, Settings], object], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    with pytest.raises(ChatError, match="other"):
        read(other, load())
    other.write_bytes(b"neither sound nor picture " * 100)
    with pytest.raises(ChatError) as caught:
        read(other, load())
    assert caught.value.code in ("audio_unreadable", "image_unreadable")


@pytest.mark.parametrize(
    ("given", "taken"), [("  hello\n you \t", "hello\n you"), (" \n ", ""), ("", ""), ("　你好　", "你好")]
)
def test_text_loses_only_the_white_space_around_it(given: str, taken: str) -> None:
    assert check_text(given, load()) == taken


def test_text_is_taken_up_to_its_longest_and_refused_beyond_with_both_numbers() -> None:
    settings = load(text_max_chars=10)
    assert check_text(" " + "字" * 10 + "\n", settings) == "字" * 10
    with pytest.raises(ChatError) as caught:
        check_text("x" * 11, settings)
    assert caught.value.code == "text_too_long"
    assert caught.value.details == {"characters": 11, "most": 10}
    assert "11" in caught.value.message
    assert "10" in caught.value.message
