"""The session as the wire shows it, and what `session.update` changes in how a talk listens and answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from spoken_chat.persona import Persona, PersonaVoice
from spoken_chat.realtime.events import PCM_FORMAT, Event
from spoken_chat.realtime.faults import BadEvent
from spoken_chat.settings import Settings
from spoken_chat.talk.options import TalkOptions

MODEL: Final = "spoken-chat"

LONGEST_WAIT_S: Final = {"high": 1.0, "medium": 1.5, "low": 3.0}
"""The longest silence of an unfinished turn, by `eagerness`; `auto` is any other one."""


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Format(_Fields):
    """A format of sound."""

    type: str = "audio/pcm"
    rate: int | None = None


class TurnDetection(_Fields):
    """How the end of a turn is found."""

    type: Literal["server_vad", "semantic_vad"]
    threshold: float | None = Field(None, ge=0, le=1)
    prefix_padding_ms: int | None = Field(None, ge=0, le=5000)
    silence_duration_ms: int | None = Field(None, ge=200, le=5000)
    eagerness: Literal["low", "medium", "high", "auto"] | None = None
    create_response: bool | None = None
    interrupt_response: bool | None = None
    idle_timeout_ms: int | None = None


class VoiceId(_Fields):
    """A voice by its id; ours are names."""

    id: str


class AudioInput(_Fields):
    """How the client's sound is taken."""

    format: Format | None = None
    turn_detection: TurnDetection | None = None
    transcription: Any = None
    noise_reduction: Any = None


class AudioOutput(_Fields):
    """How replies sound."""

    format: Format | None = None
    voice: str | VoiceId | None = None
    speed: float | None = None


class Audio(_Fields):
    """Both directions."""

    input: AudioInput | None = None
    output: AudioOutput | None = None


class SessionFields(_Fields):
    """What `session.update` may hold. What is typed Any is accepted and ignored."""

    type: str = "realtime"
    audio: Audio | None = None
    output_modalities: list[str] | None = None
    tools: list[Any] | None = None
    model: Any = None
    instructions: Any = None
    prompt: Any = None
    tool_choice: Any = None
    parallel_tool_calls: Any = None
    tracing: Any = None
    truncation: Any = None
    max_output_tokens: Any = None
    include: Any = None
    reasoning: Any = None


@dataclass(frozen=True)
class Choice:
    """How a talk listens, and with which voice it answers."""

    options: TalkOptions
    voice: PersonaVoice


def updated(fields: SessionFields, now: Choice, persona: Persona, settings: Settings) -> Choice:
    """`now` with what `fields` asks for; what it leaves out stays. Raises BadEvent, and then nothing changes."""
    if fields.type != "realtime":
        raise BadEvent("session_type_unsupported", "Only sessions of the type realtime are held here.", "session.type")
    if fields.tools:
        raise BadEvent("tools_unsupported", "No tools are called here; leave session.tools empty.", "session.tools")
    options, voice = now.options, now.voice
    if fields.output_modalities is not None:
        spoken = is_spoken(fields.output_modalities, "session.output_modalities")
        options = replace(options, spoken_reply=spoken)
    if fields.audio is not None and fields.audio.input is not None:
        given = fields.audio.input
        _check_format(given.format, "session.audio.input.format")
        if "turn_detection" in given.model_fields_set:
            options = _detecting(given.turn_detection, options, settings)
    if fields.audio is not None and fields.audio.output is not None:
        output = fields.audio.output
        _check_format(output.format, "session.audio.output.format")
        if output.speed is not None and output.speed != 1.0:
            raise BadEvent("speed_unsupported", "Replies are spoken at speed 1.0 only.", "session.audio.output.speed")
        if output.voice is not None:
            voice = _voice(output.voice, persona)
    return Choice(options, voice)


def is_spoken(modalities: list[str], param: str) -> bool:
    """Whether replies are to be spoken; otherwise they are only written. Raises BadEvent."""
    if modalities not in (["audio"], ["text"]):
        raise BadEvent("invalid_value", f'{param} must be ["audio"] or ["text"].', param)
    return modalities == ["audio"]


def session_object(session_id: str, choice: Choice, persona: Persona, recognizer: str, most_tokens: int) -> Event:
    """The session as session.created and session.updated show it."""
    return {
        "type": "realtime",
        "object": "realtime.session",
        "id": f"sess_{session_id}",
        "model": MODEL,
        "output_modalities": modalities(choice.options.spoken_reply),
        "instructions": f"Those of the persona {persona.name}; they are fixed.",
        "tools": [],
        "tool_choice": "none",
        "max_output_tokens": most_tokens,
        "tracing": None,
        "truncation": "auto",
        "prompt": None,
        "include": None,
        "audio": {
            "input": {
                "format": PCM_FORMAT,
                "transcription": {"model": recognizer, "language": persona.language},
                "noise_reduction": None,
                "turn_detection": _detection(choice.options),
            },
            "output": {"format": PCM_FORMAT, "voice": choice.voice.name, "speed": 1.0},
        },
    }


def modalities(spoken: bool) -> list[str]:
    """How a reply comes, as the wire says it."""
    return ["audio"] if spoken else ["text"]


def _detecting(given: TurnDetection | None, options: TalkOptions, settings: Settings) -> TalkOptions:
    """The options with another way of finding the end of a turn; what is not given stays as it is."""
    if given is None:
        return replace(options, detection="manual")
    where = "session.audio.input.turn_detection"
    if given.idle_timeout_ms is not None:
        raise BadEvent(
            "idle_timeout_unsupported", "Nobody is asked to go on after a silence.", f"{where}.idle_timeout_ms"
        )
    semantic = given.type == "semantic_vad"
    for name in ("threshold", "prefix_padding_ms", "silence_duration_ms") if semantic else ("eagerness",):
        if getattr(given, name) is not None:
            raise BadEvent(
                "unknown_parameter", f"A turn detection of type {given.type} has no {name}.", f"{where}.{name}"
            )
    options = replace(
        options,
        detection="adaptive" if semantic else "fixed",
        answers=options.answers if given.create_response is None else given.create_response,
        barge_in=options.barge_in if given.interrupt_response is None else given.interrupt_response,
    )
    if semantic:
        longest = _longest_wait(given.eagerness or "auto", options, settings)
        return replace(options, wait_finished=min(options.wait_finished, longest), wait_unfinished=longest)
    return replace(
        options,
        wait=_seconds(given.silence_duration_ms, options.wait),
        threshold=options.threshold if given.threshold is None else given.threshold,
        pre_roll=_seconds(given.prefix_padding_ms, options.pre_roll),
    )


def _longest_wait(eagerness: str, options: TalkOptions, settings: Settings) -> float:
    """Seconds that an unfinished turn waits. `auto` is what the page's settings say, or else those of the app."""
    if eagerness != "auto":
        return LONGEST_WAIT_S[eagerness]
    if options.wait_unfinished in LONGEST_WAIT_S.values():
        return settings.silence_wait_unfinished
    return options.wait_unfinished


def _detection(options: TalkOptions) -> Event | None:
    if options.detection == "manual":
        return None
    both = {"create_response": options.answers, "interrupt_response": options.barge_in}
    if options.detection == "adaptive":
        named = {seconds: name for name, seconds in LONGEST_WAIT_S.items()}
        return {"type": "semantic_vad", "eagerness": named.get(options.wait_unfinished, "auto"), **both}
    return {
        "type": "server_vad",
        "threshold": options.threshold,
        "prefix_padding_ms": round(options.pre_roll * 1000),
        "silence_duration_ms": round(options.wait * 1000),
        **both,
    }


def _check_format(given: Format | None, param: str) -> None:
    if given is not None and (given.type != PCM_FORMAT["type"] or given.rate not in (None, PCM_FORMAT["rate"])):
        raise BadEvent(
            "audio_format_unsupported",
            "Sound is audio/pcm at 24000 in both directions: 16 bits, little-endian, mono.",
            param,
        )


def _voice(given: str | VoiceId, persona: Persona) -> PersonaVoice:
    name = given if isinstance(given, str) else given.id
    for voice in persona.voices:
        if voice.name == name:
            return voice
    known = ", ".join(voice.name for voice in persona.voices)
    raise BadEvent(
        "voice_unknown", f"{persona.name} has no such voice; choose one of {known}.", "session.audio.output.voice"
    )


def _seconds(milliseconds: int | None, otherwise: float) -> float:
    return otherwise if milliseconds is None else milliseconds / 1000
