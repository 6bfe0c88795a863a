"""The Gradio page: its parts, where they stand, and which handler each is wired to."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import gradio as gr

from spoken_chat.settings import ROOT
from spoken_chat.talk.options import TalkOptions
from spoken_chat.ui.handlers import Handlers, Updates
from spoken_chat.ui.options import DETECTIONS, SWITCHES, WAIT_LIMITS_S, WAITS
from spoken_chat.ui.panel import voice_panel
from spoken_chat.ui.status import title_view
from spoken_chat.ui.text import i18n

ASSETS: Final = ROOT / "assets"
KEEP_UPLOADS_S: Final = (3600, 3600)
"""Uploaded files are looked at this often, and deleted at this age; both in seconds."""

WAIT_STEP_S: Final = 0.05

SILENCE_JS: Final = "() => { if (window.spokenChat) window.spokenChat.stop(); return []; }"
RECORDING_JS: Final = """(path, _) => {
  const talk = window.spokenChat;
  if (!talk) return [path, -1];
  talk.anchor();
  return [path, talk.stop()];
}"""
"""A recording counts from now; it silences the reply that still plays, and says how much of that was heard."""

QUIET: Final[dict[str, Any]] = {
    "show_progress": "hidden",
    "api_visibility": "private",
    "queue": True,
    "concurrency_limit": None,
}

Parts = dict[str, Any]


def theme() -> gr.themes.Base:
    """A quiet theme on fonts the device has: nothing is fetched from elsewhere."""
    return gr.themes.Soft(
        primary_hue="indigo",
        neutral_hue="slate",
        font=["system-ui", "PingFang SC", "Noto Sans CJK SC", "sans-serif"],
        font_mono=["ui-monospace", "monospace"],
    )


def build_page(handlers: Handlers) -> tuple[gr.Blocks, gr.I18n]:
    """The page over `handlers`, and its translations for mounting."""
    words = i18n()
    parts: Parts = {}
    with gr.Blocks(title="Spoken Chat", analytics_enabled=False, fill_width=True, delete_cache=KEEP_UPLOADS_S) as demo:
        _head(parts, handlers, words)
        with gr.Row(equal_height=False):
            with gr.Column(scale=1, min_width=320):
                parts["panel"] = voice_panel()
                _conversation(parts, words)
                _settings(parts, handlers, words)
            with gr.Column(scale=1, min_width=320):
                parts["server"] = gr.HTML(elem_id="server")
                parts["card"] = gr.HTML(elem_id="card")
                parts["falls"] = gr.HTML(elem_id="falls")
        parts["table"] = gr.HTML(elem_id="table")
        parts["ticker"] = gr.Timer(0.5, active=False)
        parts["heard"] = gr.Number(value=-1, visible="hidden")
        _wire(demo, parts, handlers)
    return demo, words


def _head(parts: Parts, handlers: Handlers, words: gr.I18n) -> None:
    personas = [(persona.name, persona.id) for persona in handlers.engines.personas.values()]
    opening, voice = handlers.engines.opening_persona, handlers.engines.opening_voice
    with gr.Row(elem_id="head"):
        with gr.Column(scale=3, min_width=260):
            parts["title"] = gr.HTML(title_view("en"), elem_id="title")
            parts["status"] = gr.HTML(elem_id="status")
        parts["persona"] = gr.Dropdown(
            personas, value=opening.id, label=words("persona"), elem_id="persona", scale=1, min_width=130
        )
        parts["voice"] = gr.Dropdown(
            [one.name for one in opening.voices],
            value=voice.name,
            label=words("voice"),
            elem_id="voice",
            scale=1,
            min_width=130,
        )


def _conversation(parts: Parts, words: gr.I18n) -> None:
    parts["transcript"] = gr.Chatbot(
        label=words("transcript"),
        show_label=False,  # the label would lie over the first message
        height=400,
        render_markdown=False,
        buttons=[],
        feedback_options=None,
        group_consecutive_messages=False,
        allow_file_downloads=False,
        elem_id="transcript",
    )
    parts["restart"] = gr.Button(words("restart"), elem_id="restart")
    parts["again"] = gr.Audio(
        label=words("again"), interactive=False, editable=False, elem_id="again", buttons=["download"]
    )
    with gr.Accordion(words("recording"), open=False, elem_id="recording-box"):
        parts["recording"] = gr.Audio(
            sources=["upload"],
            type="filepath",
            label=words("recording_file"),
            editable=False,
            elem_id="recording",
        )


def _settings(parts: Parts, handlers: Handlers, words: gr.I18n) -> None:
    """How the talk listens; every page opens with what the app's settings say."""
    options = TalkOptions.of(handlers.engines.settings)
    with gr.Accordion(words("settings"), open=False, elem_id="settings"):
        parts["detection"] = gr.Radio(
            list(DETECTIONS),
            value=options.detection,
            label=words("detection"),
            info=words("detection_info"),
            elem_id="detection",
        )
        least, most = WAIT_LIMITS_S
        for name, detection in WAITS.items():
            parts[name] = gr.Slider(
                least,
                most,
                value=getattr(options, name),
                step=WAIT_STEP_S,
                label=words(name),
                info=words(f"{name}_info"),
                visible=detection == options.detection,
                elem_id=name,
            )
        for name in SWITCHES:
            parts[name] = gr.Checkbox(
                value=getattr(options, name),
                label=words(name),
                info=words(f"{name}_info"),
                elem_id=name,
            )


def _wire(demo: gr.Blocks, parts: Parts, handlers: Handlers) -> None:
    plain = _by_part(parts)
    view = [parts[name] for name in ("transcript", "card", "falls", "table")]
    settings = [parts[name] for name in ("detection", *WAITS, *SWITCHES)]
    status = [parts[name] for name in ("status", "server", "ticker", "panel")]
    everything = [*(parts[name] for name in ("title", "persona", "voice")), *settings, *status, *view]
    demo.load(
        plain(handlers.open_page),
        outputs=everything,
        **QUIET,
    )
    demo.unload(handlers.close_page)
    parts["ticker"].tick(plain(handlers.show_status), outputs=status, **QUIET)
    # While one drawing is made, only the last of the wishes that come meanwhile is kept: it shows them all.
    parts["panel"].refresh(
        plain(handlers.refresh), outputs=[*view, parts["again"]], trigger_mode="always_last", **QUIET
    )
    parts["recording"].upload(
        _by_part_streaming(parts)(handlers.answer_recording),
        inputs=[parts["recording"], parts["heard"]],
        outputs=[*view, parts["again"], parts["recording"]],
        js=RECORDING_JS,
        trigger_mode="multiple",
        **QUIET,
    )
    gr.on(
        [parts["restart"].click, parts["transcript"].clear],
        plain(handlers.restart),
        outputs=[*everything, parts["again"]],
        js=SILENCE_JS,
        **QUIET,
    )
    # One input each: a voice sent along with a new persona would still be one of the old persona's.
    parts["persona"].input(
        plain(handlers.choose_persona),
        inputs=[parts["persona"]],
        outputs=[parts["voice"], parts["transcript"]],
        **QUIET,
    )
    parts["voice"].input(plain(handlers.choose_voice), inputs=[parts["voice"]], outputs=[parts["voice"]], **QUIET)
    for name in ("detection", *WAITS, *SWITCHES):
        waits = [parts[one] for one in WAITS]
        parts[name].input(
            _chooser(parts, handlers, name),
            inputs=[parts[name]],
            outputs=[*waits, parts["panel"]],
            preprocess=False,  # what cannot be a wait is told in one sentence there; Gradio's check logs a traceback
            trigger_mode="always_last",
            **QUIET,
        )


def _components(parts: Parts, updates: Updates) -> Any:
    """`updates` as Gradio wants them, which takes an empty dict for a value."""
    return {parts[name]: value for name, value in updates.items()} or gr.skip()


def _by_part(parts: Parts) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Handlers name the parts of the page; Gradio wants the components themselves."""

    def wrap(handler: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(handler)
        async def run(*arguments: Any) -> Any:
            return _components(parts, await handler(*arguments))

        return run

    return wrap


def _chooser(parts: Parts, handlers: Handlers, name: str) -> Callable[..., Any]:
    async def choose(value: Any, request: gr.Request) -> Any:
        return _components(parts, await handlers.choose_option(name, value, request))

    return choose


def _by_part_streaming(parts: Parts) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def wrap(handler: Callable[..., AsyncIterator[Updates]]) -> Callable[..., Any]:
        @functools.wraps(handler)
        async def run(*arguments: Any) -> AsyncIterator[Any]:
            async for updates in handler(*arguments):
                yield _components(parts, updates)

        return run

    return wrap
