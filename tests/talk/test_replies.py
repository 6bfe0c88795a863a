"""Typed and handed-in turns, stopping, and what the listener's side reports."""

import pytest

from spoken_chat.conversation import ImagePart
from spoken_chat.errors import ChatError
from spoken_chat.events import AudioOut
from spoken_chat.talk.events import Committed, Silenced, TurnStarted, TurnUpdated
from spoken_chat.talk.options import TalkOptions
from spoken_chat.turn import Utterance
from tests.support.engines import ScriptedSynthesizer
from tests.support.playing import SPEECH
from tests.support.talking import Talking, talking

IMAGE = ImagePart("data:image/jpeg;base64,AAAA", 192)


def test_typed_words_are_a_turn_of_the_same_conversation() -> None:
    async def script(one: Talking) -> None:
        await one.talk.say(Utterance(text="hello"))
        await one.until_ended()
        await one.speak(1.0)
        await one.silence(0.8)
        await one.until_ended()

    one = talking(script)
    assert [turn.kind for turn in one.session.turns] == ["typed", "hands_free"]
    assert [user for user, _ in one.history] == ["hello", "what is your name"]
    assert [event.utterance is None for event in one.of(TurnStarted)] == [True, False]


def test_typed_words_stop_a_reply_that_still_plays_and_keep_what_was_heard_of_it() -> None:
    async def script(one: Talking) -> None:
        await one.talk.say(Utterance(text="hello"))
        await one.silence(1.0)
        await one.talk.say(Utterance(text="and now"))
        await one.until_ended()

    one = talking(script, synthesizer=ScriptedSynthesizer(seconds=3.0), chunks=["One two three four. ", "Five six."])
    assert [event.interrupted for event in one.of(Silenced)] == [False]
    assert one.history[0][0] == "hello" and "Five" not in one.history[0][1]


def test_an_attached_image_goes_with_the_next_utterance_and_only_with_that() -> None:
    async def script(one: Talking) -> None:
        one.talk.attach_image(IMAGE)
        for _ in range(2):
            await one.speak(1.0)
            await one.silence(0.8)
            await one.until_ended()

    one = talking(script)
    assert [exchange.image for exchange in one.session.conversation.exchanges] == [IMAGE, None]


def test_an_image_attached_after_work_began_is_not_missed() -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(0.3)
        one.talk.attach_image(IMAGE)
        await one.silence(0.5)
        await one.until_ended()

    assert talking(script).session.conversation.exchanges[0].image == IMAGE


def test_several_commits_are_answered_together() -> None:
    async def script(one: Talking) -> None:
        for _ in range(2):
            await one.speak(1.0)
            await one.talk.commit()
        await one.talk.say(Utterance(text="please"))
        await one.until_ended()

    one = talking(script, options=TalkOptions(detection="manual"))
    assert len(one.recognizer.heard) == 1
    assert len(one.recognizer.heard[0]) / 16000 == pytest.approx(2.3, abs=0.1)
    assert [round(event.seconds, 1) for event in one.of(Committed)] == [1.0, 1.0]
    assert one.history[0][0] == "what is your name please"


def test_a_commit_of_hardly_any_sound_is_refused_in_one_sentence() -> None:
    async def script(one: Talking) -> None:
        await one.silence(0.05)
        with pytest.raises(ChatError) as fault:
            await one.talk.commit()
        assert fault.value.code == "nothing_heard"

    talking(script, options=TalkOptions(detection="manual"))


def test_cleared_sound_is_not_in_the_next_commit() -> None:
    async def script(one: Talking) -> None:
        await one.speak(2.0)
        await one.talk.clear()
        await one.speak(1.0)
        await one.talk.commit()
        await one.talk.say(Utterance())

    one = talking(script, options=TalkOptions(detection="manual"))
    assert len(one.recognizer.heard[0]) / 16000 == pytest.approx(1.0, abs=0.05)


def test_stopping_by_hand_is_no_interruption_and_keeps_what_was_heard() -> None:
    async def script(one: Talking) -> None:
        await one.talk.say(Utterance(text="hello"))
        await one.silence(1.0)
        await one.talk.stop(0.5)
        assert one.session.running is None and not one.talk.replying

    one = talking(script, synthesizer=ScriptedSynthesizer(seconds=3.0), chunks=["One two three four. ", "Five six."])
    assert not one.session.turns[0].circumstances.interrupted
    assert one.history == [("hello", "One")]


def test_stopping_when_nothing_plays_does_nothing() -> None:
    async def script(one: Talking) -> None:
        await one.talk.stop()

    assert talking(script).told == []


def test_what_the_listener_played_decides_what_stays_in_the_history() -> None:
    async def script(one: Talking) -> None:
        turn = await one.talk.say(Utterance(text="hello"))
        await one.silence(1.0)
        await one.talk.stop()
        one.talk.truncate(turn.id, 0.0)
        with pytest.raises(ChatError):
            one.talk.truncate("another", 1.0)

    one = talking(script, synthesizer=ScriptedSynthesizer(seconds=3.0))
    assert one.history == []
    assert len(one.of(TurnUpdated)) == 2


def test_the_listeners_word_gives_v2v_wire_and_playback() -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(0.8)
        turn = one.session.turns[0]
        one.talk.played(turn.id, 0.5, 0.03)
        metrics = turn.metrics
        assert metrics.v2v_ms == 500.0 and metrics.playback_ms == 30.0
        assert metrics.endpoint_delay_ms is not None and metrics.first_audio_ms is not None
        assert metrics.wire_ms == pytest.approx(470 - metrics.endpoint_delay_ms - metrics.first_audio_ms, abs=0.2)

    talking(script)


@pytest.mark.parametrize("waited, playback", [(-1.0, 0.0), (0.5, 0.6), (0.5, -0.1)])
def test_a_listeners_word_that_cannot_be_leaves_the_figures_blank(waited: float, playback: float) -> None:
    async def script(one: Talking) -> None:
        turn = await one.talk.say(Utterance(text="hello"))
        await one.silence(1.0)
        one.talk.played(turn.id, waited, playback)
        assert turn.metrics.v2v_ms is None and turn.metrics.playback_ms is None

    talking(script)


def test_a_whole_recording_can_be_handed_in() -> None:
    async def script(one: Talking) -> None:
        await one.talk.say(Utterance(audio=SPEECH))
        await one.until_ended()

    one = talking(script)
    assert one.session.turns[0].kind == "push_to_talk" and one.endings == ["completed"]


def test_written_replies_make_no_sound() -> None:
    async def script(one: Talking) -> None:
        await one.talk.say(Utterance(text="hello"))
        await one.until_ended()

    one = talking(script, options=TalkOptions(spoken_reply=False))
    assert one.of(AudioOut) == [] and one.history == [("hello", "Hi. All is well.")]


def test_a_new_conversation_forgets_what_was_said_and_being_said() -> None:
    async def script(one: Talking) -> None:
        await one.talk.say(Utterance(text="hello"))
        await one.until_ended()
        await one.speak(0.5)
        await one.talk.restart()
        assert one.session.turns == [] and one.history == []
        await one.silence(2.0)

    assert talking(script).session.turns == []


def test_a_turn_after_a_long_silence_is_marked_and_so_is_the_first() -> None:
    async def script(one: Talking) -> None:
        for pause in (1.0, 100.0, 0.0):
            await one.talk.say(Utterance(text="hello"))
            await one.until_ended()
            await one.silence(pause)

    orders = [turn.circumstances.order for turn in talking(script).session.turns]
    assert orders == ["first", "next", "after_idle"]


def test_a_reply_stopped_before_its_first_sound_was_not_heard_at_all() -> None:
    async def script(one: Talking) -> None:
        await one.talk.say(Utterance(text="hello"))
        await one.silence(0.13)
        assert one.session.turns[0].reply and one.of(AudioOut) == []
        await one.talk.stop()

    assert talking(script).history == []


def test_a_written_reply_that_is_stopped_stays_as_far_as_it_came() -> None:
    async def script(one: Talking) -> None:
        await one.talk.say(Utterance(text="hello"))
        await one.silence(0.1)
        await one.talk.stop()

    one = talking(script, options=TalkOptions(spoken_reply=False), chunks=["Word "] * 500)
    assert one.history[0][1].startswith("Word Word")
