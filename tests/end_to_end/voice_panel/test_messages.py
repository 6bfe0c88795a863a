"""Messages that are typed, and images."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from tests.support.panel_harness import Event, PanelServer, panel_json
from tests.support.panel_page import Open, attach, notices, paste, picture, reply, shows, state_is, talk, write

pytestmark = pytest.mark.browser


def test_a_typed_message_needs_no_microphone(open_panel: Open, server: PanelServer) -> None:
    page = open_panel("delete Navigator.prototype.mediaDevices;")
    page.fill("[data-part=text]", "hello")
    page.press("[data-part=text]", "Shift+Enter")
    page.type("[data-part=text]", "<i>you</i>")
    page.press("[data-part=text]", "Enter")
    server.wait("response.create")
    create, respond = server.events
    assert create["item"]["role"] == "user"
    assert create["item"]["content"] == [{"type": "input_text", "text": "hello\n<i>you</i>"}]
    assert respond["type"] == "response.create"
    assert page.input_value("[data-part=text]") == ""
    shows(page, "<i>you</i>")
    state_is(page, "thinking")
    reply(server, "a", 1.0, item=create["item"]["id"])
    assert server.wait("turn.played")["playback_ms"] >= 0
    write(page, "another")
    server.wait("response.create", 2)
    kinds = [kind for kind in server.types[2:] if kind != "turn.played"]
    assert kinds == [
        "conversation.item.truncate",
        "response.cancel",
        "conversation.item.create",
        "response.create",
    ], "what still plays is stopped first"


def test_a_refused_message_comes_back_into_its_box(open_panel: Open, server: PanelServer) -> None:
    def refuse(event: Event) -> list[Event]:
        error = {"code": "still_loading", "message": "Still loading.", "event_id": event["event_id"]}
        return [{"type": "error", "error": error}] if event["type"] == "response.create" else []

    server.answers = refuse
    page = open_panel()
    write(page, "hello")
    shows(page, "Still loading.")
    page.wait_for_function("document.querySelector('[data-part=text]').value === 'hello'")
    assert server.wait("conversation.item.delete")["item_id"] == server.events[0]["item"]["id"]
    page.click(".talk-notice button")
    assert notices(page) == []


def test_images_are_attached_pasted_and_taken_away(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    attach(page, picture())
    page.wait_for_selector(".talk-thumb img[src^='data:image/png']")
    page.click("[data-part=remove]")
    assert page.is_hidden(".talk-thumb")
    paste(page, picture())
    page.wait_for_selector(".talk-thumb img[src]")
    write(page, "what is this?")
    content = server.wait("conversation.item.create")["item"]["content"]
    assert [part["type"] for part in content] == ["input_image", "input_text"]
    assert content[0]["image_url"].startswith("data:image/png;base64,")
    assert page.is_hidden(".talk-thumb") and page.is_visible(".talk-captions img")


def test_an_image_goes_with_what_is_said_next(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    talk(page, server)
    attach(page, picture())
    page.wait_for_selector(".talk-thumb img[src]")
    server.send({"type": "input_audio_buffer.speech_started", "item_id": "i", "audio_start_ms": 1})
    content = server.wait("conversation.item.create")["item"]["content"]
    assert [part["type"] for part in content] == ["input_image"]
    assert server.types == ["conversation.item.create"], "the speech itself asks for the answer"
    assert page.is_visible(".talk-captions img") and page.is_hidden(".talk-thumb")


def test_large_images_are_made_smaller_and_what_cannot_be_sent_is_said(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    attach(page, b"text", "text/plain")
    shows(page, "not an image")
    page.click(".talk-notice button")
    attach(page, b"no PNG, whatever its name says")
    shows(page, "not an image")
    assert page.is_hidden(".talk-thumb")
    attach(page, b"0" * 2_000_001)
    shows(page, "too large")
    noise = np.random.default_rng(0).integers(0, 256, (250, 2200, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, "PNG")
    assert 1_000_000 < len(file.getvalue()) < 2_000_000
    attach(page, file.getvalue())
    page.wait_for_selector(".talk-thumb img[src^='data:image/jpeg']")
    assert page.evaluate("document.querySelector('.talk-thumb img').naturalWidth") == 1600
    write(page, "x" * 201)
    shows(page, "has 201 characters, and 200 is the most")
    assert server.types == []


def test_a_message_that_was_not_answered_when_the_connection_broke_is_not_lost(
    open_panel: Open, server: PanelServer
) -> None:
    page = open_panel()
    write(page, "did you get this?")
    server.wait("response.create")
    server.reachable = False
    server.drop()
    page.wait_for_function("document.querySelector('[data-part=text]').value === 'did you get this?'")


def test_while_the_engines_load_nothing_is_sent(open_panel: Open, server: PanelServer) -> None:
    page = open_panel(value=panel_json(ready=False))
    shows(page, "Getting ready")
    assert page.is_disabled(".talk-button")
    write(page, "early")
    shows(page, "still getting ready")
    assert page.input_value("[data-part=text]") == "early" and server.tokens == []
    page.evaluate("value => window.harness.set(value)", panel_json())
    assert page.is_enabled(".talk-button")
    page.press("[data-part=text]", "Enter")
    server.wait("response.create")
