"""The voice panel: a static piece of the page that its scripts in assets/talk bring to life."""

from __future__ import annotations

import hashlib
import json
from typing import Final

import gradio as gr

from spoken_chat.settings import ROOT, Settings
from spoken_chat.talk.registry import OpenTalk
from spoken_chat.ui.panel_text import PANEL_WORDS
from spoken_chat.ui.text import figure_name, word

SCRIPTS: Final = ROOT / "assets" / "talk"

FIGURES: Final = (
    "endpoint_delay_ms",
    "asr_ms",
    "ttft_ms",
    "tts_ms",
    "wire_ms",
    "playback_ms",
    "first_audio_ms",
    "v2v_ms",
)
"""What the current turn's bars tell."""

BADGES: Final = (
    "hands_free",
    "push_to_talk",
    "typed",
    "speculation_hit",
    "speculation_miss",
    "interrupted",
    "reopened",
    "order_first",
    "order_after_idle",
)
"""Under what circumstances a turn ran."""

ON_LOAD: Final = """
import(new URL("talk-assets/panel.js?v=VERSION", location.href).href)
  .then((panel) => panel.start({ element, props, watch, refresh: () => trigger("refresh", {}) }));
"""


def voice_panel() -> gr.HTML:
    """The component. Its value is what `panel_value` makes; its event `refresh` asks for the rest of the page anew.

    The template never changes, so that Gradio draws it once: words and figures are set as text by the scripts.
    """
    return gr.HTML(
        value="",
        html_template=(SCRIPTS / "panel.html").read_text(encoding="utf-8"),
        js_on_load=ON_LOAD.replace("VERSION", _version()),
        apply_default_css=False,
        elem_id="voice-panel",
    )


def panel_value(
    opened: OpenTalk, engines_ready: bool, settings: Settings | None = None, *, conversation: int = 0
) -> str:
    """What the panel needs to know, as JSON text; a new one takes effect at once.

    Another number of the `conversation` empties the panel. Without `settings` the panel does not check sizes itself,
    and leaves that to the server.
    """
    limits = {
        "image_max_bytes": settings.image_max_bytes if settings else None,
        "text_max_chars": settings.text_max_chars if settings else None,
    }
    value = {
        "token": opened.token,
        "conversation": f"{opened.session.id}.{conversation}",
        "language": opened.language,
        "words": panel_words(opened.language),
        "ready": engines_ready,
        "detection": opened.talk.options.detection,
        "limits": limits,
    }
    return json.dumps(value, ensure_ascii=False)


def panel_words(language: str) -> dict[str, object]:
    """Every word the panel shows, in `language`."""
    place = 1 if language == "zh" else 0
    return {
        **{key: words[place] for key, words in PANEL_WORDS.items()},
        "figures": {name: figure_name(name, language) for name in FIGURES},
        "badges": {name: word(name, language) for name in BADGES},
    }


def _version() -> str:
    """Changes with any of the scripts, so that a browser never keeps an old one."""
    content = b"".join(path.read_bytes() for path in sorted(SCRIPTS.iterdir()) if path.is_file())
    return hashlib.sha256(content).hexdigest()[:10]
