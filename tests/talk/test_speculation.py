"""Work begun in a pause: free when the guess was right, without a trace when it was wrong."""

import pytest

from spoken_chat.events import AudioOut, Heard
from spoken_chat.talk.events import SpeechStopped, TurnStarted
from spoken_chat.talk.options import TalkOptions
from tests.support.engines import ScriptedRecognizer
from tests.support.talking import ScriptedEars, Talking, talking


async def one_turn(one: Talking) -> None:
    await one.speak(1.0)
    await one.silence(1.6)
    await one.until_ended()


def server_part(one: Talking) -> float:
    metrics = one.session.turns[-1].metrics
    assert metrics.first_audio_ms is not None
    return metrics.first_audio_ms


def test_a_hit_hides_all_work_behind_the_silence() -> None:
    one = talking(one_turn)
    turn = one.session.turns[0]
    assert turn.circumstances.speculation == "hit"
    assert server_part(one) == 0, "all of it was over before the endpoint"


def test_without_speculation_the_work_begins_at_the_endpoint() -> None:
    one = talking(one_turn, options=TalkOptions(speculation=False))
    assert one.session.turns[0].circumstances.speculation == "off"
    assert server_part(one) == pytest.approx(190, abs=20)


def test_nothing_is_told_and_no_sound_goes_out_before_the_endpoint() -> None:
    one = talking(one_turn, ears=ScriptedEars(probability=0.0))
    endpoint = one.when(SpeechStopped)
    assert endpoint == pytest.approx(2.5, abs=0.05)
    assert one.when(Heard) >= endpoint
    assert one.when(AudioOut) >= endpoint
    assert one.session.turns[0].timeline.marks["first_audio_sent"] >= endpoint
    assert one.session.turns[0].timeline.marks["audio_done"] >= endpoint


def test_a_reply_that_was_finished_before_the_endpoint_is_in_the_history_once() -> None:
    one = talking(one_turn, ears=ScriptedEars(probability=0.0))
    assert one.history == [("what is your name", "Hi. All is well.")]
    assert one.endings == ["completed"]


async def speech_goes_on(one: Talking) -> None:
    await one.speak(1.0)
    await one.silence(0.32)
    await one.speak(0.6)
    await one.silence(0.8)
    await one.until_ended()


def test_a_miss_costs_no_heard_sound_no_history_entry_and_its_request_is_closed() -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(0.32)
        requests = len(one.model.requests)
        assert requests == 2, "the read-ahead, and the guess"
        await one.speak(0.6)
        assert one.of(TurnStarted) == [] and one.of(AudioOut) == [] and one.history == []
        assert one.synthesizer.running == 0
        await one.silence(0.8)
        await one.until_ended()

    one = talking(script, chunks=["word "] * 200)
    assert one.model.closed >= 1
    assert len(one.session.turns) == 1
    circumstances = one.session.turns[0].circumstances
    assert (circumstances.speculation, circumstances.dropped_starts) == ("hit", 1)


def test_after_a_miss_the_turn_is_as_fast_as_without_one() -> None:
    assert server_part(talking(speech_goes_on)) == 0


def test_a_recogniser_too_slow_for_the_pause_only_delays_what_is_left() -> None:
    one = talking(one_turn, recognizer=ScriptedRecognizer(delay=0.5))
    whole = 500 + 60 + 80
    assert server_part(one) == pytest.approx(whole - 200, abs=40)


def test_with_more_active_sessions_than_allowed_nothing_is_begun_in_the_pause() -> None:
    one = talking(one_turn, options=TalkOptions(speculation_most=2), sessions=3)
    assert one.session.turns[0].circumstances.speculation == "off"


def test_a_guess_that_failed_says_so_only_when_it_was_right() -> None:
    from tests.support.engines import ScriptedModel, chat_error

    class Broken(ScriptedModel):
        pass

    async def script(one: Talking) -> None:
        one.model.refusals = [chat_error("llm_busy"), chat_error("llm_busy")]
        await one.speak(1.0)
        await one.silence(0.32)
        assert one.endings == []
        await one.silence(0.5)
        await one.until_ended()

    one = talking(script)
    assert one.endings == ["failed"]
    assert one.session.turns[0].error is not None and one.session.turns[0].error.code == "llm_busy"


def test_after_a_turn_that_was_ready_before_its_endpoint_the_next_one_is_not_the_first() -> None:
    async def script(one: Talking) -> None:
        for _ in range(2):
            await one_turn(one)
            await one.silence(2.0)

    one = talking(script, ears=ScriptedEars(probability=0.0))
    assert [turn.circumstances.order for turn in one.session.turns] == ["first", "next"]
