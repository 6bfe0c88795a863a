"""What every bench command shares: medians that say how many runs they stand for, tables, targets, and `--json`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spoken_chat.errors import ChatError


@dataclass(frozen=True)
class Median:
    """The middle of `n` measured values; both ends too, so that a reader sees the spread."""

    value: float
    n: int
    low: float
    high: float


def median(values: Sequence[float]) -> Median:
    """The median of `values` with their number and range. Raises ValueError when there are none."""
    if not values:
        raise ValueError("a median needs at least one value")
    return Median(statistics.median(values), len(values), min(values), max(values))


def middle(values: Sequence[float]) -> float | None:
    """The median of `values` alone; None when there are none."""
    return statistics.median(values) if values else None


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Such as `162 ms (62 to 200, n = 10)`; `not measured` of no values."""
    if not values:
        return "not measured"
    found = median(values)
    return f"{found.value:.{digits}f} ms ({found.low:.{digits}f} to {found.high:.{digits}f}, n = {found.n})"


@dataclass(frozen=True)
class Target:
    """A figure that was asked for, what was measured, and whether that meets it. Nothing measured meets nothing."""

    name: str
    measured: float | None
    unit: str
    met: bool

    def line(self) -> str:
        """Such as `at least 2.5 times faster: 3.1, met`."""
        if self.measured is None:
            return f"{self.name}: not measured, NOT met"
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.name}: {self.measured:.2f}{unit}, {'met' if self.met else 'NOT met'}"


def at_least(name: str, measured: float | None, wanted: float, unit: str = "") -> Target:
    """A target that larger figures meet."""
    return Target(name, measured, unit, measured is not None and measured >= wanted)


def at_most(name: str, measured: float | None, wanted: float, unit: str = "") -> Target:
    """A target that smaller figures meet."""
    return Target(name, measured, unit, measured is not None and measured <= wanted)


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A plain-text table: text to the left, numbers (two decimals) to the right, full-width characters counted as 2."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(_width(text) for text in column) for column in zip(headings, *cells, strict=True)]
    numeric = [bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(len(headings))]
    lines = [_line(headings, widths, numeric), _line(["-" * width for width in widths], widths, numeric)]
    lines += [_line(row, widths, numeric) for row in cells]
    return "\n".join(lines)


def _cell(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _line(texts: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    padded = []
    for text, width, right in zip(texts, widths, numeric, strict=True):
        space = " " * (width - _width(text))
        padded.append(space + text if right else text + space)
    return "  ".join(padded).rstrip()


def machine() -> dict[str, str | int]:
    """Where the figures come from, as far as it explains them."""
    return {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count() or 1}


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the option `--json FILE`."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as JSON too")


def write_json(path: Path | None, results: Mapping[str, Any], targets: Sequence[Target]) -> None:
    """Write `results`, `targets` and the machine to `path`; nothing when it is None. Raises ChatError."""
    if path is None:
        return
    report = {"machine": machine(), **results, "targets": [asdict(target) for target in targets]}
    try:
        path.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ChatError(
            "report_not_written", f"The report could not be written to {path}: {error.strerror}.", file=str(path)
        ) from error
