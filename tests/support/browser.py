"""Headless Chromium for the page tests: an installed one, with a microphone fed from a file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Playwright, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=user-gesture-required",
)


def executable() -> str | None:
    """An installed Chromium or Chrome; None leaves Playwright its own."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def launch(playwright: Playwright, microphone: Path | None = None) -> Browser:
    """Start Chromium; with `microphone`, a WAV file is what it hears, once from the first use on."""
    options = [*QUIET]
    if microphone is not None:
        options += [
            "--use-fake-ui-for-media-stream",
            "--use-fake-device-for-media-stream",
            f"--use-file-for-fake-audio-capture={microphone}%noloop",
        ]
    return playwright.chromium.launch(executable_path=executable(), args=options)


@contextmanager
def chromium(microphone: Path | None = None) -> Iterator[Browser]:
    """A browser for one test."""
    with sync_playwright() as playwright:
        browser = launch(playwright, microphone)
        try:
            yield browser
        finally:
            browser.close()
