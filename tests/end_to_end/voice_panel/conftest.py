"""A browser whose microphone hears a tone, and the panel's page in it over a scripted server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import chromium
from tests.support.panel_harness import PanelServer, panel_json, panel_server, wav
from tests.support.panel_page import DEVICE_RATE, FREQUENCY, LEVEL, PLAIN_MICROPHONE, Open

TIMEOUT_MS: Final = 15_000


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    times = np.arange(DEVICE_RATE * 120) / DEVICE_RATE
    sound = (np.sin(2 * np.pi * FREQUENCY * times) * LEVEL).astype(np.int16)
    with chromium(wav(tmp_path_factory.mktemp("mic") / "tone.wav", sound, DEVICE_RATE)) as running:
        yield running


@pytest.fixture
def server() -> Iterator[PanelServer]:
    with panel_server() as running:
        yield running


@pytest.fixture
def open_panel(server: PanelServer, browser: Browser) -> Iterator[Open]:
    """Opens the page with the panel; at the end, no script may have failed, and nothing else have been asked for."""
    contexts = []
    complaints: list[str] = []

    def open_it(script: str = PLAIN_MICROPHONE, value: str | None = None, **options: Any) -> Page:
        server.value = value or panel_json()
        context = browser.new_context(permissions=["microphone"], **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.add_init_script(script)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((server.url, "data:", "blob:")) else complaints.append(request.url)
            ),
        )
        page.goto(server.url)
        page.wait_for_selector(".talk")
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert complaints == []
