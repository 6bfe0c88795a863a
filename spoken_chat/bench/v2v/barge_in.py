"""Speech over a reply that plays: how soon it is turned down, silenced, and its upstream request closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from spoken_chat.bench.report import Target, at_most, median
from spoken_chat.bench.v2v.app_process import AppProcess
from spoken_chat.bench.v2v.client import VoiceClient, connected, of_type
from spoken_chat.bench.v2v.gpu_delays import shortest
from spoken_chat.bench.v2v.scripted import Delays
from spoken_chat.bench.v2v.turns import SOUND
from spoken_chat.bench.v2v.utterances import Utterance

LONG_REPLY: Final = Delays(asr=0.06, ttft=0.06, token=0.02, tts=0.08, voice_s=6.0, tokens=3000)
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
    async with AppProcess({}, LONG_REPLY) as app:
        for number in range(repeats * 5):
            question, words = speech[0], speech[1 + number % (len(speech) - 1)]
            found.append(await _over(app, question, words))
            sound = Utterance("mhm", words.audio[: round(MHM_S * 16_000)])
            await app.ask("heard", text="Mhm.")
            short = await _over(app, question, sound, meant=False)
            await app.ask("heard", text="what is it like")
            tried += 1
            stopped += short.flush_ms is not None
            print(".", end="", flush=True)
    print()
    return found, stopped, tried


async def _over(app: AppProcess, question: Utterance, words: Utterance, *, meant: bool = True) -> Interruption:
    token = (await app.ask("open", options=OPTIONS))["token"]
    async with connected(app.url, token) as client:
        await client.speak(question.audio)
        await client.silence_until(SOUND, 0)
        await client.speak(words.audio[:0], then_silence=PLAYS_S)
        since = len(client.events)
        before = len((await app.ask("closed"))["at"])
        result = await _interrupt(client, words, since, meant)
        if result.flush_ms is not None:
            closed = (await app.ask("closed"))["at"][before:]
            flushed_at = next(at for at, event in client.events[since:] if CLEARED(event))
            close_ms = max(0.0, (min(closed) - flushed_at) * 1000) if closed else None
            result = Interruption(result.duck_ms, result.flush_ms, close_ms)
    await app.ask("close", token=token)
    return result


async def _interrupt(client: VoiceClient, words: Utterance, since: int, meant: bool) -> Interruption:
    ended_at = await client.speak(words.audio, then_silence=0.8)
    began_at = ended_at - words.seconds
    if meant:
        await client.until(DUCK, since)
    ducks = [at for at, event in client.events[since:] if DUCK(event)]
    flushes = [at for at, event in client.events[since:] if CLEARED(event)]
    if meant and not flushes:
        flushes = [(await client.until(CLEARED, since))[0]]
    flush_ms = (flushes[0] - began_at) * 1000 if flushes else None
    return Interruption((ducks[0] - began_at) * 1000 if ducks else None, flush_ms, None)


def report(found: Sequence[Interruption], stopped: int, tried: int) -> tuple[str, list[Target]]:
    """The lines and the targets."""
    duck = median([one.duck_ms for one in found if one.duck_ms is not None])
    flush = median([one.flush_ms for one in found if one.flush_ms is not None])
    closes = [one.close_ms for one in found if one.close_ms is not None]
    lines = [
        f"barge-in, from the first voiced frame, n = {duck.n}: turned down after {duck.value:.0f} ms ({duck.low:.0f} "
        f"to {duck.high:.0f}), silent and flushed after {flush.value:.0f} ms ({flush.low:.0f} to {flush.high:.0f})",
        f"a listener's short sound stopped the reply {stopped} of {tried} times",
    ]
    targets = [
        at_most(f"turned down within {DUCK_MS:.0f} ms", duck.value, DUCK_MS, "ms"),
        at_most("replies stopped by a short sound", float(stopped), 0.0),
    ]
    if closes:
        name = f"upstream closed within {CLOSE_MS:.0f} ms of the flush (worst of {len(closes)})"
        targets.append(at_most(name, max(closes), CLOSE_MS, "ms"))
    return "\n".join(lines), targets


def as_data(found: Sequence[Interruption], stopped: int, tried: int) -> dict[str, Any]:
    """Every figure, for the JSON report."""
    return {"interruptions": [vars(one) for one in found], "short_sounds": tried, "short_sounds_that_stopped": stopped}
