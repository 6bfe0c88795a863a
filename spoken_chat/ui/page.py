"""The Gradio page: its parts, where they stand, and which handler each is wired to."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

import gradio as gr

from spoken_chat.settings import ROOT
from spoken_chat.ui.figures import title_view
from spoken_chat.ui.handlers import Handlers, Updates
from spoken_chat.ui.text import i18n

ASSETS = ROOT / "assets"
KEEP_UPLOADS_S = (3600, 3600)
"""Uploaded files are looked at this often, and deleted at this age; both in seconds."""

STOP_JS = "() => [window.spokenChat ? window.spokenChat.stop() : -1]"
SEND_JS = """(input, _, __) => {
  const box = document.querySelector("#written textarea");
  const said = { ...input, text: (box && box.value) || input.text };
  const empty = !said.text.trim() && !(said.files || []).length;
  return [{ text: "", files: [] }, said, empty || !window.spokenChat ? -1 : window.spokenChat.stop()];
}"""
"""Takes what was written out of its box in one step, so that what is typed next cannot be lost with it. Gradio's own
copy of the text can lag behind a quick Enter, so the box itself is read."""

INTERRUPT_JS = "(input, _) => [input, window.spokenChat ? window.spokenChat.stop() : -1]"
"""A new turn silences the reply that still plays, and says how much of it was heard."""


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
    parts: dict[str, Any] = {}
    personas = [(persona.name, persona.id) for persona in handlers.engines.personas.values()]
    opening, voice = handlers.engines.opening_persona, handlers.engines.opening_voice

    with gr.Blocks(title="Spoken Chat", analytics_enabled=False, fill_width=True, delete_cache=KEEP_UPLOADS_S) as demo:
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
        parts["ticker"] = gr.Timer(0.5, active=False)
        parts["player"] = gr.HTML(
            value="",
            html_template="<div></div>",
            js_on_load=(ASSETS / "player.js").read_text(encoding="utf-8"),
            elem_id="player",
            elem_classes="sc-player",
        )
        heard = gr.Number(value=-1, visible="hidden")
        outgoing = gr.MultimodalTextbox(file_types=["image"], visible="hidden", elem_id="outgoing")
        with gr.Row(equal_height=False):
            with gr.Column(scale=1, min_width=320):
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
                parts["microphone"] = gr.Audio(
                    sources=["microphone", "upload"],
                    type="filepath",
                    label=words("speak"),
                    editable=False,
                    elem_id="microphone",
                )
                parts["written"] = gr.MultimodalTextbox(
                    sources=["upload"],
                    file_types=["image"],
                    file_count="single",
                    show_label=False,
                    placeholder=words("write"),  # type: ignore[arg-type]
                    elem_id="written",
                )
                with gr.Row():
                    stop = gr.Button(words("stop"), variant="stop", elem_id="stop", min_width=100)
                    restart = gr.Button(words("restart"), elem_id="restart", min_width=100)
            with gr.Column(scale=1, min_width=320):
                parts["card"] = gr.HTML(elem_id="card")
                parts["table"] = gr.HTML(elem_id="table")
                parts["again"] = gr.Audio(
                    label=words("again"), interactive=False, editable=False, elem_id="again", buttons=["download"]
                )

        view = [parts["transcript"], parts["card"], parts["table"]]
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private", "queue": True}
        plain = _by_part(parts)
        streaming = _by_part_streaming(parts)

        demo.load(
            plain(handlers.open_page),
            outputs=[*(parts[name] for name in ("title", "persona", "voice", "status", "ticker")), *view],
            **quiet,
        )
        demo.unload(handlers.close_page)
        parts["ticker"].tick(plain(handlers.show_status), outputs=[parts["status"], parts["ticker"]], **quiet)
        turn_outputs = [parts[name] for name in ("transcript", "card", "table", "player", "again")]
        gr.on(
            [parts["microphone"].stop_recording, parts["microphone"].upload],
            streaming(handlers.speak),
            inputs=[parts["microphone"], heard],
            outputs=[*turn_outputs, parts["microphone"]],
            js=INTERRUPT_JS,
            trigger_mode="multiple",
            concurrency_limit=None,
            **quiet,
        )
        parts["written"].submit(
            None,
            inputs=[parts["written"], outgoing, heard],
            outputs=[parts["written"], outgoing, heard],
            js=SEND_JS,
            trigger_mode="multiple",
            show_progress="hidden",
        ).then(
            streaming(handlers.write),
            inputs=[outgoing, heard],
            outputs=turn_outputs,
            trigger_mode="multiple",
            concurrency_limit=None,
            **quiet,
        )
        stop.click(plain(handlers.stop), inputs=[heard], outputs=view, js=STOP_JS, concurrency_limit=None, **quiet)
        gr.on(
            [restart.click, parts["transcript"].clear],
            plain(handlers.restart),
            outputs=[*view, parts["again"]],
            js=STOP_JS,
            concurrency_limit=None,
            **quiet,
        )
        # One input each: a voice sent along with a new persona would still be one of the old persona's.
        parts["persona"].input(
            plain(handlers.choose_persona),
            inputs=[parts["persona"]],
            outputs=[parts["voice"], parts["transcript"]],
            concurrency_limit=None,
            **quiet,
        )
        parts["voice"].input(plain(handlers.choose_voice), inputs=[parts["voice"]], concurrency_limit=None, **quiet)

        async def played(event: gr.EventData, request: gr.Request) -> dict[Any, Any]:
            return _components(parts, await handlers.played(event._data, request))

        parts["player"].play(played, outputs=[parts["card"], parts["table"]], concurrency_limit=None, **quiet)
    return demo, words


def _components(parts: dict[str, Any], updates: Updates) -> dict[Any, Any]:
    return {parts[name]: value for name, value in updates.items()}


def _by_part(parts: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Handlers name the parts of the page; Gradio wants the components themselves."""

    def wrap(handler: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(handler)
        async def run(*arguments: Any) -> dict[Any, Any]:
            return _components(parts, await handler(*arguments))

        return run

    return wrap


def _by_part_streaming(parts: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def wrap(handler: Callable[..., AsyncIterator[Updates]]) -> Callable[..., Any]:
        @functools.wraps(handler)
        async def run(*arguments: Any) -> AsyncIterator[dict[Any, Any]]:
            async for updates in handler(*arguments):
                yield _components(parts, updates)

        return run

    return wrap
