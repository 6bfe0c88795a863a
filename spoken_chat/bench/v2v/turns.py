"""One turn over the WebSocket, as the benchmark's client measured it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from spoken_chat.bench.v2v.app_process import AppProcess
from spoken_chat.bench.v2v.client import VoiceClient, connected, of_type
from spoken_chat.bench.v2v.utterances import Utterance

SOUND = of_type("response.output_audio.delta")
STOPPED = of_type("input_audio_buffer.speech_stopped")
SAME_END_S = 0.3
"""A turn whose speech ended this close to the utterance's end answers the whole of it."""
PROGRESS = ("turn.progress", "turn.timeline")


@dataclass(frozen=True)
class Spoken:
    """Milliseconds, by the client's clock, up to the first sound received.

    `from_end_ms`: since the utterance's last sample was sent. `v2v_ms`: since the last moment at which the detector
    heard speech. `after_endpoint_ms`: since word of the turn's end was received. `endpoint_delay_ms` and
    `first_audio_ms` are the app's own. `too_early`: how often a turn was begun before the utterance was over.
    """

    utterance: str
    from_end_ms: float
    v2v_ms: float
    after_endpoint_ms: float
    endpoint_delay_ms: float
    first_audio_ms: float
    speculation: str
    dropped_starts: int
    reopened: int
    too_early: int

    def as_dict(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)


async def spoken_turn(app: AppProcess, utterance: Utterance, options: Mapping[str, Any] | None = None) -> Spoken:
    """Say `utterance` in a new conversation and wait for the first sound and the turn's figures."""
    token = (await app.ask("open", options=dict(options or {})))["token"]
    try:
        async with connected(app.url, token) as client:
            return await one_turn(client, utterance)
    finally:
        await app.ask("close", token=token)


async def one_turn(client: VoiceClient, utterance: Utterance) -> Spoken:
    """Say `utterance` and wait for the first sound of the answer to all of it; then the answer is stopped."""
    since = len(client.events)
    begun = client.position
    ended_at = await client.speak(utterance.audio)
    whole_ms = (begun + utterance.seconds - SAME_END_S) * 1000

    def answers_all(event: Mapping[str, Any]) -> bool:
        return event["type"] == "turn.started" and (event["speech_end_ms"] or 0) >= whole_ms

    _, started = await client.silence_until(answers_all, since)
    named = started["turn_id"]
    heard_at, _ = await client.silence_until(
        lambda event: SOUND(event) and event["response_id"] == started["response_id"], since
    )
    stopped_at = max(at for at, event in client.events[since:] if STOPPED(event) and at <= heard_at)
    _, told = await client.until(lambda event: event["type"] in PROGRESS and _sounded(event, named), since)
    turn = told["turn"]
    await client.send(type="response.cancel")
    begun_turns = sum(1 for _, event in client.events[since:] if event["type"] == "turn.started")
    return Spoken(
        utterance=utterance.name,
        from_end_ms=(heard_at - ended_at) * 1000,
        v2v_ms=(heard_at - client.sent_at(started["speech_end_ms"] / 1000)) * 1000,
        after_endpoint_ms=(heard_at - stopped_at) * 1000,
        endpoint_delay_ms=turn["metrics"]["endpoint_delay_ms"],
        first_audio_ms=turn["metrics"]["first_audio_ms"],
        speculation=turn["speculation"],
        dropped_starts=turn["dropped_starts"],
        reopened=turn["reopened"],
        too_early=begun_turns - 1,
    )


def _sounded(event: Mapping[str, Any], turn_id: str) -> bool:
    return event["turn"]["id"] == turn_id and event["turn"]["metrics"]["first_audio_ms"] is not None
