"""What a person hands in, read and checked against the settings before a turn begins."""

from __future__ import annotations

from pathlib import Path

from spoken_chat.audio import FloatPcm
from spoken_chat.audio.decode import decode_audio
from spoken_chat.conversation import ImagePart
from spoken_chat.errors import ChatError
from spoken_chat.images import prepare_image
from spoken_chat.settings import Settings


def read_speech(path: Path, settings: Settings) -> FloatPcm:
    """The recording at `path`, 16 kHz mono. Raises ChatError."""
    return decode_audio(path, max_seconds=settings.audio_max_seconds, max_bytes=settings.audio_max_bytes)


def read_image(source: bytes | Path, settings: Settings) -> ImagePart:
    """The image `source` (a file's content, or its path), as it travels to the model. Raises ChatError."""
    prepared = prepare_image(
        source,
        min_pixels=settings.image_min_pixels,
        max_pixels=settings.image_max_pixels,
        max_bytes=settings.image_max_bytes,
    )
    return prepared.part


def check_text(text: str, settings: Settings) -> str:
    """`text` without the white space around it. Raises ChatError when it is too long."""
    text = text.strip()
    if len(text) > settings.text_max_chars:
        raise ChatError(
            "text_too_long",
            f"The message has {len(text)} characters; {settings.text_max_chars} is the most that is taken.",
            characters=len(text),
            most=settings.text_max_chars,
        )
    return text
