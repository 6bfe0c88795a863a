"""A turn that starts as a guess: it works, but tells and leaves nothing until it is released."""

import asyncio

import pytest

from spoken_chat.conversation import Conversation
from spoken_chat.events import AudioOut, Ended, TurnEvent
from spoken_chat.turn import Turn, Utterance
from tests.support.engines import Clock, ScriptedRecognizer, scripted_persona, scripted_stages
from tests.support.playing import SPEECH
from tests.support.virtual_time import run_virtual


class Guess:
    def __init__(self, clock: Clock, **parts: object) -> None:
        self.told: list[tuple[float, TurnEvent]] = []
        self.conversation = Conversation()
        persona = scripted_persona()
        given = Utterance(audio=SPEECH, spoken_at=(0.0, 0.5))
        self.turn = Turn(
            scripted_stages(clock, **parts),
            persona,
            persona.voices[0],
            self.conversation,
            given,
            lambda event: self.told.append((clock(), event)),
            clock,
            held=True,
        )


@pytest.mark.parametrize("after", [0.0, 0.1, 0.35, 0.45, 5.0])
def test_whenever_it_is_released_the_same_is_told_and_nothing_before(after: float) -> None:
    async def main(clock: Clock) -> None:
        guess = Guess(clock)
        task = asyncio.create_task(guess.turn.run())
        await asyncio.sleep(after)
        assert guess.told == [] and guess.conversation.exchanges == [] and guess.turn.held
        assert "first_audio_sent" not in guess.turn.timeline.marks
        guess.turn.release(clock())
        await task
        assert not guess.turn.held
        assert [type(event).__name__ for _, event in guess.told[:2]] == ["Heard", "ReplyText"]
        assert isinstance(guess.told[-1][1], Ended) and guess.turn.status == "completed"
        assert len(guess.conversation.exchanges) == 1
        marks = guess.turn.timeline.marks
        first_sound = next(at for at, event in guess.told if isinstance(event, AudioOut))
        assert marks["endpoint"] == after
        assert marks["first_audio_sent"] == first_sound >= after
        assert marks["audio_done"] >= first_sound

    run_virtual(main)


def test_cancelled_before_it_is_released_it_never_was() -> None:
    async def main(clock: Clock) -> None:
        guess = Guess(clock)
        task = asyncio.create_task(guess.turn.run())
        await asyncio.sleep(0.4)
        task.cancel()
        await asyncio.wait([task])
        assert guess.told == [] and guess.conversation.exchanges == []

    run_virtual(main)


def test_a_fault_is_told_at_the_release() -> None:
    async def main(clock: Clock) -> None:
        guess = Guess(clock, recognizer=ScriptedRecognizer(text=""))
        task = asyncio.create_task(guess.turn.run())
        await task
        assert guess.told == []
        guess.turn.release(clock())
        event = guess.told[-1][1]
        assert isinstance(event, Ended) and event.error is not None and event.error.code == "nothing_heard"

    run_virtual(main)


def test_a_finished_turn_that_is_cut_after_its_release_keeps_what_was_heard() -> None:
    async def main(clock: Clock) -> None:
        guess = Guess(clock)
        await asyncio.create_task(guess.turn.run())
        guess.turn.release(clock())
        guess.turn.cut(0.5)
        assert guess.conversation.exchanges[0].reply == "Hi. All"

    run_virtual(main)
