"""The card of the model server: what it says of itself. Nothing is computed here; what it does not say is blank."""

from __future__ import annotations

from html import escape
from typing import Final

from spoken_chat.server.watch import ServerCard
from spoken_chat.ui.text import word

SHOWN: Final = (
    ("version", ""),
    ("weights_gib", "GiB"),
    ("kv_tokens", ""),
    ("block_tokens", ""),
    ("prefix_hit_percent", "%"),
    ("running", ""),
    ("waiting", ""),
    ("mtp_accepted_percent", "%"),
)
"""What the card shows under the model's name: field, unit."""


def server_view(card: ServerCard | None, language: str) -> str:
    """The card; nothing where there is no server that tells of itself."""
    if card is None:
        return ""
    label = escape(word("dummy_weights", language))
    dummy = f'<span class="sc-badge sc-dummy">{label}</span>' if card.dummy_weights else ""
    items = "".join(_item(name, unit, card, language) for name, unit in SHOWN)
    return (
        f'<div class="sc-model-server"><div class="sc-head">{escape(word("server", language))}'
        f'<b data-server="model">{escape(card.model)}</b>{dummy}</div><dl>{items}</dl></div>'
    )


def _item(name: str, unit: str, card: ServerCard, language: str) -> str:
    value = card.as_dict()[name]
    text = f"{value:,}" if isinstance(value, int) else escape(str(value)) if value is not None else ""
    shown = f"<small>{unit}</small>" if text and unit else ""
    return (
        f'<div title="{escape(word(f"server_{name}_info", language))}"><dt>{escape(word(f"server_{name}", language))}'
        f'</dt><dd data-server="{name}">{text}{shown}</dd></div>'
    )
