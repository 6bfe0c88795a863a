"""The page in headless Chromium, over the real web app with scripted engines."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from spoken_chat.audio.pcm import wav_bytes
from spoken_chat.ui.table import COLUMNS
from tests.support.app import Served, served
from tests.support.browser import chromium
from tests.support.engines import ScriptedModel, chat_error

pytestmark = pytest.mark.browser
TIMEOUT_MS = 20_000


def tone(path: Path, seconds: float = 2.0) -> Path:
    """A file of sound; scripted ears hear their own words in anything."""
    samples = (np.sin(np.arange(int(16_000 * seconds)) * 0.1) * 9000).astype(np.int16)
    path.write_bytes(wav_bytes(samples, 16_000))
    return path


@pytest.fixture(scope="module")
def app() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(microphone=tone(tmp_path_factory.mktemp("mic") / "mic.wav", 30)) as running:
        yield running


@pytest.fixture(autouse=True)
def fresh_script(app: Served) -> None:
    app.engines.brain = ScriptedModel(
        time.monotonic, ["[happy] Hello to ", "you. I am ", "scripted <b>and</b> plain."], gap=0.02
    )


Open = Callable[..., Page]


@pytest.fixture
def open_page(app: Served, browser: Browser) -> Iterator[Open]:
    """Opens the page in a context of its own and checks at the end that nothing went wrong in it."""
    contexts = []
    complaints: list[str] = []

    def open_it(locale: str = "en-US", wait: str = "ready", blocked: str = "", **options: object) -> Page:
        context = browser.new_context(locale=locale, permissions=["microphone"], **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        if blocked:
            page.route(blocked, lambda route: route.abort())
        else:
            page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((app.url, "blob:", "data:")) else complaints.append(request.url)
            ),
        )
        page.goto(app.url)
        if wait:
            page.wait_for_selector("#voice-panel textarea:visible")
            page.wait_for_selector(f'#status [data-status="{wait}"]')
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert complaints == [], "no script error, and no request to any other host"


def write(page: Page, text: str) -> None:
    page.fill("#voice-panel textarea", text)
    page.press("#voice-panel textarea", "Enter")


def hand_in(page: Page, recording: Path) -> None:
    """Give the page a recording, from the box that is closed at first."""
    page.click("#recording-box button.label-wrap")
    page.click('#recording button[aria-label="Upload file"], #recording button.center')
    page.set_input_files("#recording input[type=file]", str(recording))


def transcript_holds(page: Page, text: str) -> None:
    page.wait_for_function("text => document.querySelector('#transcript').innerText.includes(text)", arg=text)


def turn_is_over(page: Page, turns: int = 1) -> None:
    """The table shows `turns` turns, and the last one's tokens have come."""
    page.wait_for_function(
        "n => document.querySelectorAll('#table tr[data-turn]').length === n"
        " && document.querySelector('#card [data-metric=completion_tokens]').innerText !== ''",
        arg=turns,
    )


def exported(page: Page, app: Served) -> list[dict]:  # type: ignore[type-arg]
    link = page.get_attribute("#table a[download]", "href")
    with urllib.request.urlopen(f"{app.url}/{link}") as answer:
        turns: list[dict] = json.load(answer)["turns"]  # type: ignore[type-arg]
    return turns


def shown(page: Page, where: str) -> dict[str, str]:
    cells = page.eval_on_selector_all(where, "cells => cells.map(cell => [cell.dataset.metric, cell.innerText])")
    return dict(cells)


def test_typing_brings_an_answer_that_is_read_heard_and_measured(open_page: Open) -> None:
    page = open_page()
    write(page, "hello you")
    transcript_holds(page, "hello you")
    transcript_holds(page, "Hello to you. I am scripted")
    turn_is_over(page)
    page.wait_for_function("() => window.spokenChat.secondsQueued >= 2")
    page.wait_for_function("() => document.querySelector('#table tr[data-turn] [data-metric=v2v_ms]').innerText !== ''")
    figures = shown(page, "#card [data-metric]")
    assert figures["asr_ms"] == "", "nothing was recognised, so nothing was measured"
    assert float(figures["ttft_ms"]) >= 25
    assert figures["completion_tokens"] == "24"
    assert page.locator("#card .sc-seg").count() >= 2


def test_the_page_shows_the_figures_of_the_export(open_page: Open, app: Served) -> None:
    page = open_page()
    for number in range(1, 4):
        write(page, f"number {number}")
        turn_is_over(page, number)
        page.wait_for_function(
            "() => document.querySelector('#table tr[data-turn] [data-metric=v2v_ms]').innerText !== ''"
        )
    turns = exported(page, app)
    for turn in turns:
        cells = shown(page, f'#table tr[data-turn="{turn["id"]}"] [data-metric]')
        assert len(cells) == len(COLUMNS)
        for name, text in cells.items():
            assert (float(text) if text else None) == turn["metrics"][name]
    ttfts = sorted(turn["metrics"]["ttft_ms"] for turn in turns)
    assert float(shown(page, "#table .sc-median [data-metric]")["ttft_ms"]) == ttfts[1]


def test_a_recording_is_answered(open_page: Open, tmp_path: Path) -> None:
    page = open_page()
    hand_in(page, tone(tmp_path / "speech.wav"))
    transcript_holds(page, "what is your name")
    turn_is_over(page)
    assert float(shown(page, "#card [data-metric]")["asr_ms"]) >= 50
    page.wait_for_function("() => document.querySelector('#card [data-metric=v2v_ms]').innerText !== ''")


def test_a_recording_is_answered_although_the_panel_never_came(open_page: Open, tmp_path: Path) -> None:
    page = open_page(wait="", blocked="**/talk-assets/**")
    page.wait_for_selector('#status [data-status="ready"]')
    hand_in(page, tone(tmp_path / "speech.wav"))
    transcript_holds(page, "what is your name")
    transcript_holds(page, "Hello to you. I am scripted")
    turn_is_over(page)
    page.wait_for_function("() => document.querySelector('#again').innerText.includes('0:02')")


def test_a_file_that_is_no_recording_gets_one_sentence(open_page: Open, tmp_path: Path) -> None:
    page = open_page()
    bad = tmp_path / "speech.wav"
    bad.write_bytes(b"this is no sound at all" * 50)
    hand_in(page, bad)
    transcript_holds(page, "⚠️")
    assert "Traceback" not in page.inner_text("body")
    write(page, "still there?")
    transcript_holds(page, "scripted")


def test_messages_sent_faster_than_answers_come_are_all_kept_and_the_last_is_answered(
    open_page: Open, app: Served
) -> None:
    app.engines.brain = ScriptedModel(time.monotonic, ["Wait for it. ", "And here it is."], first=0.8)
    page = open_page()
    for number in range(8):
        write(page, f"message {number}")
    for number in range(8):
        transcript_holds(page, f"message {number}")
    transcript_holds(page, "And here it is.")
    assert page.input_value("#voice-panel textarea") == ""
    assert "message 7" in json.dumps(app.engines.brain.requests[-1])


def test_stopping_the_reply_ends_the_turn_and_shows_what_was_heard(open_page: Open, app: Served) -> None:
    app.engines.brain = ScriptedModel(time.monotonic, ["This is one more sentence. "] * 2000, gap=0.02)
    page = open_page()
    write(page, "talk on")
    page.wait_for_function("() => window.spokenChat.playing")
    page.click("#voice-panel [data-part=stop]")
    transcript_holds(page, "stopped")
    page.wait_for_function("() => !window.spokenChat.playing")
    assert app.engines.brain.closed == 1
    assert exported(page, app)[0]["status"] == "cancelled"


def test_closing_the_tab_stops_the_turn(open_page: Open, app: Served) -> None:
    app.engines.brain = model = ScriptedModel(time.monotonic, ["This is one more sentence. "] * 2000, gap=0.02)
    page = open_page()
    write(page, "talk on")
    transcript_holds(page, "one more sentence")
    page.close()
    deadline = time.monotonic() + 20
    while not model.closed and time.monotonic() < deadline:
        time.sleep(0.05)
    assert model.closed == 1


@pytest.mark.parametrize("code", ["llm_unreachable", "llm_timeout"])
def test_a_fault_is_one_sentence_and_the_next_turn_works(open_page: Open, app: Served, code: str) -> None:
    app.engines.brain.refusals.append(chat_error(code))
    page = open_page()
    write(page, "hello")
    transcript_holds(page, f"Something is wrong ({code}); try again.")
    assert "Traceback" not in page.inner_text("body")
    write(page, "again")
    transcript_holds(page, "scripted")


def test_text_received_before_a_fault_stays_on_the_page(open_page: Open, app: Served) -> None:
    app.engines.brain.fault = chat_error("llm_dropped")
    page = open_page()
    write(page, "hello")
    transcript_holds(page, "Something is wrong (llm_dropped)")
    transcript_holds(page, "Hello to you. I am scripted")


def test_markup_in_words_and_replies_stays_text(open_page: Open, app: Served) -> None:
    hostile = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script> ${1+1} {{7*7}}'
    app.engines.brain = ScriptedModel(time.monotonic, ["You said: ", hostile])
    page = open_page()
    write(page, hostile)
    transcript_holds(page, "You said: <img src=x")
    turn_is_over(page)
    assert page.evaluate("window.hacked") is None
    assert page.locator("#transcript img").count() == 0
    assert "${1+1} {{7*7}}" in page.inner_text("#transcript")


def test_an_image_goes_along_and_its_tokens_are_shown(open_page: Open, app: Served, tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    Image.new("RGB", (800, 600), "teal").save(path)
    page = open_page()
    page.set_input_files("#voice-panel input[type=file]", str(path))
    page.wait_for_selector("#voice-panel [data-part=thumb]:visible")
    write(page, "what is this?")
    turn_is_over(page)
    parts = app.engines.brain.requests[-1][-1]["content"]
    assert [part["type"] for part in parts] == ["image_url", "text"]
    tokens = exported(page, app)[0]["image_tokens"]
    assert f"{tokens} image tokens" in page.inner_text("#card")


def test_a_model_that_cannot_see_says_so_and_still_answers(open_page: Open, app: Served, tmp_path: Path) -> None:
    app.engines.brain.vision = False
    path = tmp_path / "photo.png"
    Image.new("RGB", (800, 600), "teal").save(path)
    page = open_page()
    page.set_input_files("#voice-panel input[type=file]", str(path))
    page.wait_for_selector("#voice-panel [data-part=thumb]:visible")
    write(page, "what is this?")
    transcript_holds(page, "This model cannot see")
    transcript_holds(page, "scripted")


def test_a_chinese_browser_gets_a_chinese_page(open_page: Open) -> None:
    page = open_page(locale="zh-CN")
    page.wait_for_function("() => document.body.innerText.includes('重新开始')")
    assert "语音聊天" in page.inner_text("#title")
    assert "就绪" in page.inner_text("#status")
    write(page, "你好")
    page.wait_for_function("() => document.querySelector('#table').innerText.includes('首声')")


def test_another_persona_brings_its_voices_and_greeting(open_page: Open, app: Served) -> None:
    page = open_page()
    opening = app.engines.opening_persona
    other = next(persona for persona in app.engines.personas.values() if persona.id != opening.id)
    page.click("#persona input")
    page.get_by_role("option", name=other.name, exact=True).click()
    transcript_holds(page, other.greeting[:12])
    page.wait_for_function("name => document.querySelector('#voice input').value === name", arg=other.voices[0].name)
    write(page, "hi")
    turn_is_over(page)
    assert app.engines.brain.requests[-1][0]["content"] == other.prefix
    page.click("#persona input")
    page.get_by_role("option", name=opening.name, exact=True).click()
    page.wait_for_function("name => document.querySelector('#voice input').value === name", arg=opening.voices[0].name)
    assert page.locator(".toast-body").count() == 0


def test_a_new_conversation_is_empty(open_page: Open, app: Served) -> None:
    page = open_page()
    write(page, "remember me")
    turn_is_over(page)
    page.click("#restart button, button#restart")
    page.wait_for_function("() => !document.querySelector('#transcript').innerText.includes('remember me')")
    page.wait_for_function("() => document.querySelectorAll('#table tr[data-turn]').length === 0")
    write(page, "anew")
    turn_is_over(page)
    examples = app.engines.opening_persona.examples
    assert len(app.engines.brain.requests[-1]) == 1 + 2 * len(examples) + 1
    assert "remember me" not in json.dumps(app.engines.brain.requests[-1])


def test_a_phone_sees_everything_without_scrolling_sideways(open_page: Open) -> None:
    page = open_page(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    write(page, "hello")
    turn_is_over(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_line_shows_what_is_loading_and_a_turn_waits_politely(browser: Browser) -> None:
    with served(hold_loading=True) as slow:
        context = browser.new_context(locale="en-US")
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(slow.url)
        page.wait_for_selector('#status [data-status="loading"]')
        assert page.locator("#status .sc-loading").count() == 1
        page.wait_for_selector('#voice-panel [data-ready="false"]')
        write(page, "too early")
        page.wait_for_function("() => document.querySelector('#voice-panel').innerText.includes('still getting ready')")
        assert page.input_value("#voice-panel textarea") == "too early", "nothing is lost"
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{slow.url}/healthz")
        health = json.load(refused.value)
        assert (refused.value.code, health["status"], health["stages"]["asr"]["status"]) == (503, "loading", "loading")
        slow.engines.loaded.set()
        page.wait_for_selector('#status [data-status="ready"]')
        page.wait_for_selector('#voice-panel [data-ready="true"]')
        page.press("#voice-panel textarea", "Enter")
        transcript_holds(page, "too early")
        with urllib.request.urlopen(f"{slow.url}/healthz") as answer:
            health = json.load(answer)
        assert health["status"] == "ready"
        assert re.match(r"\d+\.", health["versions"]["gradio"])
        context.close()


def test_the_export_of_strangers_is_not_found(app: Served) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{app.url}/v1/sessions/guess/turns")
    assert refused.value.code == 404


def test_the_settings_change_the_talk_and_the_panel(open_page: Open) -> None:
    page = open_page()
    page.click("#settings button.label-wrap")
    page.wait_for_selector("#wait_finished:visible")
    assert not page.is_visible("#wait input")
    page.get_by_label("Fixed wait").check()
    page.wait_for_selector("#wait input:visible")
    assert not page.is_visible("#wait_finished input")
    page.get_by_label("By hand").check()
    page.wait_for_function("() => document.querySelector('#voice-panel').innerText.includes('Hold to talk')")
    assert not page.is_visible("#wait input")


def test_a_wait_that_another_one_must_follow_moves_it(open_page: Open) -> None:
    page = open_page()
    page.click("#settings button.label-wrap")
    page.wait_for_selector("#wait_finished:visible")
    page.fill("#wait_finished input[type=number]", "3")
    page.press("#wait_finished input[type=number]", "Enter")
    page.wait_for_function("() => document.querySelector('#wait_unfinished input[type=number]').value === '3'")
