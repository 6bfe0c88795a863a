"""Speech over the reply: turned down at once, stopped when it is meant, and no word of it lost."""

import pytest

from spoken_chat.events import AudioOut
from spoken_chat.talk.events import Caption, Ducked, Silenced, SpeechStarted, TurnStarted, UtteranceDropped
from spoken_chat.talk.options import TalkOptions
from spoken_chat.turn import Utterance
from tests.support.engines import ScriptedRecognizer, ScriptedSynthesizer
from tests.support.talking import Talking, talking


async def reply_plays(one: Talking, seconds: float = 1.5) -> None:
    """One turn, and `seconds` of its reply heard."""
    await one.speak(1.0)
    await one.silence(0.42)
    await one.silence(seconds)


def long_voice() -> ScriptedSynthesizer:
    return ScriptedSynthesizer(seconds=3.0)


def test_speech_over_the_reply_turns_it_down_within_three_chunks() -> None:
    async def script(one: Talking) -> None:
        await reply_plays(one)
        began = one.clock()
        await one.speak(0.16)
        assert one.when(Ducked) - began <= 0.1

    one = talking(script, synthesizer=long_voice())
    assert one.of(Ducked)[0].down


def test_speech_that_goes_on_stops_the_reply_and_makes_the_next_turn_with_every_word() -> None:
    async def script(one: Talking) -> None:
        await reply_plays(one)
        one.began = one.clock()  # type: ignore[attr-defined]
        await one.speak(1.0)
        await one.silence(0.8)
        await one.until_ended()

    one = talking(script, synthesizer=long_voice())
    silenced = one.of(Silenced)
    assert [event.interrupted for event in silenced] == [True]
    assert one.when(Silenced) - one.began == pytest.approx(0.4, abs=0.05)  # type: ignore[attr-defined]
    assert one.session.turns[0].circumstances.interrupted
    assert len(one.of(TurnStarted)) == 2
    assert len(one.recognizer.heard[-1]) / 16000 >= 1.3, "the interrupting words from their first one on"
    assert one.of(SpeechStarted)[1].position == pytest.approx(one.began, abs=0.05)  # type: ignore[attr-defined]


def test_the_history_keeps_what_was_heard_of_an_interrupted_reply() -> None:
    async def script(one: Talking) -> None:
        await reply_plays(one, 0.9)
        await one.speak(1.0)

    one = talking(script, synthesizer=long_voice(), chunks=["One two three. ", "Four five six."])
    assert one.history[0][1].startswith("One")
    assert "Four" not in one.history[0][1]


def test_the_models_stream_is_closed_when_the_interruption_is_confirmed() -> None:
    async def script(one: Talking) -> None:
        await reply_plays(one)
        assert one.session.running is not None
        await one.speak(0.5)
        assert one.session.running is None

    one = talking(script, synthesizer=long_voice(), chunks=["Word and word. "] * 2000)
    assert one.model.closed >= 1


def test_a_short_mhm_lets_the_reply_go_on_at_full_level() -> None:
    async def script(one: Talking) -> None:
        await reply_plays(one)
        one.recognizer.text = "Mhm."
        await one.speak(0.25)
        await one.silence(1.0)

    one = talking(script, synthesizer=long_voice())
    assert [event.down for event in one.of(Ducked)] == [True, False]
    assert one.of(Silenced) == [] and len(one.of(TurnStarted)) == 1


def test_a_short_word_that_asks_for_the_floor_gets_it() -> None:
    async def script(one: Talking) -> None:
        await reply_plays(one)
        one.recognizer.text = "Stop!"
        await one.speak(0.25)
        await one.silence(1.0)
        await one.until_ended()

    one = talking(script, synthesizer=long_voice())
    assert [event.interrupted for event in one.of(Silenced)] == [True]
    assert len(one.of(TurnStarted)) == 2
    assert one.session.turns[1].transcript == "Stop!"


def test_the_replys_own_words_from_the_loudspeaker_do_not_stop_it() -> None:
    async def script(one: Talking) -> None:
        await reply_plays(one)
        one.recognizer.text = "is well"
        await one.speak(0.25)
        await one.silence(1.0)

    one = talking(script, synthesizer=long_voice(), chunks=["Hi. ", "All is well."])
    assert one.of(Silenced) == []


def test_what_may_be_the_replys_echo_turns_it_down_and_never_stops_it() -> None:
    async def script(one: Talking) -> None:
        await reply_plays(one)
        await one.speak(0.8, level=0.6)
        await one.silence(0.3)

    one = talking(script, synthesizer=long_voice())
    assert [event.down for event in one.of(Ducked)] == [True, False] and one.of(Silenced) == []


def test_a_click_turns_the_reply_down_for_a_moment_only() -> None:
    async def script(one: Talking) -> None:
        await reply_plays(one)
        await one.speak(0.032)
        await one.silence(0.5)

    one = talking(script, synthesizer=long_voice())
    assert [event.down for event in one.of(Ducked)] == [True, False]
    assert one.when(Ducked, 1) - one.when(Ducked, 0) <= 0.3


def test_right_after_it_began_to_play_the_reply_is_not_turned_down() -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(0.45)
        assert one.talk.replying
        await one.speak(0.06)
        assert one.of(Ducked) == []

    talking(script, synthesizer=long_voice())


def test_with_barge_in_off_the_reply_is_said_to_its_end() -> None:
    async def script(one: Talking) -> None:
        await reply_plays(one)
        await one.speak(1.0)
        await one.silence(5.0)

    one = talking(script, synthesizer=long_voice(), options=TalkOptions(barge_in=False))
    assert one.of(Ducked) == [] and one.of(Silenced) == [] and len(one.of(TurnStarted)) == 1


def test_half_duplex_hears_nothing_while_the_reply_plays() -> None:
    async def script(one: Talking) -> None:
        await reply_plays(one)
        await one.speak(1.0)
        await one.silence(5.0)
        await one.speak(1.0)
        await one.silence(0.8)

    one = talking(script, synthesizer=long_voice(), options=TalkOptions(half_duplex=True))
    assert one.of(Silenced) == [] and len(one.of(TurnStarted)) == 2


def test_speech_that_outlasts_the_reply_is_a_turn_of_its_own() -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(0.42)
        await one.silence(1.7)
        await one.speak(1.0)
        await one.silence(0.8)
        await one.until_ended()

    one = talking(script, synthesizer=ScriptedSynthesizer(seconds=1.0), options=TalkOptions(barge_in=False))
    assert one.of(Silenced) == [] and len(one.of(TurnStarted)) == 2


def test_speech_soon_after_the_endpoint_goes_on_with_the_same_turn() -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(0.48)
        assert len(one.of(TurnStarted)) == 1
        await one.silence(0.2)
        await one.speak(1.0)
        await one.silence(0.8)
        await one.until_ended()

    one = talking(script, synthesizer=long_voice(), options=TalkOptions(reopen_within=1.5))
    assert [event.reason for event in one.of(UtteranceDropped)] == ["reopened"]
    assert len(one.session.turns) == 1 and len(one.history) == 1
    assert one.session.turns[0].circumstances.reopened == 1
    assert len(one.recognizer.heard[-1]) / 16000 >= 2.0, "both pieces of speech"


def test_the_captions_of_a_turn_that_goes_on_begin_with_what_was_said_before() -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(0.6)
        await one.speak(1.0)
        await one.silence(0.8)
        await one.until_ended()

    one = talking(script, synthesizer=long_voice())
    started = one.of(SpeechStarted)[-1]
    captions = [event.stable for event in one.of(Caption) if event.utterance == started.utterance]
    assert captions and all(stable.startswith("what is your name") for stable in captions)


def test_handed_in_by_hand_a_turn_that_went_on_holds_all_of_it() -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(0.6)
        await one.speak(1.0)
        await one.talk.commit()
        await one.talk.say(Utterance(text="in one word"))
        await one.until_ended()

    one = talking(script, synthesizer=long_voice())
    assert [event.reason for event in one.of(UtteranceDropped)] == ["reopened"]
    assert len(one.recognizer.heard[-1]) / 16000 >= 2.0, "both pieces of speech"
    assert one.history[-1][0] == "what is your name in one word"


def test_speech_while_a_reply_is_still_thought_of_goes_on_with_the_same_turn() -> None:
    async def script(one: Talking) -> None:
        one.model.first = 10.0
        await one.speak(1.0)
        await one.silence(3.0)
        assert one.of(AudioOut) == []
        one.model.first = 0.06
        await one.speak(0.5)
        await one.silence(0.8)
        await one.until_ended()

    one = talking(script)
    assert len(one.session.turns) == 1
    assert one.history == [("what is your name", "Hi. All is well.")]


def test_words_typed_and_not_answered_yet_are_kept_when_speech_follows() -> None:
    async def script(one: Talking) -> None:
        one.model.first = 10.0
        await one.talk.say(Utterance(text="look here"))
        await one.silence(1.0)
        one.model.first = 0.06
        await one.speak(1.0)
        await one.silence(0.8)
        await one.until_ended()

    one = talking(script)
    assert one.history == [("what is your name look here", "Hi. All is well.")]


@pytest.mark.parametrize("after", [0.1, 0.3, 0.6, 1.0, 2.0, 3.0])
def test_whenever_it_comes_an_interruption_leaves_two_turns_or_one_and_no_stream(after: float) -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(0.42 + after)
        await one.speak(1.0)
        await one.silence(0.8)
        await one.until_ended()

    one = talking(script, synthesizer=long_voice(), recognizer=ScriptedRecognizer(delay=0.5))
    assert 1 <= len(one.session.turns) <= 2
    assert one.session.turns[-1].status == "completed"
    assert one.synthesizer.running == 0
