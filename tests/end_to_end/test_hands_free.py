"""Hands-free talk in headless Chromium over the real app: its page, WebSocket, detector and smart-turn model.

The microphone hears recorded or synthesised speech from a file; recognition, model and voice are scripted.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from spoken_chat.audio import ASR_RATE
from spoken_chat.audio.pcm import to_pcm16, wav_bytes
from spoken_chat.talk.ears import Ears
from spoken_chat.talk.registry import OpenTalk
from spoken_chat.ui.options import SWITCHES
from tests.support import speech
from tests.support.app import Served, served
from tests.support.browser import chromium
from tests.support.engines import ScriptedSynthesizer
from tests.support.panel_page import PLAIN_MICROPHONE, notices, paste, picture, shows, write

pytestmark = pytest.mark.browser
TIMEOUT_MS = 25_000

Talk = Callable[..., Page]


@pytest.fixture
def app() -> Iterator[Served]:
    with served() as running:
        running.engines.listening = Ears()
        yield running


@pytest.fixture
def open_page(app: Served, tmp_path: Path) -> Iterator[Talk]:
    """Opens the page with a microphone that hears `pattern`: seconds of speech, and of silence where negative."""
    complaints: list[str] = []
    with ExitStack() as closing:

        def open_it(*pattern: float, **options: Any) -> Page:
            browser = closing.enter_context(chromium(microphone=microphone(tmp_path / "mic.wav", pattern)))
            context = browser.new_context(**{"permissions": ["microphone"], **options})
            page = context.new_page()
            page.set_default_timeout(TIMEOUT_MS)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.add_init_script(PLAIN_MICROPHONE)
            page.goto(app.url)
            page.wait_for_selector('#status [data-status="ready"]')
            page.wait_for_selector(".talk-button")
            return page

        yield open_it
    assert complaints == []


def microphone(path: Path, pattern: tuple[float, ...]) -> Path:
    said = speech.long_speech("en", max(pattern))
    lengths = [round(seconds * ASR_RATE) for seconds in pattern]
    # Each piece has the recording's first words: speech cut out of its middle may be too faint for the detector.
    pieces = [said[:length] if length > 0 else np.zeros(-length, np.float32) for length in lengths]
    path.write_bytes(wav_bytes(to_pcm16(np.concatenate(pieces)), ASR_RATE))
    return path


def state_is(page: Page, state: str) -> None:
    page.wait_for_function("state => window.spokenChat.state === state", arg=state)


def exported(app: Served, page: Page) -> list[dict[str, Any]]:
    page.wait_for_selector("#table a[download]")
    link = page.get_attribute("#table a[download]", "href")
    with urllib.request.urlopen(f"{app.url}/{link}") as answer:
        turns: list[dict[str, Any]] = json.load(answer)["turns"]
    return turns


def has_turns(page: Page, count: int) -> None:
    page.wait_for_function("count => document.querySelectorAll('#table tr[data-turn]').length === count", arg=count)


def talk_of(app: Served, page: Page) -> OpenTalk:
    """The talk of the page, by the address of its export."""
    session_id = (page.get_attribute("#table a[download]", "href") or "").split("/")[2]
    opened = app.talks.by_session(session_id)
    assert opened is not None
    return opened


def true_soon(page: Page, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while not condition():
        assert time.monotonic() < deadline
        page.wait_for_timeout(20)


def v2v_is_shown(page: Page) -> None:
    page.wait_for_function("() => document.querySelector('#card [data-metric=v2v_ms]')?.textContent")


def test_one_tap_then_speech_is_answered_and_the_page_shows_what_the_export_says(app: Served, open_page: Talk) -> None:
    page = open_page(-1, 2.5, -60)
    page.click(".talk-button")
    state_is(page, "speaking")
    has_turns(page, 1)
    v2v_is_shown(page)
    state_is(page, "listening")
    (turn,) = exported(app, page)
    assert turn["kind"] == "hands_free" and turn["speculation"] == "hit" and turn["order"] == "first"
    figures = turn["metrics"]
    parts = ("endpoint_delay_ms", "first_audio_ms", "wire_ms", "playback_ms")
    assert sum(figures[name] for name in parts) == pytest.approx(figures["v2v_ms"], abs=0.3)
    for name in ("v2v_ms", "endpoint_delay_ms", "first_audio_ms", "ttft_ms", "asr_ms"):
        shown = page.locator(f"#card [data-metric={name}]").first.inner_text()
        assert float(shown.split()[0]) == figures[name]
    text = page.inner_text("#transcript")
    assert "what is your name" in text and "scripted <b>and</b> plain." in text
    captions = page.inner_text(".talk-captions")
    assert "what is your name" in captions and "Hello to you." in captions


def test_speech_over_the_reply_silences_it_and_is_answered(app: Served, open_page: Talk) -> None:
    app.engines.mouth = ScriptedSynthesizer(seconds=9.0, amplitude=100, name="kokoro")
    page = open_page(-1, 2.5, -4, 3, -60)
    page.click(".talk-button")
    state_is(page, "speaking")
    state_is(page, "hearing")
    assert not page.evaluate("window.spokenChat.playing")
    has_turns(page, 2)
    first, second = exported(app, page)
    assert first["interrupted"]
    assert second["kind"] == "hands_free"
    history = app.engines.brain.requests[-1]
    assert history[-3]["role"] == "user" and len(history[-2]["content"]) < len("[happy] " + first["reply"])
    page.click(".talk-button")
    state_is(page, "off")


def test_a_lost_connection_comes_back_to_the_same_conversation(app: Served, open_page: Talk) -> None:
    page = open_page(-1, 2.5, -9, 2.5, -60)
    page.click(".talk-button")
    has_turns(page, 1)
    state_is(page, "listening")
    page.context.set_offline(True)
    page.evaluate("() => window.dispatchEvent(new Event('offline'))")
    state_is(page, "lost")
    assert "connection" in page.inner_text(".talk").lower()
    page.context.set_offline(False)
    page.evaluate("() => window.dispatchEvent(new Event('online'))")
    state_is(page, "listening")
    has_turns(page, 2)
    assert [turn["status"] for turn in exported(app, page)] == ["completed", "completed"]
    assert len(app.engines.brain.requests[-1]) >= 4, "the model sees the turn from before the break"


def test_after_the_app_was_started_again_one_tap_begins_another_conversation(tmp_path: Path) -> None:
    with chromium(microphone=microphone(tmp_path / "mic.wav", (-1, 2.5, -60))) as browser:
        page = browser.new_context(permissions=["microphone"]).new_page()
        page.set_default_timeout(TIMEOUT_MS)
        # Gradio reloads a page by itself that was waiting for an answer as it went away, and others not: not here.
        page.route("**/app_id*", lambda route: route.abort())
        with served() as before:
            page.goto(before.url)
            page.wait_for_selector('#status [data-status="ready"]')
            write(page, "hello before")
            has_turns(page, 1)
        state_is(page, "lost")
        with served(port=int(before.url.rsplit(":", 1)[1])) as after:
            shows(page, "as after a restart")
            assert len(notices(page)) == 1
            with page.expect_navigation():
                page.click(".talk-button")
            page.wait_for_selector('#status [data-status="ready"]')
            page.wait_for_selector(".talk-button")
            assert notices(page) == [] and "hello before" not in page.inner_text(".talk")
            write(page, "hello after")
            has_turns(page, 1)
            assert [turn["transcript"] for turn in exported(after, page)] == ["hello after"]
            page.wait_for_function("() => !document.querySelector('#transcript').innerText.includes('before')")
            assert len(after.talks) == 1


def test_a_denied_microphone_is_said_and_typing_still_works(app: Served, open_page: Talk) -> None:
    page = open_page(-1, permissions=[])
    page.evaluate(
        "() => { navigator.mediaDevices.getUserMedia = () =>"
        " Promise.reject(new DOMException('no', 'NotAllowedError')); }"
    )
    page.click(".talk-button")
    page.wait_for_selector(".talk-notice")
    assert "microphone" in page.inner_text(".talk-notice").lower()
    write(page, "hello in writing")
    has_turns(page, 1)
    assert exported(app, page)[0]["kind"] == "typed"


def test_holding_space_leaves_the_pages_settings_as_they_are(app: Served, open_page: Talk) -> None:
    page = open_page(-1, 30)
    page.click("#settings button")
    page.locator("#detection input[value=fixed]").check()
    page.wait_for_selector("#wait input")
    page.click("body", position={"x": 5, "y": 5})
    page.keyboard.down("Space")
    state_is(page, "hearing")
    page.wait_for_timeout(1500)
    page.keyboard.up("Space")
    has_turns(page, 1)
    assert exported(app, page)[0]["kind"] == "push_to_talk"
    assert talk_of(app, page).talk.options.detection == "fixed"


def test_a_pasted_image_reaches_the_model_with_the_words_under_it(app: Served, open_page: Talk) -> None:
    app.engines.brain.vision = True
    page = open_page(-1)
    paste(page, picture())
    page.wait_for_selector(".talk-thumb img[src]")
    write(page, "what is in it")
    has_turns(page, 1)
    asked = app.engines.brain.requests[-1][-1]["content"]
    assert [part["type"] for part in asked] == ["image_url", "text"] and asked[1]["text"] == "what is in it"
    page.wait_for_function("() => document.querySelector('#transcript').innerText.includes('🖼 image')")


def test_two_tabs_are_two_conversations_that_know_nothing_of_each_other(app: Served, open_page: Talk) -> None:
    one = open_page(-1)
    two = one.context.new_page()
    two.goto(app.url)
    two.wait_for_selector('#status [data-status="ready"]')
    for page, text in ((one, "I am the first"), (two, "I am the second")):
        page.wait_for_selector(".talk-button")
        write(page, text)
    for page, own, other in ((one, "first", "second"), (two, "second", "first")):
        has_turns(page, 1)
        assert own in page.inner_text("#transcript") and other not in page.inner_text("#transcript")
        assert len(exported(app, page)) == 1
    two.close()
    assert not any("the first" in str(asked) and "the second" in str(asked) for asked in app.engines.brain.requests)


def test_every_setting_can_be_changed_also_to_nonsense_without_a_complaint_in_the_log(
    app: Served, open_page: Talk, capfd: pytest.CaptureFixture[str]
) -> None:
    page = open_page(-1)
    write(page, "hello")
    has_turns(page, 1)
    opened = talk_of(app, page)
    page.click("#settings button")
    for name in SWITCHES:
        before = getattr(opened.talk.options, name)
        page.locator(f"#{name} input").set_checked(not before)
        true_soon(page, lambda name=name, before=before: getattr(opened.talk.options, name) is not before)
    for typed, kept in (("", "0.4"), ("99", "5"), ("1.5", "1.5")):
        page.fill("#wait_finished input[type=number]", typed)
        page.press("#wait_finished input[type=number]", "Enter")
        page.wait_for_function(
            "kept => document.querySelector('#wait_finished input[type=number]').value === kept", arg=kept
        )
    for detection in ("manual", "fixed", "adaptive"):
        page.locator(f"#detection input[value={detection}]").check()
        true_soon(page, lambda detection=detection: opened.talk.options.detection == detection)
    page.click("#voice input")
    page.locator("[role=option]").last.click()
    true_soon(page, lambda: opened.session.voice == opened.session.persona.voices[-1])
    write(page, "hello again")
    has_turns(page, 2)
    written = "".join(capfd.readouterr())
    assert "Traceback" not in written and "UserWarning" not in written


def test_on_a_phone_the_whole_page_fits_and_can_be_used(open_page: Talk) -> None:
    page = open_page(-1, 2.5, -60, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.tap(".talk-button")
    has_turns(page, 1)
    v2v_is_shown(page)
    width = page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")
    assert width <= 390
    for part in (".talk-button", ".talk-captions", "[data-part=text]", "#card", "#table"):
        box = page.locator(part).first.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 391
