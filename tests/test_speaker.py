"""The speaker makes clauses side by side within the limit and delivers them in order, on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from spoken_chat.errors import ChatError
from spoken_chat.speaker import Speaker
from spoken_chat.tts import SpeechChunk, SpeechEvent, SpeechNotice, SpeechRequest
from tests.support.engines import Clock, ScriptedSynthesizer, chat_error
from tests.support.fake_synthesizer import FakeSynthesizer, Script
from tests.support.virtual_time import run_virtual

Delivered = list[tuple[float, int, SpeechEvent | ChatError]]


def speak(
    synthesizer: ScriptedSynthesizer | FakeSynthesizer, during: Callable[[Speaker, Delivered], Awaitable[None]]
) -> Delivered:
    """Let `during` use a speaker, close it, and return (time, clause, event) of everything delivered."""

    async def main(clock: Clock) -> Delivered:
        delivered: Delivered = []
        speaker = Speaker(synthesizer, lambda index, event: delivered.append((clock(), index, event)))
        try:
            await during(speaker, delivered)
        finally:
            await speaker.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}, "no task is left behind"
        return delivered

    return run_virtual(main)


async def say_all(speaker: Speaker, *texts: str) -> None:
    for text in texts:
        speaker.say(SpeechRequest(text, "en", {}))
    await speaker.finish()


def sound_ends(delivered: Delivered) -> dict[int, float]:
    """When each clause's last piece was delivered."""
    return {index: round(at, 6) for at, index, event in delivered if isinstance(event, SpeechChunk)}


def test_clauses_are_delivered_in_order_although_later_ones_are_ready_sooner() -> None:
    voice = FakeSynthesizer("fake", Script((0.9, 0.1)), Script((0.1, 0.1)), Script((0.2, 0.1)), parallel=3)
    delivered = speak(voice, lambda speaker, _: say_all(speaker, "one", "two", "three"))
    assert [index for _, index, _ in delivered] == [0, 0, 1, 1, 2, 2]
    assert sound_ends(delivered) == {0: 1.0, 1: 1.0, 2: 1.0}, "what was ready goes out with what it waited for"


def test_the_clause_whose_turn_it_is_is_delivered_as_it_is_made() -> None:
    voice = FakeSynthesizer("fake", Script((0.1, 0.5, 0.5)))
    delivered = speak(voice, lambda speaker, _: say_all(speaker, "one"))
    assert [round(at, 6) for at, _, _ in delivered] == [0.1, 0.6, 1.1]


@pytest.mark.parametrize(("parallel", "ends"), [(1, [0.5, 1.0, 1.5, 2.0]), (2, [0.5, 0.5, 1.0, 1.0]), (9, [0.5] * 4)])
def test_no_more_clauses_are_made_at_once_than_the_voice_allows(parallel: int, ends: list[float]) -> None:
    voice = ScriptedSynthesizer(delay=0.5, parallel=parallel)
    delivered = speak(voice, lambda speaker, _: say_all(speaker, "one", "two", "three", "four"))
    assert voice.most_running == min(parallel, 4)
    assert list(sound_ends(delivered).values()) == ends
    assert [request.text for request in voice.requests] == ["one", "two", "three", "four"]


def test_a_voice_that_changes_its_limit_is_given_as_many_as_it_now_takes() -> None:
    voice = ScriptedSynthesizer(delay=0.5, parallel=3)

    async def during(speaker: Speaker, _: Delivered) -> None:
        for text in ("one", "two", "three"):
            speaker.say(SpeechRequest(text, "en", {}))
        await asyncio.sleep(0.1)
        assert voice.running == 3
        voice.parallel = 1
        speaker.say(SpeechRequest("four", "en", {}))
        speaker.say(SpeechRequest("five", "en", {}))
        await asyncio.sleep(0.5)
        assert voice.running == 1
        await speaker.finish()

    assert list(sound_ends(speak(voice, during))) == [0, 1, 2, 3, 4]


def test_a_clause_that_is_queued_later_starts_at_once_where_there_is_room() -> None:
    voice = ScriptedSynthesizer(delay=0.2, parallel=1)

    async def during(speaker: Speaker, _: Delivered) -> None:
        speaker.say(SpeechRequest("one", "en", {}))
        await asyncio.sleep(1.0)
        await say_all(speaker, "two")

    assert sound_ends(speak(voice, during)) == {0: 0.2, 1: 1.2}


def test_a_fault_is_delivered_in_its_place_and_the_next_clause_goes_on() -> None:
    fault = chat_error("tts_failed")
    voice = ScriptedSynthesizer(delay=0.1, seconds=0.1, parallel=3, faults={"two": fault})
    delivered = speak(voice, lambda speaker, _: say_all(speaker, "one", "two", "three"))
    assert [(index, type(event)) for _, index, event in delivered] == [
        (0, SpeechChunk), (1, ChatError), (2, SpeechChunk)
    ]  # fmt: skip
    assert delivered[1][2] is fault


def test_sound_that_came_before_a_fault_is_delivered_before_it() -> None:
    voice = FakeSynthesizer("fake", Script((0.1, 0.1), fails_after=0.3))
    delivered = speak(voice, lambda speaker, _: say_all(speaker, "one"))
    assert [type(event) for _, _, event in delivered] == [SpeechChunk, SpeechChunk, ChatError]
    assert round(delivered[-1][0], 6) == 0.5


def test_a_notice_is_delivered_with_its_clause() -> None:
    notice = SpeechNotice("tts_fallback", "The local voice speaks.")
    voice = ScriptedSynthesizer(seconds=0.1, notices={"two": notice})
    delivered = speak(voice, lambda speaker, _: say_all(speaker, "one", "two"))
    assert (1, notice) in [(index, event) for _, index, event in delivered]


def test_a_clause_without_sound_takes_its_place_and_holds_up_nothing() -> None:
    voice = FakeSynthesizer("fake", Script(()), Script((0.1,)))
    delivered = speak(voice, lambda speaker, _: say_all(speaker, "one", "two"))
    assert [index for _, index, _ in delivered] == [1]


def test_finishing_without_a_clause_ends_at_once() -> None:
    assert speak(ScriptedSynthesizer(), lambda speaker, _: say_all(speaker)) == []


def test_a_bug_of_the_voice_is_raised_where_the_reply_is_awaited() -> None:
    voice = FakeSynthesizer("fake", Script((0.1,), fails_after=0.1, bug=ZeroDivisionError("a bug")), parallel=2)
    with pytest.raises(ZeroDivisionError):
        speak(voice, lambda speaker, _: say_all(speaker, "one", "two"))


def test_closing_stops_all_work_at_once_and_delivers_nothing_more() -> None:
    voice = FakeSynthesizer("fake", default=Script((0.3, 10.0)), parallel=2)

    async def during(speaker: Speaker, delivered: Delivered) -> None:
        for text in ("one", "two", "three", "four"):
            speaker.say(SpeechRequest(text, "en", {}))
        await asyncio.sleep(0.5)
        so_far = list(delivered)
        await speaker.close()
        await speaker.close()
        assert [clause.outcome for clause in voice.spoken] == ["closed", "closed"], "what waited was never begun"
        await asyncio.sleep(60)
        assert delivered == so_far

    assert [index for _, index, _ in speak(voice, during)] == [0]


def test_closing_before_anything_was_begun_leaves_nothing() -> None:
    voice = ScriptedSynthesizer()

    async def during(speaker: Speaker, _: Delivered) -> None:
        speaker.say(SpeechRequest("one", "en", {}))
        await speaker.close()

    assert speak(voice, during) == []
    assert voice.requests == []


def test_closing_after_the_end_is_harmless() -> None:
    async def during(speaker: Speaker, _: Delivered) -> None:
        await say_all(speaker, "one")
        await speaker.close()

    assert speak(ScriptedSynthesizer(seconds=0.1), during)
