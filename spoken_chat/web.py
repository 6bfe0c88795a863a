"""The web app: FastAPI with our own routes first and the Gradio page mounted behind them."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import platform
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # before gradio is imported: no call home, ever

import gradio as gr
from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response, StreamingResponse

from spoken_chat import __version__
from spoken_chat.engines import Engines
from spoken_chat.ui.handlers import Handlers
from spoken_chat.ui.page import ASSETS, build_page, theme

REPORTED_PACKAGES = (
    "gradio",
    "openai",
    "faster-whisper",
    "ctranslate2",
    "edge-tts",
    "onnxruntime",
    "xllamacpp",
    "vllm",
)


def versions() -> dict[str, str]:
    """Versions of the app, Python and the packages that make the figures."""
    found = {"spoken-chat": __version__, "python": platform.python_version()}
    for name in REPORTED_PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


async def _load(engines: Engines) -> None:
    await engines.load()
    await engines.keep_trying()


def create_app(engines: Engines) -> FastAPI:
    """The whole app. The page is up at once; `engines` load in the background and close with it."""
    handlers = Handlers(engines)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(_load(engines), name="load engines")
        try:
            yield
        finally:
            loading.cancel()
            with suppress(asyncio.CancelledError):
                await loading
            await engines.close()

    app = FastAPI(title="Spoken Chat", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)

    @app.get("/healthz")
    async def healthz() -> JSONResponse:
        """Ready, loading or failed, and what each stage says; 200 only when ready."""
        status = "ready" if engines.ready else "failed" if engines.failed else "loading"
        body = {"status": status, "stages": engines.health(), "versions": versions()}
        return JSONResponse(body, status_code=200 if engines.ready else 503)

    @app.get("/v1/sound/{turn_id}")
    async def sound(turn_id: str) -> Response:
        """The reply's sound as it is made: raw little-endian PCM16, 24 kHz, mono."""
        stream = handlers.sounds.take(turn_id)
        if stream is None:
            return JSONResponse({"error": "There is no such sound, or it was fetched already."}, status_code=404)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream, media_type="application/octet-stream", headers=headers)

    @app.get("/v1/sessions/{session_id}/turns")
    async def turns(session_id: str) -> JSONResponse:
        """Every turn of a session with its figures and marks: what the page shows, to keep."""
        session = handlers.sessions.by_id(session_id)
        if session is None:
            return JSONResponse({"error": "There is no such session, or it has ended."}, status_code=404)
        body = {"versions": versions(), "turns": [turn.record() for turn in session.turns]}
        return JSONResponse(body, headers={"Content-Disposition": 'attachment; filename="timelines.json"'})

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
            css_paths=[ASSETS / "style.css"],
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
