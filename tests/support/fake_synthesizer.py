"""A voice engine that follows a script: what it says, when, and how it fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

import numpy as np

from spoken_chat.errors import ChatError
from spoken_chat.tts import SpeechChunk, SpeechEvent, SpeechRequest
from spoken_chat.tts.interruption import SpeechInterrupted


@dataclass(frozen=True)
class Script:
    """One clause: a chunk after each of `delays` seconds; then, `fails_after` seconds later, a fault if there is one.

    With `remaining` the fault is a SpeechInterrupted that leaves this text; `bug` is raised in its place.
    """

    delays: Sequence[float] = (0.1, 0.1)
    fails_after: float | None = None
    remaining: str | None = None
    bug: Exception | None = None


@dataclass
class Spoken:
    """One clause as it was asked for: when it began and how it ended (`done`, `failed`, `closed`, or None yet)."""

    text: str
    at: float
    outcome: str | None = None
    chunks: int = 0


class FakeSynthesizer:
    """Follows `scripts`, one a clause, then `default`. `spoken` records every clause."""

    def __init__(self, name: str, *scripts: Script, default: Script | None = None, parallel: int = 1) -> None:
        self.spoken: list[Spoken] = []
        self.default = default or Script()
        self.loads = 0
        self.load_fault: ChatError | None = None
        self._name = name
        self._parallel = parallel
        self._scripts = list(scripts)

    @property
    def name(self) -> str:
        return self._name

    @property
    def parallel(self) -> int:
        return self._parallel

    @property
    def texts(self) -> list[str]:
        """What it was asked to say."""
        return [clause.text for clause in self.spoken]

    def load(self) -> None:
        self.loads += 1
        if self.load_fault is not None:
            raise self.load_fault

    def close(self) -> None:
        """Nothing to close."""

    async def synthesize(self, request: SpeechRequest) -> AsyncGenerator[SpeechEvent, None]:
        script = self._scripts.pop(0) if self._scripts else self.default
        clause = Spoken(request.text, asyncio.get_running_loop().time())
        self.spoken.append(clause)
        try:
            for delay in script.delays:
                await asyncio.sleep(delay)
                clause.chunks += 1
                yield SpeechChunk(np.ones(240, dtype=np.int16), self._name)
            if script.fails_after is not None:
                await asyncio.sleep(script.fails_after)
                clause.outcome = "failed"
                if script.bug is not None:
                    raise script.bug
                message = f"{self._name} broke."
                if script.remaining is None:
                    raise ChatError("broken", message)
                raise SpeechInterrupted("broken", message, script.remaining)
            clause.outcome = "done"
        finally:
            clause.outcome = clause.outcome or "closed"
