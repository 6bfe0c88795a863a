"""What a client puts into the conversation: the parts of a message, read and checked."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from spoken_chat.audio import ASR_RATE, TTS_RATE, FloatPcm, Pcm16
from spoken_chat.audio.pcm import to_mono
from spoken_chat.conversation import ImagePart
from spoken_chat.errors import ChatError
from spoken_chat.intake import check_text, read_image
from spoken_chat.realtime.faults import BadEvent
from spoken_chat.realtime.incoming import NewItem, Part
from spoken_chat.settings import Settings
from spoken_chat.talk.talk import LEAST_COMMIT_S
from spoken_chat.turn import Utterance

CONTENT: Final = "item.content"

SAMPLE_BYTES: Final = 2


@dataclass(frozen=True)
class Given:
    """The content of one message: text, sound (16 kHz mono), an image; at least one of them."""

    text: str = ""
    sound: FloatPcm | None = None
    image: ImagePart | None = None

    @property
    def seconds(self) -> float:
        """How long its sound is."""
        return 0.0 if self.sound is None else len(self.sound) / ASR_RATE


def pcm16(encoded: str, param: str, most_seconds: float) -> Pcm16:
    """Base64 of little-endian 16-bit samples, 24 kHz mono, shape (n,). Raises BadEvent."""
    if len(encoded) > (most_seconds * TTS_RATE * SAMPLE_BYTES + 2) * 4 / 3:
        raise BadEvent(
            "audio_too_long",
            f"At most {most_seconds:g} s of sound are taken in one event; send it in smaller pieces.",
            param,
            seconds=most_seconds,
        )
    try:
        data = binascii.a2b_base64(encoded, strict_mode=True)
    except ValueError:
        raise BadEvent("invalid_base64", f"The parameter {param} is not base64.", param) from None
    if len(data) % SAMPLE_BYTES:
        raise BadEvent(
            "invalid_audio", "The sound has an odd number of bytes; samples have 16 bits, so send whole ones.", param
        )
    return np.frombuffer(data, "<i2").astype(np.int16)


async def read_item(item: NewItem, settings: Settings) -> Given:
    """What a user's message holds. Raises ChatError that says what cannot be used."""
    texts: list[str] = []
    sounds: list[FloatPcm] = []
    image: ImagePart | None = None
    for index, part in enumerate(item.content):
        where = f"{CONTENT}.{index}"
        match part.type:
            case "input_text" | "text":
                texts.append(_required(part.text, f"{where}.text"))
            case "input_audio":
                sounds.append(await _sound(_required(part.audio, f"{where}.audio"), f"{where}.audio", settings))
            case "input_image":
                url = _required(part.image_url, f"{where}.image_url")
                image = await _image(url, f"{where}.image_url", settings)
            case _:
                raise BadEvent(
                    "content_unsupported",
                    "A user's message holds input_text, input_audio and input_image.",
                    f"{where}.type",
                )
    given = Given(check_text("\n".join(texts), settings), np.concatenate(sounds) if sounds else None, image)
    if not given.text and given.sound is None and image is None:
        raise BadEvent("nothing_said", "There is nothing in this message; give it text, sound or an image.", CONTENT)
    if given.sound is not None and given.seconds < LEAST_COMMIT_S:
        raise BadEvent("nothing_heard", "There is hardly any sound in this message; give it more.", CONTENT)
    return given


def shown(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The parts of a user's message as events show them: without the bulk of sound and image."""
    content: list[dict[str, Any]] = []
    for part in parts:
        match part.type:
            case "input_audio":
                content.append({"type": "input_audio", "transcript": None})
            case "input_image":
                content.append({"type": "input_image"})
            case _:
                content.append({"type": "input_text", "text": part.text})
    return content


def read_reply(item: NewItem, settings: Settings) -> str:
    """The text of an assistant's message. Raises ChatError."""
    texts: list[str] = []
    for index, part in enumerate(item.content):
        if part.type not in ("output_text", "text", "output_audio"):
            raise BadEvent(
                "content_unsupported",
                "An assistant's message holds output_text, or output_audio with its transcript.",
                f"{CONTENT}.{index}.type",
            )
        words = part.text if part.text is not None else part.transcript
        texts.append(_required(words, f"{CONTENT}.{index}.text"))
    text = check_text("\n".join(texts), settings)
    if not text:
        raise BadEvent("nothing_said", "There is nothing in this message; give it text.", CONTENT)
    return text


def joined(pieces: Sequence[Given], settings: Settings) -> Utterance:
    """Several messages as one utterance. Its image is attached to the talk already. Raises ChatError."""
    sounds = [piece.sound for piece in pieces if piece.sound is not None]
    seconds = sum(piece.seconds for piece in pieces)
    if seconds > settings.audio_max_seconds:
        raise ChatError(
            "audio_too_long",
            f"There are {seconds:.0f} s of sound; {settings.audio_max_seconds:g} s is the most that is taken.",
            seconds=seconds,
            most=settings.audio_max_seconds,
        )
    text = check_text("\n".join(piece.text for piece in pieces if piece.text), settings)
    return Utterance(audio=np.concatenate(sounds) if sounds else None, text=text)


def _required(value: str | None, param: str) -> str:
    if value is None:
        raise BadEvent("missing_required_parameter", f"The parameter {param} is missing.", param)
    return value


async def _sound(encoded: str, param: str, settings: Settings) -> FloatPcm:
    samples = pcm16(encoded, param, settings.audio_max_seconds)
    return await asyncio.to_thread(to_mono, samples, TTS_RATE, ASR_RATE)


async def _image(url: str, param: str, settings: Settings) -> ImagePart:
    head, comma, body = url.partition(",")
    if not head.lower().startswith("data:") or not comma or not head.lower().endswith(";base64"):
        raise BadEvent(
            "image_url_unsupported",
            "An image is sent as a data: URL in base64; nothing is fetched from elsewhere.",
            param,
        )
    return await asyncio.to_thread(_read_image, body, param, settings)


def _read_image(body: str, param: str, settings: Settings) -> ImagePart:
    try:
        data = base64.b64decode(body, validate=True)
    except ValueError:
        raise BadEvent("invalid_base64", f"The image in {param} is not base64.", param) from None
    return read_image(data, settings)
