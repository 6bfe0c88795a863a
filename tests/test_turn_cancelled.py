"""A turn that is stopped closes everything at once and keeps only what was heard."""

from __future__ import annotations

import asyncio

import pytest

from spoken_chat.conversation import Exchange
from spoken_chat.events import Ended
from spoken_chat.stages import Stages
from spoken_chat.turn import Utterance
from tests.support.engines import Clock, ScriptedModel, ScriptedSynthesizer
from tests.support.playing import Run, play, spoken_turn, typed_turn


@pytest.mark.parametrize("after", [0.1, 0.31, 0.33, 0.4, 0.5])
def test_cancelling_at_any_moment_closes_everything_at_once(after: float) -> None:
    model: list[ScriptedModel] = []
    voice = ScriptedSynthesizer(delay=0.05, seconds=3)
    started: list[float] = []

    def make(clock: Clock) -> tuple[Stages, Utterance]:
        model.append(ScriptedModel(clock, ["This is one sentence. "] * 1000))
        return spoken_turn(clock, model=model[0], synthesizer=voice)

    async def cancel(run: Run, task: asyncio.Task[None]) -> None:
        await asyncio.sleep(after)
        task.cancel()
        started.append(run.clock())
        await asyncio.wait([task])
        assert run.clock() == started[0], "stopping takes no time"

    run = play(make, cancel)
    assert run.turn.status == "cancelled"
    assert run.of(Ended) == [Ended("cancelled", None)]
    assert model[0].closed == len(model[0].requests)
    assert voice.running == 0


def test_history_keeps_only_what_was_heard_of_a_cancelled_reply() -> None:
    async def cancel(run: Run, task: asyncio.Task[None]) -> None:
        await asyncio.sleep(1.0)
        run.turn.heard_seconds = 1.5
        task.cancel()

    chunks = ["[calm] One sentence here. ", "Two little words there. ", *["Never heard at all. "] * 500]
    run = play(
        lambda clock: typed_turn(
            clock, model=ScriptedModel(clock, chunks), synthesizer=ScriptedSynthesizer(delay=0.01)
        ),
        cancel,
    )
    assert run.conversation.exchanges[0].reply.startswith("[calm] One sentence here. Two")
    assert "Never" not in run.conversation.exchanges[0].reply


def test_a_reply_of_which_nothing_was_heard_leaves_no_trace_in_the_history() -> None:
    async def cancel(run: Run, task: asyncio.Task[None]) -> None:
        await asyncio.sleep(0.2)
        run.turn.heard_seconds = 0.0
        task.cancel()

    run = play(lambda clock: typed_turn(clock, model=ScriptedModel(clock, ["One sentence here. "] * 500)), cancel)
    assert run.conversation.exchanges == []


def test_a_finished_turn_whose_sound_is_stopped_is_cut_to_what_was_heard() -> None:
    chunks = ["One sentence here. ", "Another sentence there. "]
    run = play(lambda clock: typed_turn(clock, model=ScriptedModel(clock, chunks)))
    run.turn.cut(1.0)
    assert run.conversation.exchanges == [Exchange("hi", "One sentence here.")]
    run.turn.cut(0.0)
    assert run.conversation.exchanges == []
