"""How long a server's start took last time, kept in a small file, so that the next one can say how long it may take."""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)


class StartTimes:
    """Seconds of the last start by what was started. A file that cannot be read or written only costs the estimate."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def expected(self, what: str) -> float | None:
        """Seconds that the last start of `what` took; None where none is known."""
        seconds = self._all().get(what)
        return float(seconds) if isinstance(seconds, int | float) and seconds > 0 else None

    def keep(self, what: str, seconds: float) -> None:
        """The start of `what` took `seconds`."""
        times = {**self._all(), what: round(seconds, 1)}
        draft = self._file.with_suffix(".new")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(times, ensure_ascii=False, indent=1), encoding="utf-8")
            os.replace(draft, self._file)  # noqa: PTH105 - atomic, and pathlib's own call is the same
        except OSError as error:
            log.info("how long the start took is not kept: %s", error)

    def _all(self) -> dict[str, Any]:
        with suppress(OSError, ValueError):
            found = json.loads(self._file.read_text(encoding="utf-8"))
            if isinstance(found, dict):
                return found
        return {}
