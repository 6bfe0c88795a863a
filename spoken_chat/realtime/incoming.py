"""The client's events: read from text and checked into typed objects before anything is done."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from spoken_chat.audio import TTS_RATE
from spoken_chat.realtime.config import SessionFields
from spoken_chat.realtime.faults import BadEvent
from spoken_chat.settings import Settings

BESIDE_CONTENT: Final = 32_768
"""Characters of a message beside the image or the sound in it."""

MOST_ID: Final = 128
"""Characters of an id that a client may choose."""


def _whole(value: str) -> str:
    if not _is_text(value):
        raise ValueError("it holds half a character")
    return value


Text = Annotated[str, AfterValidator(_whole)]
"""Text that can be written as UTF-8: JSON may hold halves of a pair that stand for nothing alone."""


class ClientEvent(BaseModel):
    """What all have in common. Fields we do not know are left alone."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


class SessionUpdate(ClientEvent):
    """Change how the session listens and answers."""

    session: SessionFields


class AudioAppend(ClientEvent):
    """The next sound: base64 of PCM16, 24 kHz, mono."""

    audio: str


class AudioCommit(ClientEvent):
    """The sound so far is an utterance."""


class AudioClear(ClientEvent):
    """Forget the sound so far."""


class Part(ClientEvent):
    """One part of a message; which field counts depends on `type`."""

    type: str
    text: Text | None = None
    audio: str | None = None
    image_url: str | None = None
    transcript: Text | None = None


class NewItem(ClientEvent):
    """An item to add; only messages are taken."""

    type: str
    id: Text | None = Field(None, min_length=1, max_length=MOST_ID)
    role: str | None = None
    content: list[Part] = Field(default_factory=list, max_length=64)


class ItemCreate(ClientEvent):
    """Add an item to the conversation."""

    item: NewItem
    previous_item_id: str | None = None


class ItemRetrieve(ClientEvent):
    """Show an item."""

    item_id: str


class ItemDelete(ClientEvent):
    """Take an item out of the conversation."""

    item_id: str


class ItemTruncate(ClientEvent):
    """Only so much of a reply's sound was played."""

    item_id: str
    content_index: int = 0
    audio_end_ms: float = Field(ge=0)


class ResponseFields(ClientEvent):
    """What may be different for one response; instructions and the like are ignored."""

    output_modalities: list[str] | None = None
    conversation: str | None = None
    input: list[Any] | None = None
    tools: list[Any] | None = None


class ResponseCreate(ClientEvent):
    """Answer what waits."""

    response: ResponseFields | None = None


class ResponseCancel(ClientEvent):
    """Stop the reply."""


class OutputClear(ClientEvent):
    """Stop the reply's sound."""


class TurnPlayed(ClientEvent):
    """The first sound of a reply was audible."""

    turn_id: str
    waited_ms: float = Field(ge=0)
    playback_ms: float = Field(ge=0)


class InputHold(ClientEvent):
    """A key is held to talk, or was let go."""

    held: bool


KINDS: Final[dict[str, type[ClientEvent]]] = {
    "session.update": SessionUpdate,
    "input_audio_buffer.append": AudioAppend,
    "input_audio_buffer.commit": AudioCommit,
    "input_audio_buffer.clear": AudioClear,
    "conversation.item.create": ItemCreate,
    "conversation.item.retrieve": ItemRetrieve,
    "conversation.item.delete": ItemDelete,
    "conversation.item.truncate": ItemTruncate,
    "response.create": ResponseCreate,
    "response.cancel": ResponseCancel,
    "output_audio_buffer.clear": OutputClear,
    "turn.played": TurnPlayed,
    "input.hold": InputHold,
}


def most_characters(settings: Settings) -> int:
    """How long a message may be: it holds the largest image or the longest sound that is taken, in base64.

    The web server takes a little more, for what is longer than that ends the whole connection.
    """
    content = max(settings.image_max_bytes, round(settings.audio_max_seconds * TTS_RATE * 2))
    return (content + 2) // 3 * 4 + BESIDE_CONTENT


def read_message(message: str, most: int) -> dict[str, Any]:
    """The message, of `most` characters at the most, as an object. Raises BadEvent."""
    if len(message) > most:
        raise BadEvent("message_too_big", f"A message may have {most} characters; this one has more.", most=most)
    try:
        found = json.loads(message)
    except (ValueError, RecursionError):
        raise BadEvent("invalid_json", "The message is not valid JSON; send one JSON object as text.") from None
    if not isinstance(found, dict):
        raise BadEvent("invalid_event", "The message is not a JSON object; send one with a type.")
    return found


def event_id_of(raw: dict[str, Any]) -> str | None:
    """The id that the client gave its event, to name it in an error."""
    found = raw.get("event_id")
    return found if isinstance(found, str) and len(found) <= MOST_ID and _is_text(found) else None


def parse(raw: dict[str, Any]) -> ClientEvent:
    """The event that `raw` is. Raises BadEvent that names the field at fault."""
    kind = raw.get("type")
    if not isinstance(kind, str):
        raise BadEvent("missing_required_parameter", "The event has no type.", "type")
    if kind not in KINDS:
        raise BadEvent("unknown_event", f"There is no event of this type; known are {', '.join(KINDS)}.", "type")
    try:
        return KINDS[kind].model_validate(raw)
    except ValidationError as error:
        raise _in_words(error) from None


def _in_words(error: ValidationError) -> BadEvent:
    """The first thing that is wrong, in one sentence."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = [str(part) for part in first["loc"]]
    if first["type"] == "extra_forbidden":
        where = ".".join(place)
        return BadEvent("unknown_parameter", f"There is no parameter {where[:MOST_ID]}.", where[:MOST_ID])
    where = ".".join(place)
    if first["type"] == "missing":
        return BadEvent("missing_required_parameter", f"The parameter {where} is missing.", where)
    return BadEvent("invalid_value", f"The parameter {where} cannot be that: {first['msg']}.", where)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
