"""The last turns side by side: when each stage of each of them began and ended, on one common scale of time.

Time runs from the end of speech (of the input, in a turn that was not hands-free), so that work begun before the
endpoint is seen as such. Places and widths are drawing; every figure in words is the timeline's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from spoken_chat.timeline import figure_text
from spoken_chat.turn import Turn
from spoken_chat.ui.badges import badges
from spoken_chat.ui.text import figure_name, word

MOST_SHOWN: Final = 8

Stage = tuple[str, str, str, str | None]
"""How it is called in the style sheet, its first and last mark, and the metric that is told of it."""

ROWS: Final[tuple[tuple[str, tuple[Stage, ...]], ...]] = (
    ("row_wait", (("wait", "speech_end", "endpoint", "endpoint_delay_ms"),)),
    ("row_asr", (("asr", "asr_start", "asr_done", "asr_ms"),)),
    (
        "row_llm",
        (("ttft", "request_sent", "first_content", "ttft_ms"), ("writing", "first_content", "stream_end", None)),
    ),
    (
        "row_voice",
        (
            ("first_clause", "first_content", "first_clause", "first_clause_ms"),
            ("tts", "first_clause", "tts_first_byte", "tts_ms"),
            ("held", "tts_first_byte", "first_audio_sent", None),
        ),
    ),
    (
        "row_way",
        (
            ("wire", "first_audio_sent", "browser_received", "wire_ms"),
            ("play", "browser_received", "browser_play", "playback_ms"),
        ),
    ),
)

STEPS_MS: Final = (1, 2, 5)
"""Between two marks of the scale lie these many milliseconds, or ten, a hundred, ... times as many."""

MOST_STEPS: Final = 4
MOST_WRITING: Final = 2.0
"""The scale reaches this many times as far as the latest first sound, however long the rest of a text was written."""


@dataclass(frozen=True)
class Scale:
    """From `start` to `end` in milliseconds after the end of speech."""

    start: float
    end: float

    def place(self, at: float) -> str:
        """Where `at` lies, in per cent of the width."""
        return f"{(min(max(at, self.start), self.end) - self.start) / (self.end - self.start) * 100:.2f}%"

    def width(self, start: float, end: float) -> str:
        """How wide the time from `start` to `end` is, in per cent of the width."""
        length = min(end, self.end) - max(start, self.start)
        return f"{max(0.0, length) / (self.end - self.start) * 100:.2f}%"

    def steps(self) -> list[float]:
        """The round times within the scale."""
        least = (self.end - self.start) / MOST_STEPS
        power = 10 ** math.floor(math.log10(least))
        step = next((step * power for step in STEPS_MS if step * power >= least), 10 * power)
        return [step * number for number in range(math.ceil(self.start / step), math.floor(self.end / step) + 1)]


def waterfalls(turns: Sequence[Turn], language: str) -> str:
    """The latest of `turns`, newest first."""
    known = [(number, turn, _since_speech_end(turn)) for number, turn in enumerate(turns, 1)]
    shown = [one for one in known if _has_bars(one[2])][-MOST_SHOWN:]
    scale = _scale([marks for _, _, marks in shown])
    if scale is None:
        return ""
    charts = "".join(_chart(number, turn, marks, scale, language) for number, turn, marks in reversed(shown))
    return (
        f'<div class="sc-card"><div class="sc-head">{escape(word("last_turns", language))}</div>{_key(language)}'
        f'<div class="sc-falls">{charts}</div></div>'
    )


def _since_speech_end(turn: Turn) -> dict[str, float]:
    """The turn's marks in milliseconds after the end of speech, or of the input; none where that is not known."""
    marks = turn.timeline.marks
    zero = marks.get("speech_end", marks.get("endpoint"))
    return {} if zero is None else {name: (at - zero) * 1000 for name, at in marks.items()}


def _has_bars(marks: Mapping[str, float]) -> bool:
    """Whether some stage of the turn both began and ended; a turn stopped before that would be an empty chart."""
    return any(first in marks and last in marks for _, stages in ROWS for _, first, last, _ in stages)


def _scale(turns: Sequence[Mapping[str, float]]) -> Scale | None:
    """One scale for all; None while no stage of any turn has taken any time."""
    worked = [marks for turn in turns if (marks := {name: at for name, at in turn.items() if name != "speech_start"})]
    if not worked:
        return None
    start = min(0.0, *(min(marks.values()) for marks in worked))
    sounds = [
        marks[name] for marks in worked for name in ("first_audio_sent", "browser_play", "endpoint") if name in marks
    ]
    ends = [
        at for marks in worked for name, at in marks.items() if name not in ("audio_done", "last_content", "stream_end")
    ]
    ends += [marks["stream_end"] for marks in worked if "stream_end" in marks]
    heard = any("first_audio_sent" in marks for marks in worked)
    end = min(max(ends), max(sounds) * MOST_WRITING) if heard and max(sounds) > 0 else max(ends)
    return Scale(start, end * 1.03) if end > start else None


def _chart(number: int, turn: Turn, marks: Mapping[str, float], scale: Scale, language: str) -> str:
    metrics = turn.metrics.as_dict()
    told = "v2v_ms" if metrics["v2v_ms"] is not None else "first_audio_ms"
    figure = figure_text(told, metrics[told])
    name = escape(figure_name(told, language))
    kind, *others = [escape(said) for _, said in badges(turn, language)]
    about = " · ".join(others)
    rows = "".join(_row(key, stages, turn, marks, scale, language) for key, stages in ROWS)
    unsure = ""
    if marks.get("endpoint", 0.0) > 0:
        unsure = f'<i class="sc-unsure" style="left:{scale.place(0)};width:{scale.width(0, marks["endpoint"])}"></i>'
    heard = (
        f'<i class="sc-heard" style="left:{scale.place(marks["browser_play"])}"></i>' if "browser_play" in marks else ""
    )
    value = f"{name} <b>{figure}</b> ms" if figure else ""
    return (
        f'<figure class="sc-fall" data-turn="{escape(turn.id)}">'
        f"<figcaption><span>#{number} · {kind}</span><span>{value}</span>"
        f'<small title="{about}">{about}</small></figcaption>'
        f'<div class="sc-plot"><div class="sc-under">{_grid(scale)}{unsure}</div>{rows}'
        f'<div class="sc-under">{heard}</div></div><div class="sc-axis">{_axis(scale)}</div></figure>'
    )


def _row(key: str, stages: Sequence[Stage], turn: Turn, marks: Mapping[str, float], scale: Scale, language: str) -> str:
    bars = []
    for stage, first, last, metric in stages:
        if stage == "held" and turn.circumstances.speculation != "hit":
            continue
        if first in marks and last in marks and marks[first] <= marks[last] and marks[first] < scale.end:
            bars.append(_bar(stage, metric, marks[first], marks[last], turn, scale, language))
    return f'<div class="sc-line"><span>{escape(word(key, language))}</span><div>{"".join(bars)}</div></div>'


def _bar(stage: str, metric: str | None, start: float, end: float, turn: Turn, scale: Scale, language: str) -> str:
    if metric is None:
        title = word(stage, language)
        if stage == "writing":
            title += f" · {figure_name('llm_turn_ms', language)}: {_figure(turn, 'llm_turn_ms')} ms"
    else:
        title = f"{figure_name(metric, language)}: {_figure(turn, metric)} ms"
    cut = " sc-cut" if end > scale.end else ""
    return (
        f'<i class="sc-span sc-{stage}{cut}" style="left:{scale.place(start)};width:{scale.width(start, end)}"'
        f' title="{escape(title)}"></i>'
    )


def _figure(turn: Turn, name: str) -> str:
    return figure_text(name, turn.metrics.as_dict()[name])


def _grid(scale: Scale) -> str:
    return "".join(f'<i class="sc-grid" style="left:{scale.place(at)}"></i>' for at in scale.steps())


def _axis(scale: Scale) -> str:
    """Round times under the chart, in seconds where they are long."""
    steps = scale.steps()
    seconds = any(later - earlier >= 500 for earlier, later in pairwise(steps))
    labels = [f"{at / 1000:g} s" if seconds else f"{at:g} ms" for at in steps]
    return "".join(
        f'<span style="left:{scale.place(at)}">{label}</span>' for at, label in zip(steps, labels, strict=True)
    )


def _key(language: str) -> str:
    """What each colour stands for."""
    entries = []
    for _, stages in ROWS:
        for stage, _, _, metric in stages:
            said = word(stage, language) if metric is None else figure_name(metric, language)
            entries.append(f'<span><i class="sc-dot sc-{stage}"></i>{escape(said)}</span>')
    entries.append(f'<span><i class="sc-dot sc-unsure"></i>{escape(word("before_endpoint", language))}</span>')
    return f'<p class="sc-key">{"".join(entries)}</p>'
