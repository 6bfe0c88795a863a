"""The table of all turns, with their medians and 95th percentiles, what the figures mean, and the export's link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from spoken_chat.circumstances import count_speculation
from spoken_chat.session import moods_kept
from spoken_chat.timeline import Metrics, figure_text, medians, percentiles
from spoken_chat.turn import Turn
from spoken_chat.ui.badges import badges
from spoken_chat.ui.text import definition, figure_name, word

COLUMNS: Final = (
    "v2v_ms",
    "endpoint_delay_ms",
    "asr_ms",
    "ttft_ms",
    "ms_per_token",
    "llm_turn_ms",
    "tts_ms",
    "first_audio_ms",
    "wire_ms",
    "playback_ms",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
)
DEFINED: Final = (
    "v2v_ms",
    "endpoint_delay_ms",
    "first_audio_ms",
    "wire_ms",
    "playback_ms",
    "asr_ms",
    "ttft_ms",
    "ms_per_token",
    "llm_turn_ms",
    "first_clause_ms",
    "tts_ms",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
)
MOST_ROWS: Final = 30


def turns_table(turns: Sequence[Turn], export_url: str, language: str) -> str:
    """The latest turns, newest first, under the medians and 95th percentiles of all and how many these rest on."""
    if not turns:
        return ""
    measured = [turn.metrics for turn in turns]
    middle, counts = medians(measured)
    head = "".join(
        f'<th title="{escape(definition(name, language))}">{escape(figure_name(name, language))}</th>'
        for name in COLUMNS
    )
    numbered = list(zip(range(1, len(turns) + 1), turns, measured, strict=True))[-MOST_ROWS:]
    rows = "".join(_row(str(number), turn, metrics, language) for number, turn, metrics in reversed(numbered))
    summaries = (
        _summary("median", middle, language) + _summary("p95", percentiles(measured, 0.95), language)
        + _counts(counts, language)
    )  # fmt: skip
    return (
        f'<div class="sc-card"><div class="sc-head">{escape(word("all_turns", language))}'
        f'<a href="{escape(export_url)}" download="timelines.json">{escape(word("export", language))}</a></div>'
        f'<div class="sc-scroll"><table class="sc-table"><thead><tr><th>#</th>'
        f"<th>{escape(word('kind', language))}</th>{head}</tr></thead>"
        f"<tbody>{summaries}{rows}</tbody></table></div>{_note(turns, language)}{_legend(language)}</div>"
    )


def _row(number: str, turn: Turn, metrics: Metrics, language: str) -> str:
    about = " · ".join(escape(said) for _, said in badges(turn, language))
    return f'<tr data-turn="{escape(turn.id)}"><td>{number}</td><td>{about}</td>{_cells(metrics)}</tr>'


def _summary(key: str, metrics: Metrics, language: str) -> str:
    return f'<tr class="sc-{key}"><td></td><td>{escape(word(key, language))}</td>{_cells(metrics)}</tr>'


def _cells(metrics: Metrics) -> str:
    values = metrics.as_dict()
    return "".join(f'<td data-metric="{name}">{figure_text(name, values[name])}</td>' for name in COLUMNS)


def _counts(counts: Mapping[str, int], language: str) -> str:
    cells = "".join(f'<td data-count="{name}">{counts[name]}</td>' for name in COLUMNS)
    return f'<tr class="sc-count"><td></td><td>{escape(word("count", language))}</td>{cells}</tr>'


def _note(turns: Sequence[Turn], language: str) -> str:
    """How often speculation paid, over the hands-free turns, and how often the mood tag was kept."""
    said = []
    hands_free = [turn.circumstances for turn in turns if turn.kind == "hands_free"]
    if hands_free:
        counts = count_speculation(hands_free)
        dropped = f" ({word('dropped_starts', language)} {counts.dropped_starts})" if counts.dropped_starts else ""
        told = (
            f"{word('hits', language)} {counts.hits} · {word('misses', language)} {counts.misses}{dropped} · "
            f"{word('off', language)} {counts.off}"
        )
        said.append(f'{escape(word("speculation_short", language))} <b class="sc-counts">{escape(told)}</b>')
    kept, known = moods_kept(turns)
    if known:
        said.append(f"{escape(word('mood_tag', language))} <b>{kept}/{known}</b>")
    return f'<p class="sc-note">{" · ".join(said)}</p>' if said else ""


def _legend(language: str) -> str:
    lines = "".join(
        f"<dt>{escape(figure_name(name, language))}</dt><dd>{escape(definition(name, language))}</dd>"
        for name in DEFINED
    )
    return (
        f'<details class="sc-legend"><summary>{escape(word("definitions", language))}</summary>'
        f'<dl>{lines}</dl><p class="sc-note">{escape(word("blank", language))}</p></details>'
    )
