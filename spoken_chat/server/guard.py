"""Runs a server that knows nothing of us so that it ends with us: `python -m spoken_chat.server.guard LOG -- COMMAND`.

The command runs in a process group of its own and writes to LOG. Standard input stays open for as long as the parent
lives: however the parent ends, the pipe closes, and the whole group is ended. Standard output carries one line, the
process id of the command. Exits with the command's status, 128 and its signal's number where a signal ended it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

END_S: Final = 8.0
"""How long the command may take to end when it is asked to; then it is made to."""

_LOOK_S: Final = 0.05
_PR_SET_PDEATHSIG: Final = 1


def main(arguments: list[str]) -> int:
    """Run the command until it ends, or until our parent does."""
    log_path, separator, *command = arguments
    if separator != "--" or not command:
        raise SystemExit(__doc__)
    with Path(log_path).open("ab", buffering=0) as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_end_with_the_guard,
        )
    print(child.pid, flush=True)
    asked_to_end: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: asked_to_end.append(number))
    while child.poll() is None and not asked_to_end and _parent_lives():
        continue
    if child.poll() is None:
        end_group(child)
    with suppress(ProcessLookupError):  # whatever it left behind
        os.killpg(child.pid, signal.SIGKILL)
    status = child.wait()
    return status if status >= 0 else 128 - status


def end_group(child: subprocess.Popen[bytes], seconds: float = END_S) -> None:
    """Ask the command to end, then make it and all that it started."""
    child.terminate()  # the command alone: it ends its own children in order
    deadline = time.monotonic() + seconds
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)


def _parent_lives() -> bool:
    """Wait a moment; whether the parent still holds our standard input open."""
    readable, _, _ = select.select([0], [], [], _LOOK_S)
    return not readable or bool(os.read(0, 4096))


def _end_with_the_guard() -> None:
    """In the child, before the command: ask the kernel to end it should even this guard be killed."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
