"""The marks of one turn on one monotonic clock, and every metric derived from them.

Pure functions of marks and the server's token counts; imports nothing of ours. Metrics are rounded here, once, so
that the page, an export and the command line show the same figure. A metric whose marks are missing or contradict
each other is None, never a guess. The report as a pure function of timestamps follows kyutai-labs/unmute; None for
an inconsistent anchor follows livekit/agents.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from types import MappingProxyType
from typing import Final

MARKS: Final = (
    "speech_start",  # the first moment the voice detector heard speech
    "speech_end",  # the last moment the voice detector heard speech
    "endpoint",  # the turn is over: detector decided, button released, text sent
    "asr_start",  # recognition of the whole utterance begins
    "asr_done",
    "request_sent",
    "first_content",  # first non-empty content received from the model
    "first_clause",  # last character of the first clause received and its end known
    "tts_first_byte",  # first samples of the first clause made
    "first_audio_sent",  # first samples handed to the listener's side
    "browser_received",  # first samples arrived at the listener's side, by its own clock
    "browser_play",  # first audible sample left the browser's queue
    "last_content",
    "stream_end",  # the model's stream ended
    "audio_done",  # last samples of the reply handed over
)


MOVING_MARKS: Final = frozenset({"last_content", "request_sent"})
"""Marks of which the latest value counts: a request sent again after a refusal starts the measurement anew."""


class Timeline:
    """Marks of one turn, in seconds on one monotonic clock. The first value of a mark stays, but for MOVING_MARKS."""

    def __init__(self) -> None:
        self._marks: dict[str, float] = {}

    def mark(self, name: str, at: float) -> None:
        """Set the mark `name` at `at` seconds. Raises KeyError for a name that is not in MARKS."""
        if name not in MARKS:
            raise KeyError(f"unknown mark {name!r}")
        if name in MOVING_MARKS:
            self._marks[name] = at
        else:
            self._marks.setdefault(name, at)

    @property
    def marks(self) -> Mapping[str, float]:
        """The marks set so far, read-only."""
        return MappingProxyType(self._marks)

    def since_start(self) -> dict[str, float]:
        """Marks in milliseconds after the earliest one, in the order of MARKS, rounded to 0.01 ms."""
        if not self._marks:
            return {}
        start = min(self._marks.values())
        return {name: round((self._marks[name] - start) * 1000, 2) for name in MARKS if name in self._marks}


@dataclass(frozen=True)
class Metrics:
    """The figures of one turn. Milliseconds to 0.1, ms/token to 0.01; None where not measured."""

    endpoint_delay_ms: float | None = None
    asr_ms: float | None = None
    ttft_ms: float | None = None
    ms_per_token: float | None = None
    llm_turn_ms: float | None = None
    first_clause_ms: float | None = None
    tts_ms: float | None = None
    first_audio_ms: float | None = None
    wire_ms: float | None = None
    playback_ms: float | None = None
    v2v_ms: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None

    def as_dict(self) -> dict[str, float | int | None]:
        """All fields by name."""
        return asdict(self)


METRIC_NAMES: Final = tuple(field.name for field in fields(Metrics))


def measure(
    marks: Mapping[str, float],
    *,
    prompt_tokens: int | None = None,
    cached_tokens: int | None = None,
    completion_tokens: int | None = None,
) -> Metrics:
    """Every metric of a turn from its marks (seconds) and the server's token counts.

    TTFT: request sent to first non-empty content. ms/token: (last content - first content) / (completion tokens - 1),
    None when tokens <= 1 or unknown, and when one chunk held the whole reply. LLM turn: request sent to stream end.
    First audio, the server's part: endpoint to first samples handed over. V2V: speech end (endpoint, in a push-to-talk
    or typed turn) to the first audible sample, as the listener's side measured it. It is the sum of endpoint delay,
    first audio, wire and playback. Playback: first samples received there to the first audible one. Wire: what is left,
    which is the way of the person's sound to the server and of the reply's sound back.
    """

    def span(start: str, end: str) -> float | None:
        if start not in marks or end not in marks or marks[end] < marks[start]:
            return None
        return (marks[end] - marks[start]) * 1000

    def ms(start: str, end: str) -> float | None:
        value = span(start, end)
        return None if value is None else round(value, 1)

    generation = span("first_content", "last_content")
    per_token = None
    if generation and completion_tokens is not None and completion_tokens > 1:
        per_token = round(generation / (completion_tokens - 1), 2)
    return Metrics(
        endpoint_delay_ms=ms("speech_end", "endpoint"),
        asr_ms=ms("asr_start", "asr_done"),
        ttft_ms=ms("request_sent", "first_content"),
        ms_per_token=per_token,
        llm_turn_ms=ms("request_sent", "stream_end"),
        first_clause_ms=ms("first_content", "first_clause"),
        tts_ms=ms("first_clause", "tts_first_byte"),
        first_audio_ms=ms("endpoint", "first_audio_sent"),
        wire_ms=ms("first_audio_sent", "browser_received"),
        playback_ms=ms("browser_received", "browser_play"),
        v2v_ms=ms("speech_end" if "speech_end" in marks else "endpoint", "browser_play"),
        prompt_tokens=prompt_tokens,
        cached_tokens=cached_tokens,
        completion_tokens=completion_tokens,
    )


def figure_text(name: str, value: float | int | None) -> str:
    """One figure as text, the same digits as in an export; empty when it was not measured."""
    if value is None:
        return ""
    if name.endswith("_tokens"):
        return str(int(value))
    return f"{value:.2f}" if name == "ms_per_token" else f"{value:.1f}"


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value that `share` (0 to 1) of `values` do not exceed, interpolated between neighbours; None without any."""
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] * (1 - (place - below)) + ordered[above] * (place - below)


def percentiles(turns: Iterable[Metrics], share: float) -> Metrics:
    """The percentile `share` (0 to 1) of each metric over the turns that have it, rounded as the metric is."""
    return _percentiles(_known(turns), share)


def medians(turns: Iterable[Metrics]) -> tuple[Metrics, dict[str, int]]:
    """The median of each metric over the turns that have it, and how many those were."""
    known = _known(turns)
    return _percentiles(known, 0.5), {name: len(values) for name, values in known.items()}


def _known(turns: Iterable[Metrics]) -> dict[str, list[float]]:
    known: dict[str, list[float]] = {name: [] for name in METRIC_NAMES}
    for turn in turns:
        for name, value in turn.as_dict().items():
            if value is not None:
                known[name].append(value)
    return known


def _percentiles(known: Mapping[str, Sequence[float]], share: float) -> Metrics:
    found = {name: _rounded(name, percentile(values, share)) for name, values in known.items()}
    return Metrics(**found)  # type: ignore[arg-type]


def _rounded(name: str, value: float | None) -> float | int | None:
    if value is None:
        return None
    if name.endswith("_tokens"):
        return round(value)
    return round(value, 2 if name == "ms_per_token" else 1)
