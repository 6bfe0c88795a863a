"""`vllm`: print the command that serves the model with the recipe, or run it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import suppress

from spoken_chat.errors import ChatError
from spoken_chat.server.installed import default_profile, find_vllm, gpus
from spoken_chat.server.recipe import CHECKPOINTS, TEXT_ONLY_BELOW_GIB, cautions, parse_version, printed
from spoken_chat.server.vllm import VllmServer
from spoken_chat.settings import Settings
from spoken_chat.stage_state import Progress
from spoken_chat.ui.status import progress_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--print", action="store_true", help="print the command and the reason of every flag")
    parser.add_argument("--version", metavar="VERSION", help="print it for this vLLM (default: the installed one)")
    parser.add_argument("--checkpoints", action="store_true", help="list the checkpoints known by name")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the command, or serve until told to stop. Raises ChatError."""
    if arguments.checkpoints:
        for one in CHECKPOINTS:
            print(f"{one.name:<12} {one.repository}\n{'':<12} about {one.weights_gib:g} GiB (estimated); {one.what}")
        return 0
    if arguments.print or arguments.version:
        return _print(arguments.version, settings)
    with suppress(KeyboardInterrupt):
        return asyncio.run(_serve(settings))
    return 130


def _print(version: str | None, settings: Settings) -> int:
    found = find_vllm(settings.vllm_python) if version is None else None
    if version is None and found is None:
        raise ChatError(
            "vllm_missing", "There is no vLLM here; name the version to print the command for with --version, as 0.31."
        )
    wanted = found.version if found is not None else parse_version(version or "")
    profile = settings.vllm_profile
    if profile == "auto":
        cards = gpus()
        profile = default_profile(cards, TEXT_ONLY_BELOW_GIB) if cards else "image"
    options = VllmServer(settings).options(profile)
    print(printed(options, wanted))
    for sentence in cautions(options, wanted):
        print(sentence, file=sys.stderr)
    return 0


async def _serve(settings: Settings) -> int:
    server = VllmServer(settings, _Teller().tell)
    try:
        base_url = await server.start()
        if server.reused:
            print(f"{server.served_name} is served already on {base_url}.")
            return 0
        for sentence in server.cautions:
            print(sentence, file=sys.stderr)
        print(
            f"{server.served_name} is served on {base_url}; its log is {server.log_path}. Ctrl-C ends it.", flush=True
        )
        raise await server.ended()
    finally:
        await server.stop()


class _Teller:
    """Prints each step of the start once."""

    def __init__(self) -> None:
        self._step = ""

    def tell(self, progress: Progress) -> None:
        if progress.step != self._step:
            self._step = progress.step
            print(progress_text(progress, "en"), flush=True)
