"""Engines whose recogniser and voice are scripted down to how their loading goes; the model's side stays real."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from spoken_chat import engines as chosen
from spoken_chat.engines import Engines
from spoken_chat.settings import load
from tests.support.engines import ScriptedRecognizer, ScriptedSynthesizer
from tests.support.waiting import WAIT_S


@dataclass
class Loading:
    """How loading goes: it waits for `gate`, then raises `fault` if there is one."""

    gate: threading.Event = field(default_factory=threading.Event)
    fault: Exception | None = None
    began: threading.Event = field(default_factory=threading.Event)
    closed: int = 0

    def go(self) -> None:
        """Load; blocks."""
        self.began.set()
        assert self.gate.wait(WAIT_S)
        if self.fault is not None:
            raise self.fault


class LoadedRecognizer(ScriptedRecognizer):
    """A scripted recogniser that loads as `loading` says."""

    def __init__(self, loading: Loading) -> None:
        super().__init__()
        self.loading = loading

    def load(self) -> None:
        self.loading.go()

    def close(self) -> None:
        self.loading.closed += 1


class LoadedSynthesizer(ScriptedSynthesizer):
    """A scripted voice that loads as `loading` says."""

    def __init__(self, loading: Loading) -> None:
        super().__init__(delay=0.0)
        self.loading = loading

    def load(self) -> None:
        self.loading.go()

    def close(self) -> None:
        self.loading.closed += 1


@dataclass
class Scripts:
    """The scripted engines that the registries give out, and how each of them loads."""

    asr: Loading
    tts: Loading
    mouth: LoadedSynthesizer


def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every setting of ours out of the environment."""
    for name in [name for name in os.environ if name.startswith("SPOKEN_CHAT_")]:
        monkeypatch.delenv(name)


def script_registries(monkeypatch: pytest.MonkeyPatch) -> Scripts:
    """Put a scripted recogniser and voice into the registries; their gates are open."""
    asr, tts = Loading(), Loading()
    asr.gate.set()
    tts.gate.set()
    ears, mouth = LoadedRecognizer(asr), LoadedSynthesizer(tts)
    monkeypatch.setitem(chosen.ASR_ENGINES, "faster-whisper", lambda _: ears)
    monkeypatch.setitem(chosen.TTS_ENGINES, "kokoro", lambda _settings, _languages: mouth)
    return Scripts(asr, tts, mouth)


@asynccontextmanager
async def running(**settings: object) -> AsyncIterator[Engines]:
    """Engines with the scripted voice, closed afterwards."""
    engines = Engines(load(tts_engine="kokoro", **settings))
    try:
        yield engines
    finally:
        await engines.close()
