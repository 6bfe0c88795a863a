"""Speech over a reply that plays: how soon it is turned down, silenced, and its upstream request closed."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spoken_chat.bench.report import Target, at_most, spread
from spoken_chat.bench.scripted_server import MODEL, Schedule, ServerProcess
from spoken_chat.bench.v2v.app_process import AppProcess
from spoken_chat.bench.v2v.client import Event, VoiceClient, connected, of_type
from spoken_chat.bench.v2v.gpu_delays import shortest
from spoken_chat.bench.v2v.scripted import Delays
from spoken_chat.bench.v2v.turns import SOUND
from spoken_chat.bench.v2v.utterances import Utterance

ENGINES: Final = Delays(asr=0.06, tts=0.08, voice_s=6.0)
LONG_REPLY: Final = Schedule(
    tokens=500, first_ms=60, step_ms=20, text="That sounds lovely. Tell me a little more about it. "
)
"""Of the model server: it is still being sent when somebody speaks over it."""
PLAYS_S: Final = 1.5
"""How much of the reply is heard before somebody speaks over it: past the time of reopening."""
DUCK_MS: Final = 150.0
CLOSE_MS: Final = 100.0
MHM_S: Final = 0.25
OPTIONS: Final = {"reopen_within": 0.5}
DUCK = of_type("reply.duck")
CLEARED = of_type("output_audio_buffer.cleared")


@dataclass(frozen=True)
class Interruption:
    """Milliseconds from the first voiced frame sent; `close_ms` from the flush. None: it did not happen."""

    duck_ms: float | None
    flush_ms: float | None
    close_ms: float | None


async def measure(utterances: Sequence[Utterance], repeats: int) -> tuple[list[Interruption], int, int]:
    """Interruptions, and of how many short listener's sounds how many stopped the reply."""
    found: list[Interruption] = []
    stopped = tried = 0
    speech = shortest(utterances)
    with ServerProcess(LONG_REPLY) as base_url:
        async with AppProcess({"llm_base_url": base_url, "llm_model": MODEL}, ENGINES) as app:
            for number in range(repeats * 5):
                question, words = speech[0], speech[1 + number % (len(speech) - 1)]
                found.append(await _over(app, base_url, question, words))
                sound = Utterance("mhm", words.audio[: round(MHM_S * 16_000)])
                await app.ask("heard", text="Mhm.")
                short = await _over(app, base_url, question, sound, meant=False)
                await app.ask("heard", text="what is it like")
                tried += 1
                stopped += short.flush_ms is not None
                print(".", end="", flush=True)
    print()
    return found, stopped, tried


async def _over(
    app: AppProcess, base_url: str, question: Utterance, words: Utterance, *, meant: bool = True
) -> Interruption:
    token = (await app.ask("open", options=OPTIONS))["token"]
    async with connected(app.url, token) as client:
        await client.speak(question.audio)
        await client.silence_until(SOUND, 0)
        await client.speak(words.audio[:0], then_silence=PLAYS_S)
        since = len(client.events)
        began_at = await client.speak(words.audio, then_silence=0.8) - words.seconds
        if meant:
            await client.until(CLEARED, since)
        ducked_at = _first(client, DUCK, since)
        flushed_at = _first(client, CLEARED, since)
        lost = await asyncio.to_thread(_lost, base_url) if flushed_at is not None else []
    await app.ask("close", token=token)
    return interruption(began_at, ducked_at, flushed_at, lost)


def _first(client: VoiceClient, wanted: Callable[[Event], bool], since: int) -> float | None:
    return next((at for at, event in client.events[since:] if wanted(event)), None)


def _lost(base_url: str) -> list[tuple[float, float]]:
    with urllib.request.urlopen(f"{base_url}/lost") as answer:
        return [(received, lost) for received, lost in json.load(answer)]


def interruption(
    began_at: float, ducked_at: float | None, flushed_at: float | None, lost: Sequence[tuple[float, float]]
) -> Interruption:
    """What became of speech that began at `began_at`; `lost`: when the model server's requests came and were closed.

    The reply's own request is the one that came before the speech began and was closed after.
    """
    closed = [closed_at for received_at, closed_at in lost if received_at < began_at < closed_at]
    return Interruption(
        None if ducked_at is None else (ducked_at - began_at) * 1000,
        None if flushed_at is None else (flushed_at - began_at) * 1000,
        None if flushed_at is None or not closed else max(0.0, (max(closed) - flushed_at) * 1000),
    )


def report(found: Sequence[Interruption], stopped: int, tried: int) -> tuple[str, list[Target]]:
    """The lines and the targets, which are about the slowest interruption."""
    ducks, flushes, closes = ([getattr(one, name) for one in found] for name in ("duck_ms", "flush_ms", "close_ms"))
    lines = [
        f"barge-in, from the first voiced frame: turned down after {spread(_known(ducks))}, "
        f"silent and flushed after {spread(_known(flushes))}; the model's request was closed within "
        f"{spread(_known(closes), 2)} of that",
        f"a listener's short sound stopped the reply {stopped} of {tried} times",
    ]
    return "\n".join(lines), [
        at_most(f"turned down within {DUCK_MS:.0f} ms (slowest of {len(ducks)})", _slowest(ducks), DUCK_MS, "ms"),
        at_most("replies stopped by a short sound", float(stopped) if tried else None, 0.0),
        at_most(
            f"upstream closed within {CLOSE_MS:.0f} ms of the flush (slowest of {len(closes)})",
            _slowest(closes),
            CLOSE_MS,
            "ms",
        ),
    ]


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _slowest(values: Sequence[float | None]) -> float | None:
    """The slowest; None when one of them never happened."""
    known = _known(values)
    return max(known) if known and len(known) == len(values) else None


def as_data(found: Sequence[Interruption], stopped: int, tried: int) -> dict[str, Any]:
    """Every figure, for the JSON report."""
    return {"interruptions": [vars(one) for one in found], "short_sounds": tried, "short_sounds_that_stopped": stopped}
