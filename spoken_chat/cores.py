"""How many processors there are to work on."""

from __future__ import annotations

import os


def available_cores() -> int:
    """The processors this process may use, which in a container are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
