"""What `session.update` changes, and the session as it is shown."""

import dataclasses

import pytest
from pydantic import ValidationError

from spoken_chat.realtime.config import Choice, SessionFields, session_object, updated
from spoken_chat.realtime.faults import BadEvent
from spoken_chat.realtime.incoming import parse
from spoken_chat.settings import load
from spoken_chat.talk.options import TalkOptions
from tests.support.engines import scripted_persona
from tests.support.realtime import check

PERSONA = scripted_persona()
SETTINGS = load()
NOW = Choice(TalkOptions.of(SETTINGS), PERSONA.voices[0])


def change(now: Choice = NOW, **session: object) -> Choice:
    fields = SessionFields.model_validate({"type": "realtime", **session})
    return updated(fields, now, PERSONA, SETTINGS)


def detecting(now: Choice = NOW, **detection: object) -> TalkOptions:
    return change(now, audio={"input": {"turn_detection": detection}}).options


def shown(choice: Choice) -> dict:
    session = session_object("s", choice, PERSONA, "whisper", 220)
    check({"type": "session.updated", "event_id": "e", "session": session})
    return session


def test_what_is_left_out_stays() -> None:
    changed = dataclasses.replace(NOW.options, detection="manual", spoken_reply=False)
    assert change(Choice(changed, PERSONA.voices[1])) == Choice(changed, PERSONA.voices[1])


def test_a_fixed_silence_with_all_that_belongs_to_it() -> None:
    options = detecting(
        type="server_vad",
        threshold=0.7,
        prefix_padding_ms=100,
        silence_duration_ms=800,
        create_response=False,
        interrupt_response=False,
    )
    assert (options.detection, options.threshold, options.pre_roll, options.wait) == ("fixed", 0.7, 0.1, 0.8)
    assert not options.answers and not options.barge_in
    assert shown(Choice(options, PERSONA.voices[0]))["audio"]["input"]["turn_detection"] == {
        "type": "server_vad",
        "threshold": 0.7,
        "prefix_padding_ms": 100,
        "silence_duration_ms": 800,
        "create_response": False,
        "interrupt_response": False,
    }


def test_a_turn_detection_without_details_keeps_what_is_in_force() -> None:
    before = dataclasses.replace(NOW.options, detection="manual", threshold=0.9, wait=3.0, barge_in=False)
    options = detecting(Choice(before, PERSONA.voices[0]), type="server_vad")
    assert options == dataclasses.replace(before, detection="fixed")


@pytest.mark.parametrize("unfinished", [0.8, 1.0, 1.5, 2.2, 3.0])
def test_the_session_as_it_was_shown_brings_back_the_waits_that_the_page_had_set(unfinished: float) -> None:
    """Push-to-talk listens by hand for a while, and then gives back what it was shown before."""
    before = dataclasses.replace(NOW.options, wait_unfinished=unfinished, wait_finished=0.3)
    detection = shown(Choice(before, PERSONA.voices[0]))["audio"]["input"]["turn_detection"]
    by_hand = change(Choice(before, PERSONA.voices[0]), audio={"input": {"turn_detection": None}})
    assert detecting(by_hand, **detection) == before


def test_eagerness_auto_after_another_one_is_what_the_settings_say() -> None:
    low = detecting(type="semantic_vad", eagerness="low")
    again = detecting(Choice(low, PERSONA.voices[0]), type="semantic_vad", eagerness="auto")
    assert again.wait_unfinished == SETTINGS.silence_wait_unfinished


@pytest.mark.parametrize(
    "eagerness, longest, back",
    [("high", 1.0, "high"), ("medium", 1.5, "medium"), ("auto", 1.5, "medium"), ("low", 3.0, "low")],
)
def test_the_smart_turn_model_waits_as_long_as_its_eagerness_says(eagerness: str, longest: float, back: str) -> None:
    options = detecting(type="semantic_vad", eagerness=eagerness)
    assert options.detection == "adaptive" and options.wait_unfinished == longest
    assert shown(Choice(options, PERSONA.voices[0]))["audio"]["input"]["turn_detection"]["eagerness"] == back


def test_null_means_by_hand() -> None:
    options = change(audio={"input": {"turn_detection": None}}).options
    assert options.detection == "manual"
    assert shown(Choice(options, PERSONA.voices[0]))["audio"]["input"]["turn_detection"] is None


@pytest.mark.parametrize("voice", ["Bob", {"id": "Bob"}])
def test_a_voice_of_the_persona(voice: object) -> None:
    assert change(audio={"output": {"voice": voice}}).voice.name == "Bob"


def test_what_is_fixed_is_accepted_and_ignored() -> None:
    ignored = {
        "instructions": "Be rude.",
        "prompt": {"id": "p"},
        "tools": [],
        "tool_choice": "auto",
        "tracing": "auto",
        "truncation": {"type": "retention_ratio", "retention_ratio": 0.5},
        "max_output_tokens": "inf",
        "include": [],
        "reasoning": {"effort": "low"},
        "model": "gpt-realtime",
    }
    more = {"input": {"transcription": {"model": "x"}, "noise_reduction": {"type": "near_field"}}}
    assert change(**ignored, audio=more) == NOW
    assert "rude" not in str(shown(NOW))


@pytest.mark.parametrize(
    "session, code, param",
    [
        ({"type": "transcription"}, "session_type_unsupported", "session.type"),
        ({"tools": [{"type": "function"}]}, "tools_unsupported", "session.tools"),
        ({"output_modalities": ["audio", "text"]}, "invalid_value", "session.output_modalities"),
        ({"output_modalities": []}, "invalid_value", "session.output_modalities"),
        (
            {"audio": {"input": {"format": {"type": "audio/pcmu"}}}},
            "audio_format_unsupported",
            "session.audio.input.format",
        ),
        (
            {"audio": {"output": {"format": {"type": "audio/pcm", "rate": 16000}}}},
            "audio_format_unsupported",
            "session.audio.output.format",
        ),
        ({"audio": {"output": {"speed": 1.5}}}, "speed_unsupported", "session.audio.output.speed"),
        ({"audio": {"output": {"voice": "alloy"}}}, "voice_unknown", "session.audio.output.voice"),
        (
            {"audio": {"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 5000}}}},
            "idle_timeout_unsupported",
            "session.audio.input.turn_detection.idle_timeout_ms",
        ),
        (
            {"audio": {"input": {"turn_detection": {"type": "server_vad", "eagerness": "low"}}}},
            "unknown_parameter",
            "session.audio.input.turn_detection.eagerness",
        ),
        (
            {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "threshold": 0.5}}}},
            "unknown_parameter",
            "session.audio.input.turn_detection.threshold",
        ),
    ],
)
def test_what_cannot_be_had_is_refused_and_changes_nothing(session: dict, code: str, param: str) -> None:
    with pytest.raises(BadEvent) as caught:
        change(**session)
    assert (caught.value.code, caught.value.param) == (code, param)


def test_an_unknown_voice_is_told_which_there_are() -> None:
    with pytest.raises(BadEvent, match="Ann, Bob"):
        change(audio={"output": {"voice": "alloy"}})


@pytest.mark.parametrize(
    "session, code, param",
    [
        ({"voice": "Bob"}, "unknown_parameter", "session.voice"),
        ({"turn_detection": None}, "unknown_parameter", "session.turn_detection"),
        ({"audio": {"input": {"turn_detection": {"type": "magic"}}}}, "invalid_value", None),
        ({"audio": {"input": {"turn_detection": {}}}}, "missing_required_parameter", None),
        ({"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": 2}}}}, "invalid_value", None),
        (
            {"audio": {"input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": 10}}}},
            "invalid_value",
            "session.audio.input.turn_detection.silence_duration_ms",
        ),
        ({"output_modalities": "audio"}, "invalid_value", "session.output_modalities"),
        ("none", "invalid_value", "session"),
    ],
)
def test_fields_that_are_not_there_or_of_another_kind_are_named(session: object, code: str, param: str | None) -> None:
    with pytest.raises(BadEvent) as caught:
        parse({"type": "session.update", "session": session})
    assert caught.value.code == code
    if param is not None:
        assert caught.value.param == param


def test_the_check_of_our_events_refuses_what_the_clients_types_do_not_know() -> None:
    good = {"type": "input_audio_buffer.cleared", "event_id": "e"}
    check(good)
    with pytest.raises(AssertionError, match="extra"):
        check({**good, "extra": 1})
    with pytest.raises(ValidationError):
        check({"type": "input_audio_buffer.cleared"})
    with pytest.raises(ValidationError):
        check({"type": "no.such.event", "event_id": "e"})
