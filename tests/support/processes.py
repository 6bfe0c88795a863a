"""Whether processes live."""

from __future__ import annotations

from pathlib import Path


def runs(pid: int) -> bool:
    """Whether the process exists and is not merely waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
