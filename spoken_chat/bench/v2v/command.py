"""`python -m spoken_chat bench v2v`: its parts one after the other, and one report."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any, Final

from spoken_chat.bench.report import Target, add_json_argument, write_json
from spoken_chat.bench.v2v import barge_in, detector, embedded, gpu_delays
from spoken_chat.bench.v2v.utterances import LEAST, Utterance, utterances
from spoken_chat.errors import ChatError
from spoken_chat.settings import Settings

PARTS: Final = ("embedded", "speculation", "added", "barge-in", "detector")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's own options."""
    parser.add_argument("--repeats", type=int, default=2, metavar="N", help="runs of each utterance (default: 2)")
    parser.add_argument(
        "--parts", default=",".join(PARTS), metavar="A,B", help=f"which parts (default: all of {', '.join(PARTS)})"
    )
    parser.add_argument(
        "--utterances", type=int, default=LEAST, metavar="N", help=f"how many utterances (default: {LEAST})"
    )
    add_json_argument(parser)


def parts_of(text: str) -> list[str]:
    """The parts that `text` names, in the order they run. Raises ChatError for an unknown one."""
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [part for part in wanted if part not in PARTS]
    if unknown or not wanted:
        raise ChatError(
            "bench_part", f"There is no part {', '.join(unknown) or text!r}; choose from {', '.join(PARTS)}."
        )
    return [part for part in PARTS if part in wanted]


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Measure, print and write; 1 when a target was missed. Raises ChatError."""
    if arguments.repeats < 1 or arguments.utterances < 2:
        raise ChatError("bench_repeats", "Give at least 1 for --repeats and 2 for --utterances.")
    parts = parts_of(arguments.parts)
    said = utterances(settings, arguments.utterances)
    results: dict[str, Any] = {}
    targets: list[Target] = []
    for part in parts:
        print(f"\n{part}")
        text, met, data = asyncio.run(_measure(part, said, arguments.repeats))
        print("\n".join([text, *(target.line() for target in met)]), flush=True)
        targets += met
        results[part] = data
    write_json(arguments.json, results, targets)
    return 0 if all(target.met for target in targets) else 1


async def _measure(part: str, said: list[Utterance], repeats: int) -> tuple[str, list[Target], Any]:
    match part:
        case "embedded":
            found, lags = await embedded.measure(said, repeats)
            own = await embedded.with_embedded_model(said)
            return *embedded.report(found, lags, own), embedded.as_data(found, own)
        case "speculation":
            text, met, turns = await gpu_delays.speculation(said, repeats)
            return text, met, [turn.as_dict() for turn in turns]
        case "added":
            alone = await gpu_delays.added(said, 1)
            together = await gpu_delays.added(said, 5)
            return f"{alone[0]}\n{together[0]}", [*alone[1], *together[1]], {"1": alone[2], "5": together[2]}
        case "barge-in":
            interruptions, stopped, tried = await barge_in.measure(said, repeats)
            data = barge_in.as_data(interruptions, stopped, tried)
            return *barge_in.report(interruptions, stopped, tried), data
        case _:
            times = detector.measure(said)
            return *detector.report(times), times
