"""The guard runs a command that knows nothing of us so that it, and all it started, ends with us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spoken_chat.settings import ROOT
from tests.support.processes import runs
from tests.support.waiting import until

SLEEPER = "import subprocess, sys, time; print('up', flush=True); time.sleep(600)"
FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("child", child.pid, flush=True)
time.sleep(600)
"""
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"


class Guarded:
    """A guard with its command."""

    def __init__(self, log: Path, script: str) -> None:
        self.log = log
        self.process = subprocess.Popen(
            [sys.executable, "-m", "spoken_chat.server.guard", str(log), "--", sys.executable, "-c", script],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, process_group=0,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.pid = int(self.process.stdout.readline())

    async def said(self, word: str) -> str:
        await until(lambda: word in self.log.read_text())
        return self.log.read_text()

    def end(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def started() -> Iterator[list[Guarded]]:
    guards: list[Guarded] = []
    yield guards
    for one in guards:
        one.end()


async def test_what_the_command_writes_is_in_the_log_and_its_status_is_the_guards(
    tmp_path: Path, started: list[Guarded]
) -> None:
    one = Guarded(tmp_path / "log", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
    started.append(one)
    assert one.process.wait(20) == 7
    assert {"out", "err"} <= set(one.log.read_text().split())


async def test_a_command_ended_by_a_signal_is_told_as_a_shell_tells_it(tmp_path: Path, started: list[Guarded]) -> None:
    one = Guarded(tmp_path / "log", SLEEPER)
    started.append(one)
    await one.said("up")
    os.kill(one.pid, signal.SIGKILL)
    assert one.process.wait(20) == 128 + signal.SIGKILL


@pytest.mark.parametrize("how", ["pipe", "terminate", "kill"])
async def test_however_the_parent_or_the_guard_ends_the_command_ends_too(
    how: str, tmp_path: Path, started: list[Guarded]
) -> None:
    one = Guarded(tmp_path / "log", SLEEPER)
    started.append(one)
    await one.said("up")
    if how == "pipe":
        assert one.process.stdin is not None
        one.process.stdin.close()
    else:
        one.process.send_signal(signal.SIGTERM if how == "terminate" else signal.SIGKILL)
    await until(lambda: not runs(one.pid))


async def test_what_the_command_started_ends_with_it(tmp_path: Path, started: list[Guarded]) -> None:
    one = Guarded(tmp_path / "log", FAMILY)
    started.append(one)
    child = int((await one.said("child")).split()[1])
    assert runs(child)
    os.kill(one.pid, signal.SIGKILL)
    await until(lambda: not runs(child))
    one.process.wait(20)


async def test_a_command_that_will_not_end_is_made_to(tmp_path: Path, started: list[Guarded]) -> None:
    one = Guarded(tmp_path / "log", DEAF)
    started.append(one)
    await one.said("up")
    assert one.process.stdin is not None
    one.process.stdin.close()
    one.process.wait(30)
    assert not runs(one.pid)
