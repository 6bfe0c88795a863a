"""A whole hands-free turn: heard, ended by silence, answered."""

import dataclasses

import pytest

from spoken_chat.events import AudioOut, Heard
from spoken_chat.talk.events import SpeechStarted, SpeechStopped, TurnStarted, UtteranceDropped
from spoken_chat.talk.options import Detection, TalkOptions
from spoken_chat.turn import Utterance
from tests.support.engines import ScriptedRecognizer
from tests.support.talking import ScriptedEars, Talking, talking


async def one_turn(one: Talking) -> None:
    await one.silence(0.5)
    await one.speak(1.0)
    await one.silence(0.8)
    await one.until_ended()


def test_speech_and_a_pause_make_a_turn_that_is_answered() -> None:
    one = talking(one_turn)
    order = [type(event) for _, event in one.told if isinstance(event, SpeechStarted | SpeechStopped | TurnStarted)]
    assert order == [SpeechStarted, SpeechStopped, TurnStarted]
    assert one.of(Heard) == [Heard("what is your name")]
    assert one.endings == ["completed"]
    assert one.history == [("what is your name", "Hi. All is well.")]
    assert one.of(TurnStarted)[0].utterance == one.of(SpeechStarted)[0].utterance


def test_the_turn_is_hands_free_and_knows_when_its_speech_began_and_ended() -> None:
    one = talking(one_turn)
    turn = one.session.turns[0]
    record = turn.record()
    marks = turn.timeline.marks
    assert record["kind"] == "hands_free"
    assert marks["speech_start"] == pytest.approx(0.5, abs=0.04)
    assert marks["speech_end"] == pytest.approx(1.5, abs=0.04)
    assert marks["endpoint"] - marks["speech_end"] == pytest.approx(0.4, abs=0.04)
    assert record["metrics"]["endpoint_delay_ms"] == pytest.approx(400, abs=40)


def test_the_recogniser_gets_the_speech_with_its_pre_roll() -> None:
    one = talking(one_turn)
    seconds = len(one.recognizer.heard[0]) / 16000
    assert 1.3 <= seconds <= 1.3 + 0.2 + 0.1, "0.3 s before the speech, and the pause that ended it"


@pytest.mark.parametrize("probability, wait", [(1.0, 0.4), (0.0, 1.5)])
def test_the_silence_that_ends_a_turn_follows_the_judgement_of_the_smart_turn_model(probability, wait) -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(2.0)

    one = talking(script, ears=ScriptedEars(probability=probability))
    assert one.when(SpeechStopped) == pytest.approx(1.0 + wait, abs=0.06)


def test_a_fixed_wait_asks_no_model() -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(1.0)

    one = talking(script, options=TalkOptions(detection="fixed", wait=0.7), ears=ScriptedEars(probability=0.0))
    assert one.when(SpeechStopped) == pytest.approx(1.7, abs=0.06)
    assert one.ears.asked == []


def test_a_pause_shorter_than_the_wait_stays_within_one_turn() -> None:
    async def script(one: Talking) -> None:
        for _ in range(3):
            await one.speak(0.6)
            await one.silence(0.32)
        await one.silence(0.5)
        await one.until_ended()

    one = talking(script)
    assert len(one.of(TurnStarted)) == 1
    assert len(one.recognizer.heard[-1]) / 16000 == pytest.approx(0.6 * 3 + 0.32 * 2 + 0.2, abs=0.1)


def test_a_click_is_no_speech() -> None:
    async def script(one: Talking) -> None:
        await one.speak(0.032)
        await one.silence(1.0)

    one = talking(script)
    assert one.told == [] and one.model.requests == []


def test_sound_without_words_is_dropped_and_leaves_no_turn() -> None:
    one = talking(one_turn, recognizer=ScriptedRecognizer(text="", delay=0.05))
    assert [event.reason for event in one.of(UtteranceDropped)] == ["nothing_heard"]
    assert one.session.turns == [] and one.history == [] and one.of(AudioOut) == []


def test_ten_minutes_without_a_pause_are_answered_at_the_longest_utterance() -> None:
    async def script(one: Talking) -> None:
        await one.speak(11.0)

    one = talking(script, options=TalkOptions(utterance_max=5.0))
    assert one.when(SpeechStopped) == pytest.approx(5.0, abs=0.1)


def test_an_hour_of_silence_keeps_no_sound() -> None:
    async def script(one: Talking) -> None:
        await one.silence(3600)
        kept = one.talk._listener.sound(0.0)
        assert len(kept) / 16000 < 2.0

    one = talking(script)
    assert one.told == []


def test_by_hand_the_detector_ends_nothing_and_a_commit_is_answered() -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(2.0)
        assert one.of(TurnStarted) == []
        await one.talk.commit()
        await one.talk.say(Utterance())
        await one.until_ended()

    one = talking(script, options=TalkOptions(detection="manual"))
    assert one.session.turns[0].kind == "push_to_talk"
    assert one.session.turns[0].metrics.endpoint_delay_ms is None
    assert len(one.recognizer.heard[0]) / 16000 == pytest.approx(3.0, abs=0.05)
    assert one.endings == ["completed"]


def test_options_can_change_while_somebody_speaks() -> None:
    async def script(one: Talking) -> None:
        await one.speak(0.5)
        await one.talk.configure(dataclasses.replace(one.talk.options, detection="manual"))
        await one.speak(0.5)
        await one.silence(2.0)
        assert one.of(TurnStarted) == []
        name = await one.talk.commit()
        assert [event.utterance for event in one.of(SpeechStarted)] == [name]
        await one.talk.say(Utterance())
        await one.until_ended()

    one = talking(script)
    assert one.of(UtteranceDropped) == []
    assert len(one.recognizer.heard[0]) / 16000 == pytest.approx(3.0, abs=0.35), "what was said before is in it"


def test_back_from_by_hand_what_was_not_handed_in_is_forgotten() -> None:
    async def script(one: Talking) -> None:
        await one.talk.configure(dataclasses.replace(one.talk.options, detection="manual"))
        await one.speak(0.5)
        await one.talk.configure(dataclasses.replace(one.talk.options, detection="adaptive"))
        await one.silence(2.0)

    one = talking(script)
    assert one.of(TurnStarted) == []
    assert one.recognizer.heard == []


@pytest.mark.parametrize("after", ["manual", "fixed", "adaptive"])
@pytest.mark.parametrize("moment", [0.1, 0.25, 0.35])
def test_a_change_of_detection_in_a_pause_never_gives_the_next_words_the_answer_to_others(
    moment: float, after: Detection
) -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(moment)  # work on a guess has begun by then, or not
        await one.talk.configure(dataclasses.replace(one.talk.options, detection=after))
        await one.silence(3.0)
        await one.talk.configure(dataclasses.replace(one.talk.options, detection="fixed"))
        await one.speak(2.0)
        await one.silence(2.0)
        await one.until_ended()

    one = talking(script, options=TalkOptions(detection="fixed", wait=0.6))
    names = {event.utterance for event in one.of(TurnStarted)}
    dropped = {event.utterance for event in one.of(UtteranceDropped)}
    assert not names & dropped
    last = one.of(TurnStarted)[-1]
    assert last.utterance == one.of(SpeechStarted)[-1].utterance
    assert len(one.recognizer.heard[-1]) / 16000 > 1.8
    assert len(one.session.turns) == (1 if after == "manual" else 2), "and nothing else was answered"
    assert one.session.turns[-1].metrics.endpoint_delay_ms < 1000


def test_without_automatic_answers_an_utterance_waits_until_it_is_asked_for() -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(1.0)
        assert one.of(SpeechStopped) and not one.of(TurnStarted)
        await one.talk.say(Utterance())
        await one.until_ended()

    one = talking(script, options=TalkOptions(answers=False))
    assert one.history == [("what is your name", "Hi. All is well.")]
    assert one.session.turns[0].kind == "hands_free"


def test_while_a_key_is_held_a_turn_ends_by_hand_and_afterwards_as_before() -> None:
    before = TalkOptions(detection="fixed", wait=0.9, barge_in=False)

    async def script(one: Talking) -> None:
        await one.talk.hold(True)
        await one.talk.hold(True)
        await one.speak(1.0)
        await one.silence(2.0)
        assert one.of(TurnStarted) == []
        await one.talk.commit()
        await one.talk.say(Utterance())
        await one.talk.hold(False)
        await one.talk.hold(False)
        assert one.talk.options == before
        await one.until_ended()

    assert [turn.kind for turn in talking(script, options=before).session.turns] == ["push_to_talk"]


@pytest.mark.parametrize("probability, wait", [(1.0, 0.4), (0.0, 1.5)])
@pytest.mark.parametrize("pause", [0.1, 0.16, 0.22, 0.3, 0.5, 0.8, 1.2, 2.0])
@pytest.mark.parametrize("speculation", [True, False])
def test_a_pause_ends_a_turn_only_when_it_outlasts_the_wait(
    pause: float, probability: float, wait: float, speculation: bool
) -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(pause)
        await one.speak(1.0)
        await one.silence(2.0)
        await one.until_ended()

    options = TalkOptions(reopen_within=0.0, barge_in=False, speculation=speculation)
    one = talking(script, options=options, ears=ScriptedEars(probability=probability), chunks=["Hm. "])
    ended_between = pause > wait
    assert (one.when(SpeechStopped) < 2.0 + pause) is ended_between
    assert all(turn.status == "completed" for turn in one.session.turns)
    assert len(one.history) == len(one.session.turns)
    heard = one.recognizer.heard[-1]
    assert len(heard) / 16000 >= (1.0 if ended_between else 2.0 + pause)
