"""Partial transcripts while somebody speaks: when they are drafted, and what of them is told."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools

import numpy as np
import pytest

from spoken_chat.asr.whisper import WhisperRecognizer
from spoken_chat.audio import ASR_RATE
from spoken_chat.events import Heard
from spoken_chat.settings import load
from spoken_chat.talk.captions import TOO_SLOW_S, Captions
from spoken_chat.talk.events import Caption
from spoken_chat.talk.options import TalkOptions
from tests.support import speech
from tests.support.engines import ScriptedRecognizer, chat_error
from tests.support.talking import CHUNK_S, Talking, talking

LONG = "one two three four five six seven eight nine ten eleven twelve"


async def long_speech(one: Talking) -> None:
    await one.speak(2.5)
    await one.silence(0.8)
    await one.until_ended()


def recognizer(**fields: object) -> ScriptedRecognizer:
    return ScriptedRecognizer(text=LONG, delay=0.04, words_per_s=3.0, **fields)  # type: ignore[arg-type]


def test_captions_come_while_the_person_still_speaks() -> None:
    one = talking(long_speech, recognizer=recognizer())
    captions = [(at, event) for at, event in one.told if isinstance(event, Caption)]
    assert len(captions) >= 3 and captions[0][0] < 1.0
    assert all(at <= 2.6 for at, _ in captions)


def test_what_is_stable_stays_the_beginning_of_all_that_follows() -> None:
    captions = talking(long_speech, recognizer=recognizer()).of(Caption)
    for before, after in itertools.pairwise(captions):
        assert after.stable.startswith(before.stable)
    assert captions[-1].stable


def test_captions_belong_to_the_utterance_that_is_spoken() -> None:
    async def script(one: Talking) -> None:
        for _ in range(2):
            await long_speech(one)
            await one.silence(1.0)

    one = talking(script, recognizer=recognizer())
    assert len({event.utterance for event in one.of(Caption)}) == 2


def test_nothing_is_drafted_while_nobody_speaks() -> None:
    async def script(one: Talking) -> None:
        await one.silence(3.0)
        await long_speech(one)
        drafted = len(one.recognizer.drafts)
        await one.silence(3.0)
        assert len(one.recognizer.drafts) == drafted > 0

    talking(script, recognizer=recognizer())


def test_at_most_a_third_of_the_time_is_spent_on_drafts() -> None:
    async def script(one: Talking) -> None:
        await one.speak(9.0)

    one = talking(script, recognizer=recognizer(draft_delay=0.2))
    assert 3 <= len(one.recognizer.drafts) <= 9.0 / (3 * 0.2) + 1


def test_a_long_utterance_is_drafted_in_short_pieces() -> None:
    async def script(one: Talking) -> None:
        await one.speak(12.0)

    one = talking(script, recognizer=recognizer())
    assert max(len(sound) for sound in one.recognizer.drafts) <= 3.1 * ASR_RATE


def test_where_drafts_are_too_slow_they_pause_and_are_tried_again() -> None:
    async def script(one: Talking) -> None:
        await one.speak(14.0)

    one = talking(script, recognizer=recognizer(draft_delay=2 * TOO_SLOW_S))
    assert 2 <= len(one.recognizer.drafts) <= 4


def test_the_whole_pass_does_not_wait_for_a_draft() -> None:
    one = talking(long_speech, recognizer=recognizer(draft_delay=0.15))
    turn = one.session.turns[0]
    assert turn.metrics.asr_ms == pytest.approx(40, abs=1)
    assert one.of(Heard) == [Heard(LONG)]


def test_a_fault_ends_the_captions_of_one_utterance_only() -> None:
    async def script(one: Talking) -> None:
        one.recognizer.fault = chat_error("asr_failed")
        await one.speak(2.0)
        one.recognizer.fault = None
        drafted = len(one.recognizer.drafts)
        assert drafted == 1
        await one.silence(0.8)
        await one.until_ended()
        await long_speech(one)

    one = talking(script, recognizer=recognizer())
    assert one.of(Caption)


def test_captions_can_be_switched_off() -> None:
    one = talking(long_speech, recognizer=recognizer(), options=TalkOptions(partial_transcripts=False))
    assert one.of(Caption) == [] and one.recognizer.drafts == []


def test_while_a_key_is_held_there_are_captions_too() -> None:
    async def script(one: Talking) -> None:
        await one.talk.configure(dataclasses.replace(one.talk.options, detection="manual"))
        await one.speak(2.0)
        name = await one.talk.commit()
        assert {event.utterance for event in one.of(Caption)} == {name}

    talking(script, recognizer=recognizer())


@pytest.mark.engines
@pytest.mark.parametrize("language", ["en", "zh"])
def test_of_real_speech_the_captions_hold_most_words_before_it_ends(language: str) -> None:
    sample = speech.spoken(language)
    engine = WhisperRecognizer(load())
    engine.load()
    told: list[str] = []

    async def listen() -> None:
        # A clock on which drafts take no time: how fast this machine is must not decide.
        position = 0.0
        captions = Captions(engine, lambda: [language], lambda *text: told.append("".join(text)), lambda: position)

        def cut(start: float, end: float) -> np.ndarray:
            return sample.audio[round(start * ASR_RATE) : round(end * ASR_RATE)]

        while position < sample.seconds - CHUNK_S:
            position += CHUNK_S
            captions.feed(position, True, cut, 0.0)
            if captions._draft is not None:
                await asyncio.wait([captions._draft])
        await captions.stop()

    try:
        asyncio.run(listen())
    finally:
        engine.close()
    wanted = [char for char in sample.words.lower() if char.isalnum()]
    heard = told[-1].lower()
    assert sum(char in heard for char in wanted) >= 0.8 * len(wanted)
    assert len(told) >= 3
