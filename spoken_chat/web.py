"""The web app: FastAPI with our own routes first and the Gradio page mounted behind them."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import platform
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # before gradio is imported: no call home, ever

import gradio as gr
from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles

from spoken_chat import __version__
from spoken_chat.circumstances import count_speculation
from spoken_chat.engines import Engines
from spoken_chat.realtime.route import add_realtime
from spoken_chat.session import ChatSession
from spoken_chat.settings import Settings
from spoken_chat.supervisor import Supervisor
from spoken_chat.talk.registry import TalkRegistry
from spoken_chat.timeline import medians, percentiles
from spoken_chat.ui.handlers import Handlers
from spoken_chat.ui.page import ASSETS, build_page, theme
from spoken_chat.ui.text import sentence

REPORTED_PACKAGES: Final = (
    "gradio",
    "openai",
    "faster-whisper",
    "ctranslate2",
    "edge-tts",
    "onnxruntime",
    "xllamacpp",
    "vllm",
)

BESIDE_CONTENT: Final = 65_536
"""Bytes of a WebSocket message beside the image or the sound in it."""

SOUND_BYTES_PER_S: Final = 24_000 * 2
"""PCM16 mono as it comes over the WebSocket."""


def versions() -> dict[str, str]:
    """Versions of the app, Python and the packages that make the figures."""
    found = {"spoken-chat": __version__, "python": platform.python_version()}
    for name in REPORTED_PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def largest_message(settings: Settings) -> int:
    """The most bytes a WebSocket message needs: the largest image or the longest sound that is taken, in base64."""
    content = max(settings.image_max_bytes, round(settings.audio_max_seconds * SOUND_BYTES_PER_S))
    return (content + 2) // 3 * 4 + BESIDE_CONTENT


def export(session: ChatSession) -> dict[str, Any]:
    """Every turn of a session with its figures and marks, and what the page says of all of them together."""
    measured = [turn.metrics for turn in session.turns]
    middle, counts = medians(measured)
    hands_free = [turn.circumstances for turn in session.turns if turn.kind == "hands_free"]
    return {
        "versions": versions(),
        "summary": {
            "n": counts,
            "median": middle.as_dict(),
            "p95": percentiles(measured, 0.95).as_dict(),
            "speculation": count_speculation(hands_free).as_dict(),
        },
        "turns": [turn.record() for turn in session.turns],
    }


class PageModules(StaticFiles):
    """The page's own scripts. Browsers ask each time whether one changed: an old one beside a new one would break."""

    async def get_response(self, path: str, scope: MutableMapping[str, Any]) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


async def _run(engines: Engines, registry: TalkRegistry) -> None:
    """Load the engines, then keep the model server going."""
    await engines.load()
    await Supervisor(engines.model, engines.load_model_again, lambda: len(registry)).run()


def create_app(engines: Engines) -> FastAPI:
    """The whole app. The page is up at once; `engines` load in the background and close with it."""
    registry = TalkRegistry(engines)
    handlers = Handlers(registry)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(_run(engines, registry), name="run engines")
        try:
            yield
        finally:
            loading.cancel()
            with suppress(asyncio.CancelledError):
                await loading
            await registry.close()
            await engines.close()

    app = FastAPI(title="Spoken Chat", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)

    @app.get("/healthz")
    async def healthz() -> JSONResponse:
        """Ready, loading or failed, and what each stage says; 200 only when ready."""
        status = "ready" if engines.ready else "failed" if engines.failed else "loading"
        card = engines.model.card
        server = card.as_dict() if card is not None else None
        body = {"status": status, "stages": engines.health(), "server": server, "versions": versions()}
        return JSONResponse(body, status_code=200 if engines.ready else 503)

    @app.get("/v1/sessions/{session_id}/turns")
    async def turns(session_id: str) -> JSONResponse:
        """What the page shows of a session's turns, to keep."""
        opened = registry.by_session(session_id)
        if opened is None:
            return JSONResponse({"error": "There is no such session, or it has ended."}, status_code=404)
        headers = {"Content-Disposition": 'attachment; filename="timelines.json"'}
        return JSONResponse(export(opened.session), headers=headers)

    app.state.talks = registry
    add_realtime(app, registry, engines.settings, phrase=sentence)
    app.mount("/talk-assets", PageModules(directory=ASSETS / "talk"), name="talk-assets")

    def mounted() -> FastAPI:
        demo, words = build_page(handlers)
        with_page: FastAPI = gr.mount_gradio_app(
            app,
            demo,
            path="/",
            root_path=engines.settings.root_path or None,
            ssr_mode=False,
            run_history=False,
            show_error=True,
            theme=theme(),
            css_paths=[ASSETS / "style.css", ASSETS / "talk.css"],
            i18n=words,
            footer_links=[],
            max_file_size=max(engines.settings.audio_max_bytes, engines.settings.image_max_bytes) + 1,
        )
        return with_page

    return _inside_a_loop(mounted)


def _inside_a_loop(build: Callable[[], FastAPI]) -> FastAPI:
    """`build()` while an event loop runs: without one, Gradio makes a loop for each of its locks and closes none."""

    async def run() -> FastAPI:
        return build()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run())
    return build()
