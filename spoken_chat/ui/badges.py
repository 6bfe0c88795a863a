"""Under what circumstances a turn ran, in a few short words: what its figures must be read with."""

from __future__ import annotations

from html import escape

from spoken_chat.turn import Turn
from spoken_chat.ui.text import word


def badges(turn: Turn, language: str) -> list[tuple[str, str]]:
    """(what it is called in the style sheet, what it says) of each badge of `turn`, its kind first."""
    about = turn.circumstances
    shown: list[tuple[str, str]] = [(turn.kind, word(turn.kind, language))]
    if turn.kind == "hands_free":
        dropped = f" · {word('dropped_starts', language)} {about.dropped_starts}" if about.dropped_starts else ""
        shown.append((f"speculation-{about.speculation}", word(f"speculation_{about.speculation}", language) + dropped))
    if about.interrupted:
        shown.append(("interrupted", word("interrupted", language)))
    elif turn.status == "cancelled":
        shown.append(("stopped", word("stopped", language)))
    if turn.status == "failed":
        shown.append(("failed", word("failed", language)))
    if about.reopened:
        shown.append(("reopened", f"{word('reopened', language)} ×{about.reopened}"))
    if turn.usage is not None and turn.usage.prefix_missed:
        shown.append(("prefix-missed", word("prefix_missed", language)))
    if about.order != "next":
        shown.append((about.order, word(f"order_{about.order}", language)))
    return shown


def badges_view(turn: Turn, language: str) -> str:
    """The badges of `turn` as markup."""
    return "".join(f'<span class="sc-badge sc-{name}">{escape(said)}</span>' for name, said in badges(turn, language))
