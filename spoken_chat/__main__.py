"""The command line: `python -m spoken_chat turn|vllm|bench|doctor`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from typing import Any

from spoken_chat import settings as knobs
from spoken_chat.bench import asr as bench_asr
from spoken_chat.bench import overhead as bench_overhead
from spoken_chat.bench.v2v import command as bench_v2v
from spoken_chat.commands import doctor, turn, vllm
from spoken_chat.errors import ChatError
from spoken_chat.settings import Settings

Run = Callable[[argparse.Namespace, Settings], int]


def build_parser() -> argparse.ArgumentParser:
    """The parser of every command; each takes every setting."""
    parser = knobs.OneLineParser(prog="python -m spoken_chat", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _command(commands, "turn", "run one turn and print it", turn.add_arguments, turn.run)
    _command(
        commands, "doctor", "say what is installed and which engines would be used", doctor.add_arguments, doctor.run
    )
    _command(commands, "vllm", "serve the model with vLLM, or print how", vllm.add_arguments, vllm.run)
    bench = commands.add_parser("bench", help="measure", description="Measure; figures are ratios from one run.")
    benches = bench.add_subparsers(required=True, metavar="BENCH")
    _command(benches, "asr", "the short-window recogniser against transcribe()", bench_asr.add_arguments, bench_asr.run)
    _command(
        benches, "overhead", "what we add to a server's own times", bench_overhead.add_arguments, bench_overhead.run
    )
    _command(benches, "v2v", "how soon the answer to speech is heard", bench_v2v.add_arguments, bench_v2v.run)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit status, or 2 with one sentence on stderr."""
    parsed = build_parser().parse_args(arguments)
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    try:
        run: Run = parsed.run
        return run(parsed, knobs.from_arguments(parsed))
    except ChatError as error:
        print(error.message, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _command(
    commands: argparse._SubParsersAction[Any],
    name: str,
    summary: str,
    add_arguments: Callable[[argparse.ArgumentParser], None],
    run: Run,
) -> None:
    parser = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    add_arguments(parser)
    knobs.add_arguments(parser)
    parser.set_defaults(run=run)


if __name__ == "__main__":
    sys.exit(main())
