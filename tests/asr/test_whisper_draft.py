"""Drafts: a quick look at what was said so far, which makes way for whole utterances."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from spoken_chat.asr import whisper
from spoken_chat.asr.whisper import NOTHING, WhisperRecognizer
from spoken_chat.audio import ASR_RATE
from spoken_chat.errors import ChatError
from spoken_chat.settings import load
from tests.support import sounds, speech

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def recognizer() -> Iterator[WhisperRecognizer]:
    recognizer = WhisperRecognizer(load(asr_device="cpu"))
    recognizer.load()
    yield recognizer
    recognizer.close()


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_draft_of_the_first_seconds_is_the_beginning_of_what_is_said(
    recognizer: WhisperRecognizer, language: str
) -> None:
    sample = speech.spoken(language)
    heard = await recognizer.draft(sample.audio[: 3 * ASR_RATE], [language])
    assert heard.language == language
    letters = {char for char in heard.text.lower() if char.isalnum()}
    said = {char for char in sample.words.lower() if char.isalnum()}
    assert letters and len(letters & said) >= 0.5 * len(letters)


async def test_silence_and_noise_give_nothing(recognizer: WhisperRecognizer) -> None:
    for sound in (np.zeros(2 * ASR_RATE, np.float32), sounds.named("white noise")):
        assert await recognizer.draft(sound, ["en"]) == NOTHING


async def test_a_language_nobody_knows_is_refused(recognizer: WhisperRecognizer) -> None:
    with pytest.raises(ChatError):
        await recognizer.draft(speech.spoken("en").audio[:ASR_RATE], ["xx"])


async def test_an_utterance_goes_before_a_draft_that_waits(
    recognizer: WhisperRecognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[float] = []
    encode = WhisperRecognizer._encode

    def noted(self: WhisperRecognizer, model: Any, sound: Any, window_s: float) -> Any:
        order.append(window_s)
        return encode(self, model, sound, window_s)

    monkeypatch.setattr(WhisperRecognizer, "_encode", noted)
    audio = speech.spoken("en").audio
    work = [
        asyncio.create_task(recognizer.transcribe(audio[: 2 * ASR_RATE], ["en"])),
        asyncio.create_task(recognizer.draft(audio[:ASR_RATE], ["en"])),
        asyncio.create_task(recognizer.transcribe(audio[: 2 * ASR_RATE], ["en"])),
    ]
    first, _, second = await asyncio.gather(*work)
    assert first == second and first.text
    drafts = [index for index, window_s in enumerate(order) if window_s < whisper._LEAST_WINDOW_S]
    assert drafts and drafts[-1] == len(order) - 1, "the draft came last, though it was asked second"


async def test_a_cancelled_draft_lets_the_next_utterance_be_heard(recognizer: WhisperRecognizer) -> None:
    audio = speech.spoken("en").audio[: 3 * ASR_RATE]
    draft = asyncio.create_task(recognizer.draft(audio, ["en"]))
    await asyncio.sleep(0.02)
    draft.cancel()
    with pytest.raises(asyncio.CancelledError):
        await draft
    assert (await recognizer.transcribe(audio, ["en"])).text
