"""The embedded llama.cpp server as a child process: it answers, it ends with us, it says why it cannot start."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from spoken_chat.errors import ChatError
from spoken_chat.llm import StreamEnd, TextDelta
from spoken_chat.llm.dialect import ModelInfo
from spoken_chat.llm.openai_chat import OpenAIChat
from spoken_chat.server.gguf import model_file
from spoken_chat.server.llama import CONTEXT_TOKENS, LlamaServer
from spoken_chat.settings import ROOT, Settings
from tests.support.processes import runs

pytestmark = pytest.mark.engines

_START_AND_SLEEP = """
import asyncio
from spoken_chat.server.llama import LlamaServer
from spoken_chat.settings import Settings

async def main():
    server = LlamaServer(Settings())
    await server.start()
    print(server.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest_asyncio.fixture
async def server() -> AsyncIterator[LlamaServer]:
    server = LlamaServer(Settings())
    yield server
    await server.stop()


async def until(condition: Callable[[], bool]) -> None:
    """Wait, for a while, until `condition` holds."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 (another process changes it)
            await asyncio.sleep(0.02)


async def test_it_serves_the_packaged_model_and_its_fault_wordings_are_known(server: LlamaServer) -> None:
    chat = OpenAIChat(Settings(llm_max_tokens=4), base_url=await server.start())
    assert server.alive
    assert await server.start() == chat.base_url
    assert await chat.connect() == ModelInfo("SmolLM2-135M-Instruct.Q4_1", CONTEXT_TOKENS, vision=False)

    events = [event async for event in chat.stream([{"role": "user", "content": "Say hello."}])]
    end = events[-1]
    assert any(isinstance(event, TextDelta) for event in events)
    assert isinstance(end, StreamEnd) and end.usage is not None
    assert end.usage.completion_tokens == 4
    assert end.usage.cached_tokens is not None

    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    for content, code in (("word " * 5000, "llm_context_overflow"), ([picture], "llm_no_vision")):
        with pytest.raises(ChatError) as caught:
            async for _ in chat.stream([{"role": "user", "content": content}]):
                pass
        assert caught.value.code == code
    await chat.aclose()

    pid = server.pid
    assert pid is not None
    await server.stop()
    assert not runs(pid)
    assert server.pid is None


async def test_after_a_crash_it_can_be_started_again(server: LlamaServer) -> None:
    await server.start()
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not server.alive)
    chat = OpenAIChat(Settings(), base_url=await server.start())
    assert (await chat.connect()).context_tokens == CONTEXT_TOKENS
    await chat.aclose()


async def test_it_ends_when_the_app_is_killed() -> None:
    app = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _START_AND_SLEEP, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    assert app.stdout is not None
    child = int(await asyncio.wait_for(app.stdout.readline(), 60))
    assert runs(child)
    app.kill()
    await app.wait()
    await until(lambda: not runs(child))


async def test_a_damaged_model_is_told_in_one_sentence(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(model_file(Settings()).read_bytes()[:3_000_000])
    server = LlamaServer(Settings(llm_gguf=str(damaged)))
    with pytest.raises(ChatError) as caught:
        await server.start()
    assert caught.value.code == "llama_start"
    assert "damaged.gguf" in caught.value.message and "incomplete" in caught.value.message
    assert not server.alive


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo 'ggml: failed to allocate buffer of size 9' >&2; exit 1", "not enough memory"),
        ("kill -9 $$", "want of memory"),
        ("echo 'No module named xyz' >&2; exit 3", "status 3 (No module named xyz)"),
        ("exit 4", "status 4"),
    ],
)
async def test_a_child_that_dies_during_the_start_is_noticed(
    command: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{command}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    server = LlamaServer(Settings())
    with pytest.raises(ChatError) as caught:
        await server.start()
    assert caught.value.code == "llama_start" and words in caught.value.message
    assert not server.alive


async def test_a_cancelled_start_leaves_no_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho $$ > {noted}.new; mv {noted}.new {noted}\ncat > /dev/null\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    server = LlamaServer(Settings())
    starting = asyncio.create_task(server.start())
    await until(noted.is_file)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not runs(int(noted.read_text()))
    assert not server.alive
