"""One turn through scripted stages on a virtual clock: order, marks, faults, cancellation, history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spoken_chat.conversation import Conversation, Exchange
from spoken_chat.events import AudioOut, Ended, Heard, Mood, Notice, ReplyText
from spoken_chat.llm import StreamEnd, Usage
from spoken_chat.stages import Stages
from spoken_chat.tts import SpeechNotice
from spoken_chat.turn import Utterance
from tests.support.engines import (
    Clock,
    ScriptedModel,
    ScriptedRecognizer,
    ScriptedSynthesizer,
    chat_error,
    scripted_stages,
)
from tests.support.playing import IMAGE, Run, play, spoken_turn, typed_turn
from tests.support.virtual_time import run_virtual


def test_a_spoken_turn_is_heard_answered_and_spoken_in_order() -> None:
    run = play(spoken_turn)
    kinds = [type(event).__name__ for _, event in run.events]
    assert kinds[0] == "Heard"
    assert kinds[-1] == "Ended"
    assert kinds.index("ReplyText") < kinds.index("AudioOut")
    assert run.of(Heard) == [Heard("hello there")]
    assert "".join(event.text for event in run.of(ReplyText)) == "Hi. All is well."
    assert run.turn.status == "completed"
    assert run.conversation.exchanges == [Exchange("hello there", "Hi. All is well.")]


def test_marks_and_metrics_are_those_of_the_scripted_delays() -> None:
    chunks = ["Hi there, friend. "] + ["word "] * 23
    run = play(lambda clock: spoken_turn(clock, model=ScriptedModel(clock, chunks, usage=Usage(1212, 24, 1200))))
    metrics = run.turn.metrics
    assert metrics.asr_ms == 300.0
    assert metrics.ttft_ms == 25.0
    assert metrics.ms_per_token == 4.0
    assert metrics.llm_turn_ms == 25.0 + 23 * 4
    assert metrics.tts_ms == 80.0
    assert (metrics.prompt_tokens, metrics.completion_tokens, metrics.cached_tokens) == (1212, 24, 1200)
    marks = run.turn.timeline.since_start()
    assert list(marks) == [name for name in marks if name]  # in the order of MARKS, none missing in between
    assert set(marks) >= {
        "endpoint",
        "asr_start",
        "asr_done",
        "request_sent",
        "first_content",
        "first_clause",
        "tts_first_byte",
        "first_audio_sent",
        "last_content",
        "stream_end",
        "audio_done",
    }


def test_two_tokens_per_chunk_do_not_change_what_counts_as_a_token() -> None:
    chunks = ["a b "] * 12
    run = play(lambda clock: typed_turn(clock, model=ScriptedModel(clock, chunks, gap=0.008, usage=Usage(9, 24, 0))))
    assert run.turn.metrics.ms_per_token == round(11 * 8 / 23, 2)


def test_without_usage_the_figures_that_need_it_stay_blank() -> None:
    run = play(lambda clock: typed_turn(clock, model=ScriptedModel(clock, usage=None)))
    metrics = run.turn.metrics
    assert metrics.ms_per_token is None
    assert metrics.completion_tokens is None
    assert metrics.ttft_ms == 25.0


def test_the_first_clause_is_spoken_while_the_rest_is_still_being_generated() -> None:
    chunks = ["This is the first sentence. ", "And "] + ["more "] * 400 + ["."]
    run = play(lambda clock: typed_turn(clock, model=ScriptedModel(clock, chunks)))
    first_sound = next(at for at, event in run.events if isinstance(event, AudioOut))
    last_text = [at for at, event in run.events if isinstance(event, ReplyText)][-1]
    assert first_sound < last_text


def test_the_first_clause_goes_to_the_voice_at_the_moment_its_end_is_known() -> None:
    chunks = ["Good morning to you all. ", "I am here."]
    run = play(lambda clock: typed_turn(clock, model=ScriptedModel(clock, chunks, gap=1.0)))
    marks = run.turn.timeline.marks
    assert marks["first_clause"] == marks["first_content"]
    assert marks["tts_first_byte"] - marks["first_clause"] == pytest.approx(0.08)


def test_clauses_sound_in_order_even_when_a_later_one_is_made_first() -> None:
    class Uneven(ScriptedSynthesizer):
        async def synthesize(self, request):  # type: ignore[no-untyped-def, override]
            self.delay = 5.0 if "first" in request.text else 0.01
            async for event in super().synthesize(request):
                yield event

    voice = Uneven(parallel=2)
    chunks = ["This is the first sentence here. ", "This is the second sentence here. "]
    run = play(lambda clock: typed_turn(clock, model=ScriptedModel(clock, chunks), synthesizer=voice))
    values = [int(event.pcm[0]) for event in run.of(AudioOut)]
    assert values == sorted(values)
    assert voice.most_running == 2


def test_the_persona_tag_is_shown_drives_the_voice_and_is_never_spoken() -> None:
    voice = ScriptedSynthesizer()
    run = play(
        lambda clock: typed_turn(
            clock, model=ScriptedModel(clock, ["[hap", "py] Good to ", "see you."]), synthesizer=voice
        )
    )
    assert run.of(Mood) == [Mood("happy")]
    assert run.turn.reply == "Good to see you."
    assert all(request.style.rate == 1.1 for request in voice.requests)
    assert not any("happy" in request.text for request in voice.requests)
    assert run.turn.record()["mood_compliant"] is True
    assert run.conversation.exchanges[0].reply == "[happy] Good to see you."


def test_thinking_is_neither_shown_nor_spoken() -> None:
    voice = ScriptedSynthesizer()
    chunks = ["<thi", "nk>secret plan</th", "ink>\n\nHello to you."]
    run = play(lambda clock: typed_turn(clock, model=ScriptedModel(clock, chunks), synthesizer=voice))
    assert run.turn.reply.strip() == "Hello to you."
    assert not any("secret" in request.text for request in voice.requests)


def test_the_prefix_is_byte_identical_in_every_request() -> None:
    model_box: list[ScriptedModel] = []

    def make(clock: Clock) -> tuple[Stages, Utterance]:
        model_box.append(ScriptedModel(clock))
        return typed_turn(clock, model=model_box[-1])

    conversation = Conversation()
    play(make, conversation=conversation)
    play(make, conversation=conversation)
    first = [model.requests[0][0] for model in model_box]
    assert first == [{"role": "system", "content": "You are a test."}] * 2
    assert [message["role"] for message in model_box[1].requests[0]] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("code", ["llm_unreachable", "llm_timeout", "llm_server_error", "llm_model_missing"])
def test_a_fault_before_any_text_ends_the_turn_and_leaves_the_conversation_usable(code: str) -> None:
    conversation = Conversation()
    failed = play(
        lambda clock: typed_turn(clock, model=ScriptedModel(clock, refusals=[chat_error(code)])),
        conversation=conversation,
    )
    assert failed.turn.status == "failed"
    assert failed.of(Ended)[0].error.code == code
    assert conversation.exchanges == []
    again = play(typed_turn, conversation=conversation)
    assert again.turn.status == "completed"


@pytest.mark.parametrize("code", ["llm_dropped", "llm_stalled", "llm_malformed"])
def test_text_received_before_a_fault_is_shown_spoken_and_remembered(code: str) -> None:
    voice = ScriptedSynthesizer()
    run = play(
        lambda clock: typed_turn(
            clock, model=ScriptedModel(clock, ["It was a dark", " night"], fault=chat_error(code)), synthesizer=voice
        )
    )
    assert run.turn.status == "failed"
    assert run.turn.reply == "It was a dark night"
    assert "".join(request.text for request in voice.requests) == "It was a dark night"
    assert run.conversation.exchanges == [Exchange("hi", "It was a dark night")]
    assert run.turn.metrics.ttft_ms == 25.0
    assert run.turn.metrics.llm_turn_ms is None


def test_silence_is_told_and_asks_the_model_nothing() -> None:
    models: list[ScriptedModel] = []

    def make(clock: Clock) -> tuple[Stages, Utterance]:
        models.append(ScriptedModel(clock))
        return spoken_turn(clock, model=models[0], recognizer=ScriptedRecognizer(text="  "))

    run = play(make)
    assert run.turn.error is not None
    assert run.turn.error.code == "nothing_heard"
    assert models[0].requests == []
    assert run.conversation.exchanges == []


@pytest.mark.parametrize("chunks", [[], ["   "], ["<think>only thought"], ["[happy] "]])
def test_a_reply_with_nothing_in_it_is_a_clear_error(chunks: list[str]) -> None:
    run = play(lambda clock: typed_turn(clock, model=ScriptedModel(clock, chunks)))
    assert run.turn.error is not None
    assert run.turn.error.code == "llm_empty"


def test_a_voice_that_fails_on_one_clause_is_told_once_and_the_rest_is_spoken() -> None:
    voice = ScriptedSynthesizer(
        faults={"The first one fails.": chat_error("tts_failed"), "The second one fails.": chat_error("tts_failed")}
    )
    chunks = ["The first one fails. ", "The second one fails. ", "The third one works. "]
    run = play(lambda clock: typed_turn(clock, model=ScriptedModel(clock, chunks), synthesizer=voice))
    assert [notice.code for notice in run.of(Notice)] == ["tts_failed"]
    assert len(run.of(AudioOut)) == 10
    assert run.turn.status == "completed"


def test_a_change_of_voice_engine_is_told() -> None:
    voice = ScriptedSynthesizer(notices={"All is well now.": SpeechNotice("tts_fallback", "Another voice speaks.")})
    run = play(lambda clock: typed_turn(clock, model=ScriptedModel(clock, ["All is well now. "]), synthesizer=voice))
    assert [notice.code for notice in run.of(Notice)] == ["tts_fallback"]


def test_a_reply_cut_at_its_longest_length_is_told() -> None:
    class Cut(ScriptedModel):
        async def stream(self, messages):  # type: ignore[no-untyped-def, override]
            async for event in super().stream(messages):
                yield replace(event, finish_reason="length") if isinstance(event, StreamEnd) else event

    run = play(lambda clock: typed_turn(clock, model=Cut(clock)))
    assert [notice.code for notice in run.of(Notice)] == ["reply_cut"]
    assert run.turn.status == "completed"


def test_a_turn_without_a_voice_is_only_written() -> None:
    def make(clock: Clock) -> tuple[Stages, Utterance]:
        stages = scripted_stages(clock)
        return Stages(stages.recognizer, stages.model, None), Utterance(text="hi")

    run = play(make)
    assert run.turn.status == "completed"
    assert run.of(AudioOut) == []
    assert run.turn.metrics.first_audio_ms is None


def test_a_model_that_cannot_see_gets_the_words_and_the_user_is_told() -> None:
    for model_of in (
        lambda clock: ScriptedModel(clock, vision=False),
        lambda clock: ScriptedModel(clock, refusals=[chat_error("llm_no_vision")]),
    ):
        models: list[ScriptedModel] = []

        def make(clock: Clock, model_of=model_of, models=models) -> tuple[Stages, Utterance]:  # type: ignore[no-untyped-def]
            models.append(model_of(clock))
            return typed_turn(clock, "what is this?", IMAGE, model=models[0])

        run = play(make)
        assert [notice.code for notice in run.of(Notice)] == ["model_cannot_see"]
        assert models[0].requests[-1][-1] == {"role": "user", "content": "what is this?"}
        assert run.turn.status == "completed"
        assert run.conversation.exchanges[0].image is None


def test_an_image_alone_for_a_model_that_cannot_see_is_refused_with_a_sentence() -> None:
    run = play(lambda clock: typed_turn(clock, "", IMAGE, model=ScriptedModel(clock, vision=False)))
    assert run.turn.error is not None
    assert run.turn.error.code == "image_unseen"


def test_an_image_stands_before_the_words_and_stays_in_the_history() -> None:
    conversation = Conversation()
    play(
        lambda clock: typed_turn(clock, "what is this?", IMAGE, model=ScriptedModel(clock, vision=True)),
        conversation=conversation,
    )
    messages = conversation.messages("p", "and now?", None)
    assert [part["type"] for part in messages[1]["content"]] == ["image_url", "text"]


def test_a_prompt_that_is_too_long_is_cut_and_sent_again_once_per_half() -> None:
    conversation = Conversation(exchanges=[Exchange("q", "a") for _ in range(8)])
    models: list[ScriptedModel] = []

    def make(clock: Clock) -> tuple[Stages, Utterance]:
        models.append(ScriptedModel(clock, refusals=[chat_error("llm_context_overflow")] * 2))
        return typed_turn(clock, model=models[0])

    run = play(make, conversation=conversation)
    assert run.turn.status == "completed"
    assert [len(request) for request in models[0].requests] == [18, 10, 6]
    assert [notice.code for notice in run.of(Notice)] == ["history_cut"]
    assert run.turn.metrics.ttft_ms == 25.0


def test_a_prompt_that_is_too_long_without_any_history_is_an_error() -> None:
    run = play(
        lambda clock: typed_turn(clock, model=ScriptedModel(clock, refusals=[chat_error("llm_context_overflow")]))
    )
    assert run.turn.error is not None
    assert run.turn.error.code == "llm_context_overflow"


def test_an_unforeseen_error_is_no_stop_but_a_failure_told_in_a_sentence() -> None:
    async def main(clock: Clock) -> Run:
        stages, utterance = spoken_turn(clock, recognizer=ScriptedRecognizer(fault=ZeroDivisionError()))
        run = Run(clock, stages, utterance)
        with pytest.raises(ZeroDivisionError):
            await run.turn.run()
        return run

    run = run_virtual(main)
    (ended,) = run.of(Ended)
    assert (ended.status, ended.error.code) == ("failed", "turn_broken")


def test_an_unforeseen_error_is_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        play(lambda clock: spoken_turn(clock, recognizer=ScriptedRecognizer(fault=ZeroDivisionError())))
    with pytest.raises(ZeroDivisionError):
        play(
            lambda clock: typed_turn(
                clock,
                model=ScriptedModel(clock, ["Hello to everybody. "]),
                synthesizer=ScriptedSynthesizer(faults={"Hello to everybody.": ZeroDivisionError()}),
            )
        )


def test_text_with_nothing_to_say_is_shown_but_not_given_to_the_voice() -> None:
    voice = ScriptedSynthesizer()
    chunks = ["Nice to see you! ", "🎉🎉 ", "Bye for now. "]
    run = play(lambda clock: typed_turn(clock, model=ScriptedModel(clock, chunks), synthesizer=voice))
    assert "🎉" in run.turn.reply
    assert not any("🎉" in request.text for request in voice.requests)
    assert "".join(clause.text for clause in run.turn.clauses) == run.turn.reply
