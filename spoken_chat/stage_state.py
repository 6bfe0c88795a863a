"""Which engine a stage uses, and how far its loading is: what the page's head and `/healthz` say of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Choice:
    """An engine and the reason it was taken. Of the language model: `server` (named), `vllm` (ours) or `embedded`."""

    engine: str
    why: str


@dataclass(frozen=True)
class Progress:
    """How far a start is: the step it is in (by a stable name), and how far in that, None where it does not say.

    `elapsed_s`: seconds so far, None where nobody counts them. `expected_s`: how many the last start of the same took;
    None where there was none.
    """

    step: str
    percent: int | None
    elapsed_s: float | None
    expected_s: float | None


@dataclass
class StageState:
    """How far one stage is. `seconds` is how long its loading took, None while it loads.

    `detail` is a fault or a notice in one English sentence, and `code` what it is called. `progress` is told by stages
    whose loading takes long, while they load.
    """

    status: Literal["waiting", "loading", "ready", "failed"] = "waiting"
    engine: str = ""
    code: str = ""
    detail: str = ""
    seconds: float | None = None
    progress: Progress | None = None

    def as_dict(self) -> dict[str, Any]:
        """What `/healthz` answers of it."""
        told: dict[str, Any] = {
            "status": self.status,
            "engine": self.engine,
            "detail": self.detail,
            "seconds": self.seconds,
        }
        if self.progress is not None:
            told["progress"] = asdict(self.progress)
        return told
