"""Under what circumstances a turn ran: what must be known to read its figures rightly. Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["hands_free", "push_to_talk", "typed"]
"""How the utterance was given. `hands_free`: the app decided that it was over, which is part of its V2V."""

Speculation = Literal["hit", "miss", "off"]
"""`hit`: the work that was begun during the pause was the turn. `miss`: some was begun and none could be used.
`off`: nothing was begun before the endpoint."""

Order = Literal["first", "after_idle", "next"]
"""Whether the turn opened its conversation, came after a long silence, or neither: caches are cold in the first two."""


@dataclass
class Circumstances:
    """Set by whoever starts the turn; a turn nobody spoke for leaves them as they are.

    `dropped_starts`: how often work begun in a pause was thrown away because the person went on speaking.
    `reopened`: how often an earlier end of this utterance was taken back. `interrupted`: the person spoke over the
    reply and so ended it.
    """

    speculation: Speculation = "off"
    dropped_starts: int = 0
    reopened: int = 0
    interrupted: bool = False
    order: Order = "next"

    def as_dict(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)


@dataclass(frozen=True)
class SpeculationCounts:
    """Over several turns: how each went, and how many starts were thrown away, those before a hit included."""

    hits: int
    misses: int
    off: int
    dropped_starts: int

    def as_dict(self) -> dict[str, int]:
        """All fields by name."""
        return asdict(self)


def count_speculation(turns: Iterable[Circumstances]) -> SpeculationCounts:
    """Hits, misses and turns without speculation among `turns`."""
    listed = list(turns)
    outcomes = [turn.speculation for turn in listed]
    return SpeculationCounts(
        hits=outcomes.count("hit"),
        misses=outcomes.count("miss"),
        off=outcomes.count("off"),
        dropped_starts=sum(turn.dropped_starts for turn in listed),
    )
