"""Every event the server sends, as a plain dict. Names and fields are those of the OpenAI Realtime API (GA).

The last group is our own; the official client's types do not know it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spoken_chat.audio import TTS_RATE
from spoken_chat.llm import Usage

Event = dict[str, Any]
Emit = Callable[[Event], None]

PCM_FORMAT: Final = {"type": "audio/pcm", "rate": TTS_RATE}
"""The one format of sound, in both directions: 16 bits, little-endian, mono."""


@dataclass(frozen=True)
class Place:
    """Where a piece of a reply belongs: its response, and the item that holds its only part."""

    response_id: str
    item_id: str

    def as_dict(self) -> Event:
        """The fields that every event of a part has."""
        return {"response_id": self.response_id, "item_id": self.item_id, "output_index": 0, "content_index": 0}


def _event(kind: str, /, **fields: Any) -> Event:
    return {"type": kind, "event_id": "event_" + secrets.token_hex(10), **fields}


def error(code: str, message: str, *, kind: str, param: str | None = None, event_id: str | None = None) -> Event:
    """`kind`: invalid_request_error or server_error. `event_id`: of the client's event that is at fault."""
    about = {"type": kind, "code": code, "message": message, "param": param, "event_id": event_id}
    return _event("error", error=about)


def session_created(session: Event) -> Event:
    """The connection is open; how it listens and answers."""
    return _event("session.created", session=session)


def session_updated(session: Event) -> Event:
    """What is in force now."""
    return _event("session.updated", session=session)


def speech_started(item_id: str, audio_start_ms: int) -> Event:
    """Somebody speaks; the position is in the sound this client sent, its pre-roll included."""
    return _event("input_audio_buffer.speech_started", item_id=item_id, audio_start_ms=audio_start_ms)


def speech_stopped(item_id: str, audio_end_ms: int) -> Event:
    """The utterance is over; the position includes the silence that ended it."""
    return _event("input_audio_buffer.speech_stopped", item_id=item_id, audio_end_ms=audio_end_ms)


def audio_committed(item_id: str, previous: str | None) -> Event:
    """The sound became a user's item."""
    return _event("input_audio_buffer.committed", item_id=item_id, previous_item_id=previous)


def audio_cleared() -> Event:
    """The sound since the last commit is forgotten."""
    return _event("input_audio_buffer.cleared")


def transcription_delta(item_id: str, delta: str) -> Event:
    """More of what was understood, which will not change while the person speaks."""
    return _event("conversation.item.input_audio_transcription.delta", item_id=item_id, content_index=0, delta=delta)


def transcription_completed(item_id: str, transcript: str, seconds: float) -> Event:
    """The words of an utterance of so many seconds."""
    return _event(
        "conversation.item.input_audio_transcription.completed",
        item_id=item_id,
        content_index=0,
        transcript=transcript,
        usage={"type": "duration", "seconds": round(seconds, 3)},
    )


def transcription_failed(item_id: str, code: str, message: str) -> Event:
    """An utterance has no words because its recognition failed or was stopped."""
    about = {"type": "transcription_error", "code": code, "message": message, "param": None}
    return _event("conversation.item.input_audio_transcription.failed", item_id=item_id, content_index=0, error=about)


def item_added(item: Event, previous: str | None) -> Event:
    """An item stands in the conversation."""
    return _event("conversation.item.added", item=item, previous_item_id=previous)


def item_done(item: Event, previous: str | None) -> Event:
    """An item is whole."""
    return _event("conversation.item.done", item=item, previous_item_id=previous)


def item_retrieved(item: Event) -> Event:
    """The item that was asked for, without its sound."""
    return _event("conversation.item.retrieved", item=item)


def item_deleted(item_id: str) -> Event:
    """An item is no longer part of the conversation."""
    return _event("conversation.item.deleted", item_id=item_id)


def item_truncated(item_id: str, content_index: int, audio_end_ms: int) -> Event:
    """History keeps what was heard of the item."""
    return _event(
        "conversation.item.truncated", item_id=item_id, content_index=content_index, audio_end_ms=audio_end_ms
    )


def response_created(response: Event) -> Event:
    """A reply begins."""
    return _event("response.created", response=response)


def response_done(response: Event) -> Event:
    """A reply is over, however it ended."""
    return _event("response.done", response=response)


def output_item_added(response_id: str, item: Event) -> Event:
    """The reply has its item."""
    return _event("response.output_item.added", response_id=response_id, output_index=0, item=item)


def output_item_done(response_id: str, item: Event) -> Event:
    """The item of the reply is whole, or cut off."""
    return _event("response.output_item.done", response_id=response_id, output_index=0, item=item)


def content_part_added(place: Place, part: Event) -> Event:
    """The item has its part."""
    return _event("response.content_part.added", **place.as_dict(), part=part)


def content_part_done(place: Place, part: Event) -> Event:
    """The part is whole, or cut off."""
    return _event("response.content_part.done", **place.as_dict(), part=part)


def transcript_delta(place: Place, delta: str) -> Event:
    """More words of a spoken reply."""
    return _event("response.output_audio_transcript.delta", **place.as_dict(), delta=delta)


def transcript_done(place: Place, transcript: str) -> Event:
    """All words of a spoken reply."""
    return _event("response.output_audio_transcript.done", **place.as_dict(), transcript=transcript)


def audio_delta(place: Place, sound: str) -> Event:
    """More sound of a reply, base64."""
    return _event("response.output_audio.delta", **place.as_dict(), delta=sound)


def audio_done(place: Place) -> Event:
    """No more sound of this reply comes."""
    return _event("response.output_audio.done", **place.as_dict())


def text_delta(place: Place, delta: str) -> Event:
    """More of a written reply."""
    return _event("response.output_text.delta", **place.as_dict(), delta=delta)


def text_done(place: Place, text: str) -> Event:
    """All of a written reply."""
    return _event("response.output_text.done", **place.as_dict(), text=text)


def output_cleared(response_id: str) -> Event:
    """What is queued of this reply's sound is not to be played any more."""
    return _event("output_audio_buffer.cleared", response_id=response_id)


def usage(counts: Usage | None) -> Event | None:
    """The model server's token counts in the API's form; None where it sent none."""
    if counts is None or counts.prompt_tokens is None or counts.completion_tokens is None:
        return None
    return {
        "input_tokens": counts.prompt_tokens,
        "output_tokens": counts.completion_tokens,
        "total_tokens": counts.prompt_tokens + counts.completion_tokens,
        "input_token_details": {"cached_tokens": counts.cached_tokens, "text_tokens": counts.prompt_tokens},
        "output_token_details": {"text_tokens": counts.completion_tokens},
    }


def turn_timeline(record: Event, figures: dict[str, str]) -> Event:
    """A turn ended: its record as in the export, and each figure as the text that is shown."""
    return _event("turn.timeline", turn=record, figures=figures)


def turn_progress(record: Event, figures: dict[str, str]) -> Event:
    """A turn's marks or figures changed."""
    return _event("turn.progress", turn=record, figures=figures)


def turn_started(turn_id: str, kind: str, item_id: str, response_id: str, speech_end_ms: int | None) -> Event:
    """A turn runs: from here on the client can measure by its own clock."""
    fields: Event = {"turn_id": turn_id, "kind": kind, "item_id": item_id, "response_id": response_id}
    if speech_end_ms is not None:
        fields["speech_end_ms"] = speech_end_ms
    return _event("turn.started", **fields)


def caption(item_id: str, stable: str, tail: str) -> Event:
    """What was understood so far."""
    return _event("input.caption", item_id=item_id, stable=stable, tail=tail)


def input_dropped(item_id: str, reason: str) -> Event:
    """The utterance is not a turn after all."""
    return _event("input.dropped", item_id=item_id, reason=reason)


def mood(turn_id: str, tag: str) -> Event:
    """The persona tag of the reply."""
    return _event("reply.mood", turn_id=turn_id, mood=tag)


def duck(turn_id: str, down: bool) -> Event:
    """Turn the reply down, or up again."""
    return _event("reply.duck", turn_id=turn_id, down=down)


def notice(code: str, message: str) -> Event:
    """Something to show once."""
    return _event("notice", code=code, message=message)


def restored(items: Sequence[Event], voice: str, detection: str) -> Event:
    """What was said before this connection."""
    return _event("conversation.restored", items=list(items), voice=voice, detection=detection)
