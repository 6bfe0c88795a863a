"""A person with a page open over scripted engines."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from spoken_chat.audio.pcm import wav_bytes
from spoken_chat.settings import load
from spoken_chat.talk.registry import TalkRegistry
from spoken_chat.ui import handlers as page_handlers
from spoken_chat.ui.handlers import Handlers
from tests.support.app import ScriptedEngines
from tests.support.engines import ScriptedModel, ScriptedRecognizer, ScriptedSynthesizer
from tests.support.loading import bare_environment
from tests.support.visitor import Visitor, visit

REPLY = ["One sentence here. ", "Another sentence there."]


@pytest.fixture
def no_browser_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    bare_environment(monkeypatch)
    monkeypatch.setattr(page_handlers, "BROWSER_WORD_S", 0.001)


@pytest.fixture
async def engines() -> AsyncIterator[ScriptedEngines]:
    engines = ScriptedEngines(load())
    engines.ears = ScriptedRecognizer(text="what is your name", delay=0.01)
    engines.brain = ScriptedModel(time.monotonic, REPLY, first=0.0, gap=0.0)
    engines.mouth = ScriptedSynthesizer(delay=0.0, name="kokoro")
    await engines.load()
    yield engines
    await engines.close()


@pytest.fixture
async def handlers(engines: ScriptedEngines) -> AsyncIterator[Handlers]:
    registry = TalkRegistry(engines)
    yield Handlers(registry)
    await registry.close()


@pytest.fixture
async def visitor(handlers: Handlers) -> Visitor:
    return await visit(handlers)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "speech.wav"
    path.write_bytes(wav_bytes((np.sin(np.arange(32_000) * 0.1) * 9000).astype(np.int16), 16_000))
    return path
