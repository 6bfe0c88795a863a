"""Against the simple pipeline, on the embedded speech recognition and voice."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from spoken_chat.bench.report import Target, at_least, at_most, median, middle, spread, table
from spoken_chat.bench.scripted_server import MODEL, Schedule, ServerProcess
from spoken_chat.bench.v2v.app_process import AppProcess
from spoken_chat.bench.v2v.turns import Spoken, spoken_turn
from spoken_chat.bench.v2v.utterances import Utterance
from spoken_chat.talk.options import WORK_AFTER_S
from spoken_chat.timeline import percentile

REPLY: Final = "That sounds lovely, and I would be glad to help. Tell me a little more about what you have in mind."
TOKENS: Final = len(REPLY.split())
TOKEN_MS: Final = 10.0
RATIO: Final = 0.4
SAVED: Final = 80.0
MISS_COST: Final = 1.1
LAG_MS: Final = 20.0
PAUSE_S: Final = 0.25
"""A pause inside the utterance, long enough for work to begin in it and too short to end the turn."""
REST_S: Final = 0.7
"""Between two measurements, so that what the one left to do does not slow the other."""


@dataclass(frozen=True)
class Compared:
    """One utterance, each way in the same minute. `simple_ms`: from the end of the recording to the whole sound."""

    simple_ms: float
    ours: Spoken
    without: Spoken
    paused: Spoken

    @property
    def saved_percent(self) -> float | None:
        """How much of the window between the start of the work and the endpoint speculation took off V2V; hits only.

        Each side's V2V without its own endpoint delay, since the two delays differ by the detector's chunks.
        """
        window = self.ours.endpoint_delay_ms - WORK_AFTER_S * 1000
        if self.ours.speculation != "hit" or window <= 0:
            return None
        after = self.ours.v2v_ms - self.ours.endpoint_delay_ms
        return 100 * (self.without.v2v_ms - self.without.endpoint_delay_ms - after) / window


async def measure(utterances: Sequence[Utterance], repeats: int) -> tuple[list[Compared], list[float]]:
    """Every utterance `repeats` times, the ways interleaved; and the event loop's lags in ms while our stages ran."""
    schedule = Schedule(tokens=TOKENS, first_ms=TOKEN_MS, step_ms=TOKEN_MS, text=REPLY)
    found: list[Compared] = []
    with ServerProcess(schedule) as base_url, tempfile.TemporaryDirectory() as folder:
        settings = {"llm_base_url": base_url, "llm_model": MODEL, "tts_engine": "kokoro", "persona": "robin"}
        async with AppProcess(settings) as app:
            await _one(app, utterances[0], Path(folder))  # the first of everything is slower
            await app.ask("lag")
            for _ in range(repeats):
                for utterance in utterances:
                    found.append(await _one(app, utterance, Path(folder)))
                    print(".", end="", flush=True)
            lags = (await app.ask("lagged"))["ms"]
    print()
    return found, lags


async def _one(app: AppProcess, utterance: Utterance, folder: Path) -> Compared:
    simple_s = await app.simple(utterance.audio, folder)
    await asyncio.sleep(REST_S)
    ours = await spoken_turn(app, utterance)
    await asyncio.sleep(REST_S)
    without = await spoken_turn(app, utterance, {"speculation": False})
    await asyncio.sleep(REST_S)
    paused = await spoken_turn(app, utterance.with_pause(PAUSE_S))
    await asyncio.sleep(REST_S)
    return Compared(simple_s * 1000, ours, without, paused)


async def with_embedded_model(utterances: Sequence[Utterance]) -> list[Spoken]:
    """Each utterance once with the embedded language model too."""
    async with AppProcess({"tts_engine": "kokoro", "persona": "robin"}) as app:
        found = []
        for utterance in utterances:
            found.append(await spoken_turn(app, utterance))
            await asyncio.sleep(REST_S)
        return found


def report(found: Sequence[Compared], lags: Sequence[float], embedded: Sequence[Spoken]) -> tuple[str, list[Target]]:
    """The table and the targets."""
    rows: list[list[object]] = [
        [one.ours.utterance, one.simple_ms, one.ours.from_end_ms, one.ours.from_end_ms / one.simple_ms,
         one.ours.endpoint_delay_ms, one.without.from_end_ms, one.ours.speculation, one.ours.dropped_starts]
        for one in found
    ]  # fmt: skip
    lines = [
        table(["utterance", "simple ms", "ours ms", "ratio", "endpoint ms", "no speculation ms", "", "dropped"], rows)
    ]
    simple, ours = median([one.simple_ms for one in found]), median([one.ours.from_end_ms for one in found])
    without = median([one.without.from_end_ms for one in found])
    lines.append(
        f"medians, n = {ours.n}: simple {simple.value:.0f} ms, ours {ours.value:.0f} ms, "
        f"without speculation {without.value:.0f} ms"
    )
    lines.append(f"with the embedded language model: {spread([one.from_end_ms for one in embedded])}")
    targets = [at_most(f"V2V at most {RATIO} of the simple pipeline's", ours.value / simple.value, RATIO)]
    saved = [share for one in found if (share := one.saved_percent) is not None]
    name = f"share of the window saved on hits (n = {len(saved)}) at least {SAVED:.0f} %"
    targets.append(at_least(name, middle(saved), SAVED, "%"))
    missed = [one for one in found if one.paused.dropped_starts > one.ours.dropped_starts and not one.paused.reopened]
    cost = middle([one.paused.v2v_ms / one.ours.v2v_ms for one in missed])
    targets.append(at_most(f"V2V after a miss (n = {len(missed)}) at most {MISS_COST} of one without", cost, MISS_COST))
    name = f"event-loop lag p99 under {LAG_MS:.0f} ms while recognition or synthesis runs (n = {len(lags)})"
    targets.append(at_most(name, percentile(list(lags), 0.99), LAG_MS, "ms"))
    return "\n".join(lines), targets


def as_data(found: Sequence[Compared], embedded: Sequence[Spoken]) -> dict[str, Any]:
    """Every figure, for the JSON report."""
    return {"compared": [asdict(one) for one in found], "embedded_model": [one.as_dict() for one in embedded]}
