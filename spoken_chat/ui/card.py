"""The card of the current turn: its figures as the timeline rounded them. Nothing is computed here.

Only numbers and our own words go into the markup; engine names are escaped.
"""

from __future__ import annotations

from html import escape
from typing import Final

from spoken_chat.timeline import figure_text
from spoken_chat.turn import Turn
from spoken_chat.ui.badges import badges_view
from spoken_chat.ui.text import definition, figure_name, word

Figures = dict[str, float | int | None]

TILES: Final = (
    ("v2v_ms", "ms"),
    ("ttft_ms", "ms"),
    ("ms_per_token", ""),
    ("first_audio_ms", "ms"),
    ("endpoint_delay_ms", "ms"),
    ("asr_ms", "ms"),
    ("completion_tokens", ""),
    ("cached_tokens", ""),
)
"""What the card of a turn shows: metric, unit."""

PARTS: Final = (
    ("wait", "endpoint_delay_ms"),
    ("server", "first_audio_ms"),
    ("wire", "wire_ms"),
    ("play", "playback_ms"),
)
"""What V2V is the sum of, in order."""


def turn_card(turn: Turn | None, language: str) -> str:
    """The figures of one turn, as they come in."""
    if turn is None:
        return f'<div class="sc-card sc-empty">{escape(word("no_turns", language))}</div>'
    metrics = turn.metrics.as_dict()
    tiles = "".join(_tile(name, unit, metrics[name], language) for name, unit in TILES)
    return (
        f'<div class="sc-card" data-turn="{escape(turn.id)}">'
        f'<div class="sc-head">{escape(word("this_turn", language))}{badges_view(turn, language)}</div>'
        f'<div class="sc-tiles">{tiles}</div>{_parts(turn, metrics, language)}{_engines(turn, language)}</div>'
    )


def _tile(name: str, unit: str, value: float | int | None, language: str) -> str:
    text = figure_text(name, value)
    unit_text = f"<small>{unit}</small>" if text and unit else ""
    return (
        f'<div class="sc-tile sc-{name}" title="{escape(definition(name, language))}">'
        f'<span>{escape(figure_name(name, language))}</span><b data-metric="{name}">{text}</b>{unit_text}</div>'
    )


def _parts(turn: Turn, metrics: Figures, language: str) -> str:
    """V2V's parts as one bar, each as wide as it took, and their figures under it."""
    segments, labels = [], []
    for key, name in PARTS:
        if name == "endpoint_delay_ms" and turn.kind != "hands_free":
            continue
        value, label = metrics[name], escape(figure_name(name, language))
        text = figure_text(name, value)
        if value:
            segments.append(f'<i class="sc-seg sc-{key}" style="flex-grow:{value}" title="{label}: {text} ms"></i>')
        figure = f"<b>{text}</b> <small>ms</small>" if text else "<b></b>"
        labels.append(
            f'<li data-part="{name}" title="{escape(definition(name, language))}">'
            f'<i class="sc-dot sc-{key}"></i>{label} {figure}</li>'
        )
    said = escape(word("v2v_parts", language))
    return (
        f'<div class="sc-bar" role="img" aria-label="{said}">{"".join(segments)}</div>'
        f'<ul class="sc-parts" aria-label="{said}">{"".join(labels)}</ul>'
    )


def _engines(turn: Turn, language: str) -> str:
    engines = " · ".join(escape(str(name)) for name in turn.record()["engines"].values() if name)
    image = f" · {turn.image_tokens} {escape(word('image_tokens', language))}" if turn.image_tokens else ""
    return f'<p class="sc-note">{engines}{image}</p>'
