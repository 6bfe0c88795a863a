"""Medians of what the passes found, with every single value beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from spoken_chat.bench.raw_http import RawTimes
from spoken_chat.bench.report import median


def summary(values: Sequence[RawTimes] | Sequence[float]) -> dict[str, Any]:
    """The figures of one named list."""
    times = [value for value in values if isinstance(value, RawTimes)]
    if not times:
        return rounded([value for value in values if isinstance(value, int | float)])
    per_token = [one.ms_per_token for one in times if one.ms_per_token is not None]
    return {
        "n": len(times),
        "ttft_ms": rounded([one.ttft * 1000 for one in times]),
        "turn_ms": rounded([one.total * 1000 for one in times]),
        "ms_per_token": rounded(per_token, 3) if per_token else None,
        "uncached_tokens": _uncached(times),
        "raw": [{name: _short(value) for name, value in asdict(one).items() if value is not None} for one in times],
    }


def rounded(values: Sequence[float], digits: int = 2) -> dict[str, Any]:
    """Median, range and number of `values`, and the values."""
    found = median(values)
    return {
        "median": round(found.value, digits), "low": round(found.low, digits), "high": round(found.high, digits),
        "n": found.n,
    }  # fmt: skip


def medians(figures: Any) -> Any:
    """The medians alone, for a line on the screen."""
    if isinstance(figures, dict) and "median" in figures:
        return figures["median"]
    if isinstance(figures, dict):
        return {name: medians(value) for name, value in figures.items() if name not in ("raw", "n", "uncached_tokens")}
    return figures


def _uncached(times: Sequence[RawTimes]) -> list[int]:
    return [
        one.prompt_tokens - one.cached_tokens
        for one in times
        if one.prompt_tokens is not None and one.cached_tokens is not None
    ]


def _short(value: float) -> float:
    return round(value, 5)
