"""The model reads the history while the person speaks."""

from spoken_chat.persona import load_personas
from spoken_chat.settings import ROOT
from spoken_chat.turn import Utterance
from tests.support.engines import ScriptedModel, chat_error
from tests.support.talking import Talking, talking


def test_when_speech_begins_the_model_gets_the_history_so_far() -> None:
    async def script(one: Talking) -> None:
        await one.talk.say(Utterance(text="my name is Ann"))
        await one.until_ended()
        await one.speak(0.5)
        assert len(one.model.requests) == 2

    one = talking(script)
    ahead = one.model.requests[1]
    assert [message["role"] for message in ahead] == ["system", "user", "assistant", "user"]
    assert ahead[1]["content"] == "my name is Ann" and ahead[-1]["content"] == ""


def test_the_real_request_begins_with_what_was_read_ahead() -> None:
    async def script(one: Talking) -> None:
        await one.talk.say(Utterance(text="my name is Ann"))
        await one.until_ended()
        await one.speak(1.0)
        await one.silence(0.8)
        await one.until_ended()

    one = talking(script)
    ahead, real = one.model.requests[1], one.model.requests[2]
    assert list(real[:-1]) == list(ahead[:-1])


def test_one_that_still_runs_is_closed_before_the_turns_own_request() -> None:
    async def script(one: Talking) -> None:
        one.model.first = 30.0
        await one.speak(1.0)
        await one.silence(0.3)
        assert one.model.closed == 1 and len(one.model.requests) == 2

    talking(script)


def test_a_server_that_refuses_it_does_not_stop_the_turn() -> None:
    async def script(one: Talking) -> None:
        one.model.refusals = [chat_error("llm_busy")]
        await one.speak(1.0)
        await one.silence(0.8)
        await one.until_ended()

    assert talking(script).endings == ["completed"]


def test_its_answer_is_neither_told_nor_spoken_nor_kept() -> None:
    async def script(one: Talking) -> None:
        await one.speak(1.0)

    one = talking(script, model=None)
    assert isinstance(one.model, ScriptedModel)
    assert one.endings == [] and one.synthesizer.requests == [] and one.history == []


def test_another_personas_prefix_is_read_as_soon_as_it_is_chosen() -> None:
    other = next(persona for persona in load_personas(ROOT / "persona").values() if persona.language == "zh")

    async def script(one: Talking) -> None:
        await one.talk.choose(one.session.persona, one.session.voice)
        await one.silence(0.5)
        assert one.model.requests == [], "the same persona's prefix is there already"
        await one.talk.choose(other, other.voices[0])
        await one.silence(0.5)

    (ahead,) = talking(script).model.requests
    assert ahead[0]["content"] == other.prefix


def test_a_guess_for_the_persona_of_before_is_dropped() -> None:
    other = next(persona for persona in load_personas(ROOT / "persona").values() if persona.language == "zh")

    async def script(one: Talking) -> None:
        await one.speak(1.0)
        await one.silence(0.3)
        await one.talk.choose(other, other.voices[0])
        await one.silence(0.8)
        await one.until_ended()

    one = talking(script)
    assert one.model.requests[-1][0]["content"] == other.prefix
    assert one.session.turns[0].circumstances.speculation != "hit"


def test_a_server_that_only_reads_gets_the_history_as_soon_as_a_reply_is_over() -> None:
    async def script(one: Talking) -> None:
        one.model.reads_alone = True
        await one.talk.say(Utterance(text="my name is Ann"))
        await one.until_ended()
        await one.silence(0.2)
        assert len(one.model.requests) == 2

    ahead = talking(script).model.requests[1]
    assert [message["role"] for message in ahead] == ["system", "user", "assistant", "user"]
    assert ahead[2]["content"] and ahead[-1]["content"] == ""


def test_a_message_that_comes_while_it_still_reads_does_not_wait_for_that() -> None:
    async def script(one: Talking) -> None:
        one.model.reads_alone, one.model.reading = True, 1e6
        await one.talk.say(Utterance(text="my name is Ann"))
        await one.until_ended()
        assert one.model.closed == 0
        await one.talk.say(Utterance(text="and yours?"))
        assert one.model.closed == 1
        await one.until_ended()
        await one.talk.close()

    assert talking(script).endings == ["completed", "completed"]
