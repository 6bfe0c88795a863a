"""The page's settings of a talk: what may be chosen, and what a choice makes of the talk's options."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final, get_args

from spoken_chat.talk.options import Detection, TalkOptions

DETECTIONS: Final[tuple[Detection, ...]] = get_args(Detection)
WAITS: Final = {"wait": "fixed", "wait_finished": "adaptive", "wait_unfinished": "adaptive"}
"""Each wait, and the way of finding the end of a turn that it belongs to."""

SWITCHES: Final = ("speculation", "partial_transcripts", "barge_in", "half_duplex")
WAIT_LIMITS_S: Final = (0.2, 5.0)
"""The same as those of the settings."""


def chosen(options: TalkOptions, name: str, value: object) -> TalkOptions:
    """`options` with `value` for the setting `name`; unchanged where that cannot be its value.

    A turn that sounds finished never waits longer than one that does not: the other wait follows.
    """
    changes: dict[str, Any] = {}
    if (name == "detection" and value in DETECTIONS) or (name in SWITCHES and isinstance(value, bool)):
        changes[name] = value
    elif name in WAITS and (wait := _wait(value)) is not None:
        changes[name] = wait
        if name == "wait_finished":
            changes["wait_unfinished"] = max(wait, options.wait_unfinished)
        elif name == "wait_unfinished":
            changes["wait_finished"] = min(wait, options.wait_finished)
    return replace(options, **changes) if changes else options


def _wait(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    least, most = WAIT_LIMITS_S
    return min(max(float(value), least), most)
