"""What the tests of the voice panel do and look at, in its page."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final

from PIL import Image
from playwright.sync_api import Page

from tests.support.panel_harness import PanelServer, delta, tone, turn_started, words

DEVICE_RATE: Final = 48_000
FREQUENCY: Final = 440
LEVEL: Final = 9000
"""Of the tone that the browser's microphone hears."""

PLAIN_MICROPHONE = """
const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = (asked) => {
  window.asked = asked;  // Chromium's own processing would take a steady tone for noise
  return real({ audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
};
"""

Open = Callable[..., Page]


def state_is(page: Page, state: str) -> None:
    page.wait_for_function("state => window.spokenChat.state === state", arg=state)


def shows(page: Page, text: str) -> None:
    page.wait_for_function("text => document.querySelector('.talk').innerText.includes(text)", arg=text)


def notices(page: Page) -> list[str]:
    return page.locator(".talk-notice > span").all_inner_texts()


def talk(page: Page, server: PanelServer) -> None:
    """Tap, and be listened to."""
    page.click(".talk-button")
    server.wait("input_audio_buffer.append")
    state_is(page, "listening")


def reply(server: PanelServer, name: str, seconds: float = 5.0, **started: Any) -> None:
    """A reply of that length arrives at once, ahead of time."""
    server.send(turn_started(name, **started), words(f"resp_{name}", f"reply {name}"))
    for _ in range(round(seconds * 4)):
        server.send(delta(f"resp_{name}", tone(300, 0.25)))


def write(page: Page, text: str) -> None:
    page.fill("[data-part=text]", text)
    page.press("[data-part=text]", "Enter")


def picture(width: int = 60, height: int = 40) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), "teal").save(file, "PNG")
    return file.getvalue()


def attach(page: Page, content: bytes, kind: str = "image/png") -> None:
    page.set_input_files("[data-part=file]", {"name": "file", "mimeType": kind, "buffer": content})


def paste(page: Page, content: bytes) -> None:
    """A PNG from the clipboard, over the text box."""
    page.evaluate(
        """async (bytes) => {
          const data = new DataTransfer();
          data.items.add(new File([Uint8Array.from(bytes)], "pasted.png", { type: "image/png" }));
          const paste = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
          document.querySelector("[data-part=text]").dispatchEvent(paste);
        }""",
        list(content),
    )
