"""The launcher of vLLM: it finds, starts, watches and ends one, and says in one sentence why it cannot."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from spoken_chat.bench.scripted_server import ScriptedServer, model_list
from spoken_chat.errors import ChatError
from spoken_chat.server.vllm import DUMMY, LOGS_KEPT, VllmServer
from spoken_chat.settings import ROOT, Settings, load
from spoken_chat.stage_state import Progress
from tests.support.fake_vllm import STARTED, FakeVllm
from tests.support.processes import runs
from tests.support.waiting import until

_START_AND_SLEEP = """
import asyncio, sys
from spoken_chat.server.vllm import VllmServer
from spoken_chat.settings import load

async def main():
    server = VllmServer(load(vllm_python=sys.argv[1], vllm_port=int(sys.argv[2]), cache_dir=sys.argv[3]))
    await server.start()
    print("up", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture
def fake(tmp_path: Path) -> FakeVllm:
    return FakeVllm(tmp_path / "python")


@pytest.fixture
def settings(tmp_path: Path, fake: FakeVllm, unused_tcp_port: int) -> Settings:
    return load(vllm_python=str(fake.python), vllm_port=unused_tcp_port, cache_dir=tmp_path / "cache")


@pytest.fixture
async def servers() -> AsyncIterator[list[VllmServer]]:
    started: list[VllmServer] = []
    yield started
    for one in started:
        await one.stop()


def changed(settings: Settings, **given: Any) -> Settings:
    return settings.model_copy(update=given)


async def test_it_starts_with_the_recipe_tells_each_step_and_answers(
    settings: Settings, fake: FakeVllm, servers: list[VllmServer]
) -> None:
    told: list[Progress] = []
    server = VllmServer(settings, told.append)
    servers.append(server)
    assert await server.start() == f"http://127.0.0.1:{settings.vllm_port}/v1"
    (call,) = fake.calls
    assert call[:3] == ["-m", "vllm.entrypoints.openai.api_server", "--model"] and "LowLatency" in call[3]
    assert "--enable-prefix-caching" in call and "--language-model-only" in call, "text alone without a large card"
    assert told[0].step == "starting" and told[-1].step == "serving"
    assert told[-1].expected_s is None, "the first start ever"
    assert (server.facts.weights_gib, server.facts.kv_tokens, server.facts.block_tokens) == (18.6, 113_981, 544)
    assert STARTED[0] in server.log_path.read_text()


async def test_the_next_start_says_how_long_the_last_one_took(settings: Settings, servers: list[VllmServer]) -> None:
    for expected in (False, True):
        told: list[Progress] = []
        server = VllmServer(settings, told.append)
        servers.append(server)
        await server.start()
        assert (told[0].expected_s is not None) is expected
        await server.stop()


async def test_a_server_that_serves_the_model_already_is_used_and_left_running(
    settings: Settings, fake: FakeVllm, servers: list[VllmServer]
) -> None:
    first, second = VllmServer(settings), VllmServer(settings)
    servers += [first, second]
    await first.start()
    assert await second.start() == first.base_url
    assert (second.reused, second.alive, len(fake.calls)) == (True, False, 1)
    await second.stop()
    assert first.alive


async def test_one_that_was_only_found_is_missed_when_it_is_gone(
    settings: Settings, servers: list[VllmServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spoken_chat.server.vllm._HEALTH_S", 0.05)
    first, second = VllmServer(settings), VllmServer(settings)
    servers += [first, second]
    await first.start()
    await second.start()
    missing = asyncio.create_task(second.ended())
    await asyncio.sleep(0.3)
    assert not missing.done()
    await first.stop()
    assert (await asyncio.wait_for(missing, 20)).code == "vllm_ended"


async def test_a_server_with_another_model_on_the_port_is_told_apart(settings: Settings, fake: FakeVllm) -> None:
    async with ScriptedServer(models=model_list({"id": "llama"})) as other:
        port = int(other.base_url.rpartition(":")[2].partition("/")[0])
        with pytest.raises(ChatError, match="serves llama and not qwen36") as caught:
            await VllmServer(changed(settings, vllm_port=port)).start()
    assert caught.value.code == "vllm_other_model" and fake.calls == []


async def test_a_port_that_something_else_holds_is_told_before_anything_starts(
    settings: Settings, fake: FakeVllm
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", settings.vllm_port))
        with pytest.raises(ChatError, match=f"Port {settings.vllm_port} is in use") as caught:
            await VllmServer(settings).start()
    assert caught.value.code == "vllm_port" and fake.calls == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("api_server.py: error: unrecognized arguments: --no-such-flag", "vllm_unknown_flag"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "vllm_memory"),
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: x)", "vllm_model_gated"),
        ("fatal error: Python.h: No such file or directory", "vllm_no_headers"),
        ("RuntimeError: something else went wrong", "vllm_crashed"),
    ],
)
async def test_a_start_that_fails_is_one_sentence_with_the_place_of_the_log(
    line: str, code: str, settings: Settings, fake: FakeVllm
) -> None:
    fake.plan(["(EngineCore pid=7) INFO starting", line], "end")
    server = VllmServer(settings)
    with pytest.raises(ChatError) as caught:
        await server.start()
    assert caught.value.code == code
    assert str(server.log_path) in caught.value.message and "\n" not in caught.value.message
    assert line in server.log_path.read_text()
    assert not server.alive


async def test_a_start_that_writes_nothing_more_is_given_up(settings: Settings, fake: FakeVllm) -> None:
    fake.plan(["INFO loading"], "hang")
    with pytest.raises(ChatError, match="does not get on"):
        await VllmServer(changed(settings, vllm_patience=0.5)).start()
    assert not runs(fake.pids[0])


async def test_a_start_that_is_cancelled_leaves_nothing_behind(settings: Settings, fake: FakeVllm) -> None:
    fake.plan(["INFO loading"], "hang")
    starting = asyncio.create_task(VllmServer(settings).start())
    await until(lambda: fake.pids)
    starting.cancel()
    await asyncio.wait([starting])
    assert starting.cancelled() and not runs(fake.pids[0])


async def test_a_crash_is_noticed_and_said(settings: Settings, fake: FakeVllm, servers: list[VllmServer]) -> None:
    server = VllmServer(settings)
    servers.append(server)
    await server.start()
    ended = asyncio.create_task(server.ended())
    os.kill(fake.pids[0], signal.SIGKILL)
    fault = await asyncio.wait_for(ended, 20)
    assert fault.code == "vllm_killed" and not server.alive


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_the_apps_end_ends_it(how: signal.Signals, settings: Settings, fake: FakeVllm) -> None:
    arguments = [str(fake.python), str(settings.vllm_port), str(settings.cache_dir)]
    app = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _START_AND_SLEEP, *arguments, stdout=subprocess.PIPE, cwd=ROOT
    )
    assert app.stdout is not None
    assert await app.stdout.readline() == b"up\n"
    assert runs(fake.pids[0])
    app.send_signal(how)
    await app.wait()
    await until(lambda: not runs(fake.pids[0]))


async def test_only_the_last_logs_are_kept(settings: Settings, fake: FakeVllm) -> None:
    fake.plan([], "end")
    for _ in range(LOGS_KEPT + 2):
        with pytest.raises(ChatError):
            await VllmServer(settings).start()
    assert len(list((settings.cache_dir / "logs").iterdir())) == LOGS_KEPT


async def test_a_folder_that_takes_no_log_is_told(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ChatError, match="--cache-dir") as caught:
        await VllmServer(changed(settings, cache_dir=tmp_path / "file")).start()
    assert caught.value.code == "vllm_log"


@pytest.mark.parametrize("arguments", ["--load-format dummy", "--load-format=dummy --seed 1"])
async def test_weights_of_noise_are_labelled_in_the_served_name(
    arguments: str, settings: Settings, fake: FakeVllm, servers: list[VllmServer]
) -> None:
    server = VllmServer(changed(settings, vllm_arguments=arguments))
    servers.append(server)
    await server.start()
    assert server.served_name == "qwen36" + DUMMY
    assert fake.calls[0][fake.calls[0].index("--served-model-name") + 1] == server.served_name


async def test_a_python_without_vllm_is_told(settings: Settings) -> None:
    with pytest.raises(ChatError) as caught:
        await VllmServer(changed(settings, vllm_python="/no/such/python")).start()
    assert caught.value.code == "vllm_missing"


async def test_a_vllm_that_is_too_old_is_told(settings: Settings, tmp_path: Path) -> None:
    old = FakeVllm(tmp_path / "old", version="0.16.0")
    with pytest.raises(ChatError, match=r"0\.16\.0 is too old") as caught:
        await VllmServer(changed(settings, vllm_python=str(old.python))).start()
    assert caught.value.code == "vllm_too_old" and old.calls == []
