"""The head of the page says how far each engine is, and whatever comes from elsewhere is text."""

from __future__ import annotations

import pytest

from spoken_chat.engines import STAGES, StageName
from spoken_chat.server.start_log import STAGES as STEPS
from spoken_chat.stage_state import Progress, StageState
from spoken_chat.ui.faults import FAULTS_ZH
from spoken_chat.ui.status import loading_line, progress_text, title_view
from spoken_chat.ui.text import word
from tests.support.markup import read
from tests.support.turns import HOSTILE

LANGUAGES = ["en", "zh"]


def states(**given: StageState) -> dict[StageName, StageState]:
    return {name: given.get(name, StageState("ready", "engine")) for name in STAGES}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("status", ["waiting", "loading"])
def test_a_stage_that_is_not_there_yet_is_marked_and_the_line_says_loading(status: str, language: str) -> None:
    line = read(loading_line(states(llm=StageState(status)), language))  # type: ignore[arg-type]
    (whole,) = line.find("div")
    assert whole.attributes["data-status"] == "loading"
    assert line.find("b")[0].text == word("loading", language)
    (stage,) = line.find("span", class_=f"sc-stage sc-{status}")
    assert stage.text == word("stage_llm", language)
    assert len(line.find("span", class_="sc-stage sc-ready")) == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_when_all_are_ready_the_line_says_so_with_the_engines(language: str) -> None:
    line = read(loading_line(states(asr=StageState("ready", "faster-whisper base")), language))
    assert line.find("div")[0].attributes["data-status"] == "ready"
    assert line.find("b")[0].text == word("ready", language)
    assert [span.text for span in line.find("span")] == [
        f"{word('stage_asr', language)} · faster-whisper base",
        f"{word('stage_llm', language)} · engine",
        f"{word('stage_tts', language)} · engine",
    ]


@pytest.mark.parametrize("step", [*STEPS, "warming_up"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_long_start_says_which_step_it_is_in(step: str, language: str) -> None:
    loading = StageState("loading", progress=Progress(step, None, 12.3, None))
    (stage,) = read(loading_line(states(llm=loading), language)).find("span", class_="sc-stage sc-loading")
    assert word(f"step_{step}", language) in stage.text and "12" in stage.text


def test_it_says_how_far_it_is_and_how_long_it_took_last_time() -> None:
    told = progress_text(Progress("loading", 45, 35.2, 95.4), "en")
    assert told == "loading the weights 45 % · 35 s of about 95 s"
    assert progress_text(Progress("warming_up", None, 0.0, None), "en") == "reading the personas"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_stage_that_failed_says_why_in_the_language_of_the_page(language: str) -> None:
    failed = StageState("failed", code="llm_unreachable", detail="The server at 127.0.0.1:9 is not there; start it.")
    line = read(loading_line(states(llm=failed), language))
    (stage,) = line.find("span", class_="sc-stage sc-failed")
    reason = FAULTS_ZH["llm_unreachable"] if language == "zh" else failed.detail
    assert stage.text == f"{word('stage_llm', language)}: {word('failed', language)}. {reason}"
    assert line.find("div")[0].attributes["data-status"] != "ready"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_notice_of_a_ready_stage_is_shown_in_the_language_of_the_page(language: str) -> None:
    voice = StageState("ready", "kokoro", "tts_fallback", "The local voice speaks.")
    line = read(loading_line(states(tts=voice), language))
    assert (FAULTS_ZH["tts_fallback"] if language == "zh" else "The local voice speaks.") in line.text


@pytest.mark.parametrize("status", ["ready", "failed"])
def test_hostile_engines_and_faults_are_text(status: str) -> None:
    state = StageState(status, HOSTILE, "unheard_of", HOSTILE)  # type: ignore[arg-type]
    line = read(loading_line(states(llm=state), "zh"))
    assert HOSTILE in line.text
    assert not line.names() & {"img", "script"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_title_is_in_the_language_of_the_page(language: str) -> None:
    title = read(title_view(language))
    assert title.find("h1")[0].text == word("title", language)
    assert title.find("p")[0].text == word("tagline", language)


@pytest.mark.parametrize(
    ("progress", "english", "chinese"),
    [
        (Progress("capturing", 50, 12.0, None), "capturing CUDA graphs 50 % · 12 s", "正在录制 CUDA 图 50 % · 12 秒"),
        (
            Progress("loading", 0, 35.2, 95.4),
            "loading the weights 0 % · 35 s of about 95 s",
            "正在载入权重 0 % · 35 秒，大约要 95 秒",
        ),
        (Progress("compiling", None, 40.0, 30.0), "compiling · 40 s of about 30 s", "正在编译 · 40 秒，大约要 30 秒"),
        (Progress("starting", None, 0.0, 95.0), "starting", "正在启动"),
    ],
)
def test_the_progress_of_a_start_is_told_in_the_language_of_the_page(
    progress: Progress, english: str, chinese: str
) -> None:
    assert (progress_text(progress, "en"), progress_text(progress, "zh")) == (english, chinese)
    line = read(loading_line(states(llm=StageState("loading", "vLLM", progress=progress)), "en"))
    (stage,) = line.find("span", class_="sc-stage sc-loading")
    assert stage.text == f"{word('stage_llm', 'en')} · vLLM · {english}"


def test_a_failed_stage_says_why_and_no_longer_how_far_it_was() -> None:
    failed = StageState("failed", code="vllm_crashed", detail="It ended.", progress=Progress("loading", 45, 35, 95))
    line = read(loading_line(states(llm=failed), "en"))
    assert "It ended." in line.text and "45 %" not in line.text


def test_no_two_steps_of_a_start_are_called_the_same() -> None:
    for language in LANGUAGES:
        assert len({word(f"step_{step}", language) for step in [*STEPS, "warming_up"]}) == len(STEPS) + 1
