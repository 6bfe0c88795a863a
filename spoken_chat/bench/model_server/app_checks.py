"""The app's own side on a server that it starts: launch, warm-up, turns through the pipeline, images, overflow, cancel.

`python -m spoken_chat.bench.model_server.app_checks` starts the server as the app does, waits for the file `go` in its
folder, writes what it found, and serves on until it is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from packaging.version import Version

from spoken_chat.bench.model_server.pictures import parts
from spoken_chat.bench.model_server.probe import Probe
from spoken_chat.bench.model_server.talks import SAID, conversations
from spoken_chat.bench.no_ears import NoEars
from spoken_chat.conversation import ImagePart
from spoken_chat.model_stage import ModelStage
from spoken_chat.persona import load_personas
from spoken_chat.server.recipe import arguments
from spoken_chat.session import ChatSession
from spoken_chat.settings import ROOT, load
from spoken_chat.stage_state import Choice, Progress, StageState
from spoken_chat.stages import Stages
from spoken_chat.turn import Turn, Utterance

REPLY_TOKENS = 24


def main() -> int:
    """Start, wait for `go`, check, serve on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--name", default="recipe")
    parser.add_argument("--model", required=True)
    parser.add_argument("--port", type=int, default=8120)
    parser.add_argument("--arguments", default="")
    parser.add_argument("--out", type=Path, required=True)
    return asyncio.run(_run(parser.parse_args()))


async def _run(parsed: argparse.Namespace) -> int:
    settings = load(
        llm_engine="vllm", vllm_python=sys.executable, vllm_model=parsed.model, vllm_port=parsed.port,
        vllm_arguments=parsed.arguments, vllm_profile="image", llm_max_tokens=REPLY_TOKENS, cache_dir=parsed.folder,
        llm_temperature=0,
    )  # fmt: skip
    personas = load_personas(ROOT / "persona")
    state = StageState()
    stage = ModelStage(settings, Choice("vllm", "to be checked"), state, personas, personas["xiaohe"])
    steps: dict[str, float] = {}
    started = time.monotonic()
    told = asyncio.create_task(_note_steps(state, steps, started))
    try:
        await stage.load()
    finally:
        told.cancel()
        assert stage.vllm is not None
        flags = arguments(stage.vllm.options("image"), Version(importlib.metadata.version("vllm")))[1:]
        server = {"pid": stage.vllm.pid, "port": parsed.port, "model": stage.vllm.served_name, "flags": flags}
        (parsed.folder / f"{parsed.name}.json").write_text(json.dumps(server))
    card = stage.card
    found: dict[str, Any] = {
        "start_s": round(time.monotonic() - started, 1),
        "steps_at_s": steps,
        "state": [state.code, state.detail],
        "facts": asdict(stage.vllm.facts),
        "card": card.as_dict() if card is not None else None,
    }
    parsed.out.write_text(json.dumps(found, ensure_ascii=False, indent=1))
    while not (parsed.folder / "go").exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.2)
    for name, check in (
        ("turns", _turns), ("images", _images), ("five_at_once", _five), ("overflow", _overflow), ("cancel", _cancel)
    ):  # fmt: skip
        try:
            found[name] = await check(stage)
        except Exception as error:  # noqa: BLE001 - the other checks must not be lost
            found[name] = {"failed": repr(error)}
        print(name, json.dumps(found[name], ensure_ascii=False)[:700], flush=True)
        parsed.out.write_text(json.dumps(found, ensure_ascii=False, indent=1))
    await stage.look(1)
    found["card_after"] = stage.card.as_dict() if stage.card is not None else None
    parsed.out.write_text(json.dumps(found, ensure_ascii=False, indent=1))
    await asyncio.Future()
    return 0


async def _note_steps(state: StageState, steps: dict[str, float], started: float) -> None:
    last: Progress | None = None
    while True:
        now = state.progress
        if now is not None and (last is None or now.step != last.step):
            steps[now.step] = round(time.monotonic() - started, 1)
            last = now
        await asyncio.sleep(0.1)


def _session() -> ChatSession:
    persona = load_personas(ROOT / "persona")["xiaohe"]
    return ChatSession(persona, persona.voices[0], budget=11_000)


def _probe(stage: ModelStage) -> Probe:
    assert stage.chat is not None
    return Probe(stage.chat.base_url, stage.chat.name)


async def _say(stage: ModelStage, session: ChatSession, text: str, image: ImagePart | None = None) -> Turn:
    assert stage.chat is not None
    stages = Stages(NoEars(), stage.chat, None)
    turn, events = await session.take(stages, Utterance(text=text, image=image))
    async for _ in events:
        continue
    return turn


def _row(turn: Turn) -> dict[str, Any]:
    record = turn.record()
    figures = {name: record["metrics"][name] for name in ("ttft_ms", "ms_per_token", "prompt_tokens", "cached_tokens")}
    error = record["error"]["code"] if record["error"] else None
    return {**figures, "prefix_missed": record["prefix_missed"], "status": record["status"], "error": error}


async def _turns(stage: ModelStage) -> list[dict[str, Any]]:
    """Conversations as the app has them: after each reply the history is read ahead."""
    rows = []
    assert stage.chat is not None
    for said in conversations():
        session = _session()
        for text in said:
            rows.append(_row(await _say(stage, session, text)))
            persona = session.persona
            await stage.chat.read(session.conversation.messages(persona.prefix, "", None, persona.examples))
    return rows


async def _images(stage: ModelStage) -> list[dict[str, Any]]:
    session = _session()
    rows = [
        _row(await _say(stage, session, "你看，这是什么？", part)) | {"image_tokens": part.tokens} for part in parts()
    ]
    rows.append(_row(await _say(stage, session, "刚才那几张，你喜欢哪一张？")))
    rows.extend([_row(await _say(stage, session, "再看一张。", part)) for part in parts() * 2])
    return rows


async def _five(stage: ModelStage) -> list[dict[str, Any]]:
    sessions = [_session() for _ in range(5)]
    rows = []
    for turn in range(3):
        said = [SAID[turn * 5 + place] for place in range(5)]
        turns = await asyncio.gather(*(_say(stage, one, text) for one, text in zip(sessions, said, strict=True)))
        rows += [_row(one) for one in turns]
    return rows


async def _overflow(stage: ModelStage) -> dict[str, Any]:
    """A conversation of digits, whose tokens are easily underestimated, until it outgrows the window."""
    probe, session = _probe(stage), _session()
    before = await probe.refused()
    session.conversation.budget = 10**6
    rows = [_row(await _say(stage, session, f"{number}" + "31415926" * 400)) for number in range(5)]
    found = {"refused_by_the_server": await probe.refused() - before, "turns": rows}
    await probe.close()
    return found


async def _cancel(stage: ModelStage) -> list[float]:
    probe = _probe(stage)
    session = _session()
    persona, found = session.persona, []
    for text in SAID[:5]:
        freed, running = await probe.freed_after(session.conversation.messages(persona.prefix, text, None))
        if not running:
            raise ValueError("the request was never seen running")
        found.append(round(freed, 1))
    await probe.close()
    return found


if __name__ == "__main__":
    sys.exit(main())
