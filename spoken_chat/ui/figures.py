"""The latency views: HTML from figures that the timeline already rounded. Nothing is computed here.

Only numbers and our own words go into the markup; engine names are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

from spoken_chat.engines import STAGES, StageState
from spoken_chat.session import moods_kept
from spoken_chat.timeline import Metrics, figure_text, medians
from spoken_chat.turn import Turn
from spoken_chat.ui.text import sentence, word

TILES: Final = (
    ("first_audio", "first_audio_ms", "ms"),
    ("ttft", "ttft_ms", "ms"),
    ("per_token", "ms_per_token", ""),
    ("asr", "asr_ms", "ms"),
    ("tokens", "completion_tokens", ""),
    ("cached", "cached_tokens", ""),
)
"""What the card of a turn shows: word, metric, unit."""

BAR: Final = (("asr", "asr_ms"), ("ttft", "ttft_ms"), ("first_clause", "first_clause_ms"), ("tts", "tts_ms"))
"""The stages between the utterance and the first sound, in order."""

COLUMNS: Final = (
    ("asr", "asr_ms"),
    ("ttft", "ttft_ms"),
    ("per_token", "ms_per_token"),
    ("tts", "tts_ms"),
    ("first_audio", "first_audio_ms"),
    ("v2v", "v2v_ms"),
    ("prompt", "prompt_tokens"),
    ("cached", "cached_tokens"),
    ("tokens", "completion_tokens"),
)
MOST_ROWS: Final = 30


def title_view(language: str) -> str:
    """The page's name and what it is for."""
    title, tagline = escape(word("title", language)), escape(word("tagline", language))
    return f'<div class="sc-title"><h1>{title}</h1><p>{tagline}</p></div>'


def turn_card(turn: Turn | None, language: str) -> str:
    """The figures of one turn, as they come in."""
    if turn is None:
        return f'<div class="sc-card sc-empty">{escape(word("no_turns", language))}</div>'
    metrics = turn.metrics.as_dict()
    tiles = "".join(_tile(key, name, unit, metrics[name], language) for key, name, unit in TILES)
    return (
        f'<div class="sc-card" data-turn="{escape(turn.id)}">'
        f'<div class="sc-head">{escape(word("this_turn", language))} · {escape(word(turn.kind, language))}</div>'
        f'<div class="sc-tiles">{tiles}</div>{_bar(metrics, language)}{_engines(turn, language)}</div>'
    )


def turns_table(turns: Sequence[Turn], export_url: str, language: str) -> str:
    """The latest turns, newest first, the medians of all with how many turns each rests on, and the export's link."""
    if not turns:
        return ""
    measured = [turn.metrics for turn in turns]
    middle, counts = medians(measured)
    head = "".join(f"<th>{escape(word(key, language))}</th>" for key, _ in COLUMNS)
    numbered = list(zip(range(1, len(turns) + 1), turns, measured, strict=True))[-MOST_ROWS:]
    rows = "".join(_row(str(number), turn, metrics, language) for number, turn, metrics in reversed(numbered))
    middles = "".join(
        f'<td data-metric="{name}" title="n = {counts[name]}">{figure_text(name, middle.as_dict()[name])}</td>'
        for _, name in COLUMNS
    )
    return (
        f'<div class="sc-card"><div class="sc-head">{escape(word("all_turns", language))}'
        f' · <a href="{escape(export_url)}" download="timelines.json">{escape(word("export", language))}</a></div>'
        f'<div class="sc-scroll"><table class="sc-table"><thead><tr><th>#</th>'
        f"<th>{escape(word('kind', language))}</th>{head}</tr></thead>"
        f'<tbody><tr class="sc-median"><td></td><td>{escape(word("median", language))}</td>{middles}</tr>{rows}</tbody>'
        f'</table></div><p class="sc-note">{_moods(turns, language)}{escape(word("what_figures", language))}</p></div>'
    )


def loading_line(states: dict[Any, StageState], language: str) -> str:
    """One line that says how far each stage is; plain words once all are ready."""
    stages = []
    for name in STAGES:
        state = states[name]
        text = word(f"stage_{name}", language)
        if state.status == "failed":
            detail = escape(sentence(state.code, state.detail, language))
            stages.append(f'<span class="sc-stage sc-failed">{text}: {word("failed", language)}. {detail}</span>')
        else:
            notice = sentence(state.code, state.detail, language)
            detail = "".join(f" · {escape(said)}" for said in (state.engine, notice) if said)
            stages.append(f'<span class="sc-stage sc-{state.status}">{text}{detail}</span>')
    ready = all(state.status == "ready" for state in states.values())
    failed = any(state.status == "failed" for state in states.values())
    mark = "ready" if ready else "failed" if failed else "loading"
    head = word(mark, language)
    return f'<div class="sc-status" data-status="{mark}"><b>{head}</b>{"".join(stages)}</div>'


def _tile(key: str, name: str, unit: str, value: float | int | None, language: str) -> str:
    text = figure_text(name, value)
    unit_text = f"<small>{unit}</small>" if text and unit else ""
    return (
        f'<div class="sc-tile sc-{key}"><span>{escape(word(key, language))}</span>'
        f'<b data-metric="{name}">{text}</b>{unit_text}</div>'
    )


def _bar(metrics: dict[str, float | int | None], language: str) -> str:
    parts = []
    for key, name in BAR:
        value = metrics[name]
        if value:
            label = escape(word(key, language))
            title = f"{label}: {figure_text(name, value)} ms"
            parts.append(f'<i class="sc-seg sc-{key}" style="flex-grow:{value}" title="{title}"><em>{label}</em></i>')
    return f'<div class="sc-bar" role="img">{"".join(parts)}</div>'


def _moods(turns: Sequence[Turn], language: str) -> str:
    kept, known = moods_kept(turns)
    return f"<b>{escape(word('mood_tag', language))} {kept}/{known}</b> · " if known else ""


def _engines(turn: Turn, language: str) -> str:
    engines = " · ".join(escape(str(name)) for name in turn.record()["engines"].values() if name)
    image = f" · {turn.image_tokens} {escape(word('image_tokens', language))}" if turn.image_tokens else ""
    return f'<p class="sc-note">{engines}{image}</p>'


def _row(number: str, turn: Turn, metrics: Metrics, language: str) -> str:
    values = metrics.as_dict()
    cells = "".join(f'<td data-metric="{name}">{figure_text(name, values[name])}</td>' for _, name in COLUMNS)
    kind = escape(word(turn.kind, language))
    if turn.status in ("cancelled", "failed"):
        kind += f" · {escape(word('stopped' if turn.status == 'cancelled' else 'failed', language))}"
    return f'<tr data-turn="{escape(turn.id)}"><td>{number}</td><td>{kind}</td>{cells}</tr>'
