"""`python app.py` with the embedded engines, in a process of its own, used through headless Chromium."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page

from spoken_chat.settings import ROOT
from tests.support.browser import chromium
from tests.support.speech import english_question

pytestmark = [pytest.mark.browser, pytest.mark.engines]
READY_S = 180
ANSWER_MS = 120_000


@dataclass
class Running:
    url: str
    process: subprocess.Popen[str]


def children_of(pid: int) -> set[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return {int(word) for word in found.stdout.split()}


@pytest.fixture(scope="module")
def app() -> Iterator[Running]:
    """The app as a user starts it, without a voice service to ask; ended by Ctrl-C."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SPOKEN_CHAT_")}
    process = subprocess.Popen(
        [sys.executable, "app.py", "--port", "0", "--tts-engine", "kokoro"],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    said = process.stdout.readline()
    address = re.search(r"http://[\d.:]+", said)
    assert address is not None, said
    running = Running(address.group(), process)
    deadline = time.monotonic() + READY_S
    while health(running.url)["status"] != "ready":
        assert time.monotonic() < deadline, health(running.url)
        time.sleep(0.5)
    children = children_of(process.pid)
    assert children, "the embedded model server runs"
    yield running
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "Traceback" not in complaints
    assert not any(Path(f"/proc/{child}").exists() for child in children), "nothing is left behind"


def health(url: str) -> dict:  # type: ignore[type-arg]
    try:
        with urllib.request.urlopen(f"{url}/healthz") as answer:
            return dict(json.load(answer))
    except urllib.error.HTTPError as loading:
        return dict(json.load(loading))


def over(app: Running, page: Page, turns: int) -> list[dict]:  # type: ignore[type-arg]
    """Wait until `turns` turns are over and return their export."""
    page.wait_for_selector("#table a[download]")
    deadline = time.monotonic() + ANSWER_MS / 1000
    while time.monotonic() < deadline:
        with urllib.request.urlopen(f"{app.url}/{page.get_attribute('#table a[download]', 'href')}") as answer:
            found: list[dict] = json.load(answer)["turns"]  # type: ignore[type-arg]
        if [turn["status"] for turn in found].count("completed") == turns:
            return found
        time.sleep(0.2)
    raise AssertionError(found)


def test_health_names_the_engines_in_use(app: Running) -> None:
    stages = health(app.url)["stages"]
    assert "faster-whisper" in stages["asr"]["engine"]
    assert "SmolLM2" in stages["llm"]["engine"]
    assert stages["tts"]["engine"] == "kokoro"


def test_a_person_speaks_and_types_and_hears_answers_with_figures(app: Running, tmp_path: Path) -> None:
    question, words = english_question(tmp_path)
    with chromium() as browser:
        page = browser.new_page(locale="en-US")
        page.set_default_timeout(ANSWER_MS)
        page.goto(app.url)
        page.wait_for_selector('#status [data-status="ready"]')
        page.click("#recording-box button.label-wrap")
        page.click('#recording button[aria-label="Upload file"], #recording button.center')
        page.set_input_files("#recording input[type=file]", str(question))
        page.wait_for_function(
            "word => document.querySelector('#transcript').innerText.toLowerCase().includes(word)", arg=words
        )
        page.wait_for_function("() => window.spokenChat.secondsQueued > 0.3")
        over(app, page, 1)
        page.fill("#voice-panel textarea", "I had a very good day.")
        page.press("#voice-panel textarea", "Enter")
        spoken, typed = over(app, page, 2)
        page.wait_for_function("() => document.querySelectorAll('#table tr[data-turn]').length === 2")
        page.wait_for_timeout(500)
        rows = page.eval_on_selector_all(
            "#table tr[data-turn] [data-metric]", "cells => cells.map(cell => [cell.dataset.metric, cell.innerText])"
        )
    assert spoken["metrics"]["asr_ms"] > 0
    assert typed["metrics"]["asr_ms"] is None
    for turn in (spoken, typed):
        assert turn["status"] == "completed"
        assert turn["reply"]
        assert turn["metrics"]["ttft_ms"] > 0
        assert turn["metrics"]["first_audio_ms"] > 0
        assert turn["metrics"]["completion_tokens"] > 0
        assert ["ttft_ms", f"{turn['metrics']['ttft_ms']:.1f}"] in rows
    assert typed["metrics"]["cached_tokens"] > 0, "the persona prefix was cached by the turn before"
