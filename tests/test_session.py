"""A session runs one turn at a time, stops it when asked, and keeps what was said."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from spoken_chat.events import Ended
from spoken_chat.session import ChatSession, moods_kept
from spoken_chat.stages import Stages
from spoken_chat.turn import Utterance
from tests.support.engines import (
    Clock,
    ScriptedModel,
    ScriptedSynthesizer,
    chat_error,
    scripted_persona,
    scripted_stages,
)
from tests.support.virtual_time import run_virtual


def new_session() -> ChatSession:
    persona = scripted_persona()
    return ChatSession(persona, persona.voices[0], 4000)


def slow(clock: Clock) -> tuple[Stages, ScriptedModel]:
    model = ScriptedModel(clock, ["One more sentence here. "] * 1000)
    return scripted_stages(clock, model=model, synthesizer=ScriptedSynthesizer(delay=0.01)), model


def test_events_end_with_the_turn_and_the_turn_is_kept() -> None:
    async def main(clock: Clock) -> None:
        session = new_session()
        turn, events = await session.take(scripted_stages(clock), Utterance(text="hi"))
        seen = [event async for event in events]
        assert isinstance(seen[-1], Ended)
        assert session.turns == [turn]
        assert turn.status == "completed"

    run_virtual(main)


def test_a_new_turn_stops_the_one_that_runs() -> None:
    async def main(clock: Clock) -> None:
        session = new_session()
        stages, model = slow(clock)
        first, first_events = await session.take(stages, Utterance(text="one"))
        await asyncio.sleep(0.5)
        second, events = await session.take(scripted_stages(clock), Utterance(text="two"))
        assert first.status == "cancelled"
        assert model.closed == 1
        assert [event async for event in first_events][-1] == Ended("cancelled", None)
        async for _ in events:
            pass
        assert second.status == "completed"

    run_virtual(main)


def test_turns_started_at_the_same_moment_do_not_run_side_by_side() -> None:
    async def main(clock: Clock) -> None:
        session = new_session()
        stages, _ = slow(clock)
        await asyncio.gather(*(session.take(stages, Utterance(text=str(n))) for n in range(5)))
        assert sum(turn.status == "running" for turn in session.turns) <= 1
        await session.stop()

    run_virtual(main)


def test_stop_keeps_in_the_history_what_was_heard_also_when_only_the_sound_still_plays() -> None:
    async def main(clock: Clock) -> None:
        session = new_session()
        model = ScriptedModel(clock, ["One sentence here. ", "Another sentence there. "])
        _, events = await session.take(scripted_stages(clock, model=model), Utterance(text="hi"))
        async for _ in events:
            pass
        await session.stop(1.0)
        assert session.conversation.exchanges[0].reply == "One sentence here."

    run_virtual(main)


def test_another_persona_starts_with_an_empty_history_and_another_voice_does_not() -> None:
    async def main(clock: Clock) -> None:
        session = new_session()
        _, events = await session.take(scripted_stages(clock), Utterance(text="hi"))
        async for _ in events:
            pass
        session.choose(session.persona, session.persona.voices[1])
        assert len(session.conversation.exchanges) == 1
        other = replace(scripted_persona(), id="other")
        session.choose(other, other.voices[0])
        assert session.conversation.exchanges == []

    run_virtual(main)


def test_what_the_persona_before_still_says_stays_out_of_the_new_ones_history() -> None:
    async def main(clock: Clock) -> None:
        session = new_session()
        turn, events = await session.take(scripted_stages(clock), Utterance(text="hi"))
        other = replace(scripted_persona(), id="other")
        session.choose(other, other.voices[0])
        async for _ in events:
            pass
        assert turn.status == "completed"
        assert session.conversation.exchanges == []

    run_virtual(main)


def test_after_a_restart_there_is_no_turn_left_to_cut() -> None:
    async def main(clock: Clock) -> None:
        session = new_session()
        _, events = await session.take(scripted_stages(clock), Utterance(text="hi"))
        async for _ in events:
            pass
        await session.restart()
        await session.stop(1.0)
        assert (session.turns, session.conversation.exchanges) == ([], [])

    run_virtual(main)


def test_replies_that_kept_the_mood_tag_are_counted_among_those_where_it_is_known() -> None:
    async def main(clock: Clock) -> None:
        session = new_session()
        for chunks in (["[happy] Hello there."], ["Hello there."], ["[calm] Good night."]):
            stages = scripted_stages(clock, model=ScriptedModel(clock, chunks))
            _, events = await session.take(stages, Utterance(text="hi"))
            async for _ in events:
                pass
        stages = scripted_stages(clock, model=ScriptedModel(clock, refusals=[chat_error("llm_timeout")]))
        _, events = await session.take(stages, Utterance(text="hi"))
        async for _ in events:
            pass
        assert moods_kept(session.turns) == (2, 3)

    run_virtual(main)
