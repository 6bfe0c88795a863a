"""`turn FILE_OR_TEXT`: one turn without a browser."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from spoken_chat.audio import TTS_RATE, Pcm16
from spoken_chat.audio.pcm import wav_bytes
from spoken_chat.engines import STAGES, Engines, StageName
from spoken_chat.errors import ChatError
from spoken_chat.events import AudioOut, Notice
from spoken_chat.intake import check_text, read_image, read_speech
from spoken_chat.session import ChatSession
from spoken_chat.settings import Settings
from spoken_chat.timeline import figure_text
from spoken_chat.turn import Turn, Utterance

AUDIO_SUFFIXES = frozenset({".wav", ".mp3", ".flac", ".m4a", ".aac", ".ogg", ".opus", ".webm", ".mp4"})

LONGEST_PATH = 1000
"""Longer words are not looked up as a file: the system would refuse the name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("utterance", metavar="FILE_OR_TEXT", help="an audio file, or the words themselves")
    parser.add_argument("--image", type=Path, metavar="FILE", help="an image to send along")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the reply's sound to this WAV file")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Run the turn and print it. Raises ChatError when it failed."""
    if arguments.out is not None and not arguments.out.absolute().parent.is_dir():
        raise ChatError("cannot_write", f"There is no folder {arguments.out.absolute().parent} to write the sound to.")
    turn, sound = asyncio.run(_run(arguments, settings))
    if arguments.out is not None:
        _write_sound(arguments.out, sound)
    record = turn.record()
    if turn.error is None or turn.reply:
        if arguments.json:
            print(json.dumps(record, ensure_ascii=False))
        else:
            _print(record)
    if turn.error is not None:
        raise turn.error
    return 0


async def _run(arguments: argparse.Namespace, settings: Settings) -> tuple[Turn, Pcm16]:
    utterance = _utterance(arguments, settings)
    engines = Engines(settings)
    stages: list[StageName] = [name for name in STAGES if name != "asr" or utterance.audio is not None]
    try:
        await engines.load(stages)
        for name in stages:
            if engines.states[name].status == "ready" and engines.states[name].detail:
                print(engines.states[name].detail, file=sys.stderr)
        session = ChatSession(engines.opening_persona, engines.opening_voice, engines.token_budget)
        turn, events = await session.take(await engines.stages(stages), utterance)
        sound: list[Pcm16] = []
        async for event in events:
            if isinstance(event, AudioOut):
                sound.append(event.pcm)
            elif isinstance(event, Notice):
                print(event.message, file=sys.stderr)
        return turn, np.concatenate(sound) if sound else np.zeros(0, np.int16)
    finally:
        await engines.close()


def _utterance(arguments: argparse.Namespace, settings: Settings) -> Utterance:
    image = read_image(arguments.image, settings) if arguments.image is not None else None
    given = str(arguments.utterance)
    path = Path(given)
    if len(given) < LONGEST_PATH and path.is_file():
        return Utterance(audio=read_speech(path, settings), image=image)
    if not given.strip() and image is None:
        raise ChatError("nothing_said", "There is nothing to send; give an audio file, words or an image.")
    if given.strip() and len(given) < LONGEST_PATH and path.is_dir():
        raise ChatError("no_such_file", f"{given} is a folder; give the path of an audio file, or plain words.")
    if path.suffix.lower() in AUDIO_SUFFIXES and " " not in given:
        raise ChatError("no_such_file", f"There is no file {given}; give the path of an audio file, or plain words.")
    return Utterance(text=check_text(given, settings), image=image)


def _write_sound(path: Path, sound: Pcm16) -> None:
    try:
        path.write_bytes(wav_bytes(sound, TTS_RATE))
    except OSError as error:
        raise ChatError(
            "cannot_write", f"The reply's sound could not be written to {path}: {error.strerror}."
        ) from None


def _print(record: dict[str, Any]) -> None:
    print(f"you    {record['transcript']}")
    mood = f"[{record['mood']}] " if record["mood"] else ""
    print(f"reply  {mood}{record['reply'].strip()}")
    print("engines  " + ", ".join(f"{stage} {name}" for stage, name in record["engines"].items() if name))
    for name, value in record["metrics"].items():
        print(f"  {name:<20}{figure_text(name, value):>10}")
    print("marks (ms)")
    for name, value in record["marks"].items():
        print(f"  {name:<20}{value:>10}")
