"""What the page does: what it is told may be nonsense, come twice at once, or come from a page that is gone."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from PIL import Image

from spoken_chat.audio import TTS_RATE
from spoken_chat.ui import handlers as page_handlers
from spoken_chat.ui.handlers import MOST_WAIT_MS, Handlers, Updates
from spoken_chat.ui.text import word
from tests.support.app import ScriptedEngines
from tests.support.engines import ScriptedModel
from tests.support.markup import read
from tests.support.visitor import NOT_CUT, Visitor, visit
from tests.support.waiting import WAIT_S, until

pytestmark = pytest.mark.usefixtures("no_browser_to_wait_for")

REPLY = ["One sentence here. ", "Another sentence there."]
ENDLESS = ["This is one more sentence. "] * 2000


# What the page says of its sound


@pytest.mark.parametrize(
    "wait_ms", [math.nan, math.inf, -math.inf, -0.1, MOST_WAIT_MS, 1e300, "12", "", None, [12], {"ms": 12}]
)
async def test_a_wait_that_cannot_be_is_not_believed(visitor: Visitor, wait_ms: object) -> None:
    await visitor.write("hello")
    (turn,) = visitor.session.turns
    figures = await visitor.handlers.played({"turn": turn.id, "wait_ms": wait_ms}, visitor.request)
    assert "browser_play" not in turn.timeline.marks
    assert read(figures["card"]).figures()["first_audio_ms"] != ""
    await visitor.handlers.played({"turn": turn.id, "wait_ms": 20}, visitor.request)
    assert "browser_play" in turn.timeline.marks, "a true word after it is still taken"


@pytest.mark.parametrize(
    "data", [None, "play", 12, [], {}, {"wait_ms": 20}, {"turn": "x", "wait_ms": 20}, {"turn": []}]
)
async def test_a_word_about_no_turn_of_this_page_changes_nothing(visitor: Visitor, data: object) -> None:
    await visitor.write("hello")
    await visitor.handlers.played(data, visitor.request)
    assert "browser_play" not in visitor.session.turns[0].timeline.marks


async def test_a_page_cannot_speak_for_the_turns_of_another(handlers: Handlers) -> None:
    one, other = await visit(handlers, "one"), await visit(handlers, "other")
    await one.write("hello")
    (turn,) = one.session.turns
    await handlers.played({"turn": turn.id, "wait_ms": 20}, other.request)
    assert "browser_play" not in turn.timeline.marks


async def test_the_first_word_about_a_turn_counts_and_shows_in_the_table(visitor: Visitor) -> None:
    await visitor.write("hello")
    (turn,) = visitor.session.turns
    for wait_ms in (20.5, 900):
        figures = await visitor.handlers.played({"turn": turn.id, "wait_ms": wait_ms}, visitor.request)
    marks = turn.timeline.marks
    assert marks["browser_play"] - marks["first_audio_sent"] == pytest.approx(0.0205)
    (row,) = read(figures["table"]).find("tr", data_turn=turn.id)
    assert row.figures()["v2v_ms"] == str(turn.metrics.v2v_ms)


async def test_the_last_drawing_of_a_turn_holds_the_word_of_the_browser(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_handlers, "BROWSER_WORD_S", 100 * WAIT_S)
    writing = asyncio.create_task(visitor.write("hello"))
    await until(lambda: visitor.session.turns and visitor.session.turns[0].status == "completed")
    (turn,) = visitor.session.turns
    await visitor.handlers.played({"turn": turn.id, "wait_ms": 20}, visitor.request)
    async with asyncio.timeout(WAIT_S):
        last = (await writing)[-1]
    (row,) = read(last["table"]).find("tr", data_turn=turn.id)
    assert row.figures()["v2v_ms"] != ""


# Stop


async def test_stopping_the_sound_of_a_finished_turn_keeps_only_what_was_heard(visitor: Visitor) -> None:
    await visitor.write("hello")
    await visitor.handlers.stop(1.0, visitor.request)
    assert visitor.session.conversation.exchanges[0].reply == "One sentence here."


async def test_a_new_turn_cuts_the_one_whose_sound_it_silenced(visitor: Visitor) -> None:
    await visitor.write("hello")
    await visitor.write("and more", heard=1.0)
    replies = [exchange.reply for exchange in visitor.session.conversation.exchanges]
    assert replies == ["One sentence here.", "One sentence here. Another sentence there."]


@pytest.mark.parametrize("heard", [NOT_CUT, -0.5, math.nan, math.inf, None])
async def test_where_nothing_was_cut_off_the_whole_reply_stays(visitor: Visitor, heard: float | None) -> None:
    await visitor.write("hello")
    await visitor.handlers.stop(heard, visitor.request)  # type: ignore[arg-type]
    assert visitor.session.conversation.exchanges[0].reply == "One sentence here. Another sentence there."


async def test_stopping_a_running_turn_keeps_what_was_heard_of_it(visitor: Visitor, engines: ScriptedEngines) -> None:
    engines.brain = model = ScriptedModel(time.monotonic, [*REPLY, " ", *ENDLESS], first=0.0, gap=0.005)
    writing = asyncio.create_task(visitor.write("hello"))
    await until(lambda: visitor.session.turns and len(visitor.session.turns[0].clauses) >= 3)
    turn = visitor.session.turns[0]
    await until(lambda: turn.clauses[1].seconds > 0.99)
    view = await visitor.handlers.stop(2.0, visitor.request)
    assert turn.status == "cancelled"
    assert model.closed == 1
    assert visitor.session.conversation.exchanges[0].reply == "One sentence here. Another sentence there."
    assert view["transcript"][-1]["content"] == "■ stopped"
    await writing
    assert all(turn.status != "running" for turn in visitor.session.turns)


async def test_stopping_when_nothing_runs_changes_nothing(visitor: Visitor) -> None:
    before = await visitor.said()
    await visitor.handlers.stop(3.0, visitor.request)
    assert await visitor.said() == before


# Two at once


async def test_of_two_messages_at_once_both_are_shown_and_the_last_is_answered(
    visitor: Visitor, engines: ScriptedEngines
) -> None:
    engines.brain = ScriptedModel(time.monotonic, REPLY, first=0.2, gap=0.005)
    one, two = await asyncio.gather(visitor.write("one"), visitor.write("two"))
    statuses = [turn.status for turn in visitor.session.turns]
    assert statuses[-1] == "completed"
    assert statuses[:-1] in ([], ["cancelled"], ["completed"]), "the first is given up, stopped, or already over"
    said = await visitor.said()
    assert [text for role, text in said if role == "user"] == ["one", "two"]
    assert [text for _, text in said].count("".join(REPLY)) == statuses.count("completed")
    assert [text for _, text in said].count("■ stopped") == statuses.count("cancelled")
    sounds = [await visitor.sound_of(updates) for updates in (one, two)]
    assert [len(sound) > 0 for sound in sounds].count(True) == statuses.count("completed")


async def test_of_two_recordings_at_once_each_takes_its_own_place_or_leaves_it(
    visitor: Visitor, engines: ScriptedEngines, recording: Path
) -> None:
    engines.ears.delay = 0.2
    await asyncio.gather(visitor.speak(recording), visitor.speak(recording))
    turns = visitor.session.turns
    said = [text for _, text in await visitor.said()]
    assert turns[-1].status == "completed"
    assert not any(word("listening", "en") in text for text in said)
    assert said.count("what is your name") == len([turn for turn in turns if turn.transcript])
    assert said.count("".join(REPLY)) == [turn.status for turn in turns].count("completed")


async def test_pages_do_not_stop_or_see_each_other(handlers: Handlers) -> None:
    one, other = await visit(handlers, "one"), await visit(handlers, "other", "zh-CN")
    await asyncio.gather(one.write("from one"), other.write("from the other"))
    for page, said in ((one, "from one"), (other, "from the other")):
        (turn,) = page.session.turns
        assert (turn.status, turn.transcript) == ("completed", said)
        assert [text for role, text in await page.said() if role == "user"] == [said]
    assert word("title", "zh") in other.opened["title"]
    assert word("title", "en") in one.opened["title"]


# Turns that end at once


async def test_an_empty_message_is_no_turn(visitor: Visitor) -> None:
    before = await visitor.said()
    assert await visitor.write(" \n ") == []
    assert visitor.session.turns == []
    assert await visitor.said() == before


async def test_an_image_without_words_for_a_blind_model_is_a_fault_and_its_sound_ends(
    visitor: Visitor, engines: ScriptedEngines, tmp_path: Path
) -> None:
    engines.brain.vision = False
    photo = tmp_path / "photo.png"
    Image.new("RGB", (300, 300), "teal").save(photo)
    updates = await visitor.write("", photo)
    assert (await visitor.said())[-1][1].startswith("⚠️ This model cannot see")
    assert await visitor.sound_of(updates) == b""
    assert engines.brain.requests == []


async def test_a_message_that_is_too_long_is_told_and_is_no_turn(handlers: Handlers, visitor: Visitor) -> None:
    longest = handlers.engines.settings.text_max_chars
    updates = await visitor.write("x" * (longest + 1))
    assert str(longest) in (await visitor.said())[-1][1]
    assert visitor.session.turns == []
    assert not any("player" in one for one in updates)


async def test_no_recording_is_no_turn(visitor: Visitor) -> None:
    assert await visitor.speak(None) == []
    assert visitor.session.turns == []


async def test_a_recording_that_cannot_be_used_leaves_one_sentence_and_the_next_one_works(
    visitor: Visitor, recording: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.wav"
    broken.write_bytes(b"no sound at all" * 100)
    before = await visitor.said()
    await visitor.speak(broken)
    (fault,) = (await visitor.said())[len(before) :]
    assert fault[1].startswith("⚠️")
    await visitor.speak(recording)
    assert visitor.session.turns[-1].status == "completed"


async def test_while_the_models_load_a_turn_is_told_to_wait_and_leaves_no_place_behind(
    visitor: Visitor, engines: ScriptedEngines, recording: Path
) -> None:
    engines.states["asr"].status = "loading"
    before = await visitor.said()
    status = await visitor.handlers.show_status(visitor.request)
    assert status["ticker"].active is True
    await visitor.speak(recording)
    (fault,) = (await visitor.said())[len(before) :]
    assert "still loading" in fault[1]
    engines.states["asr"].status = "ready"
    assert (await visitor.handlers.show_status(visitor.request))["ticker"].active is False
    await visitor.speak(recording)
    assert visitor.session.turns[-1].status == "completed"


# A whole turn


async def test_the_reply_can_be_heard_again(visitor: Visitor, recording: Path) -> None:
    for updates in (await visitor.write("hello"), await visitor.speak(recording)):
        rate, samples = updates[-1]["again"]
        assert rate == TTS_RATE
        assert await visitor.sound_of(updates) == samples.astype("<i2").tobytes()


async def test_the_recorder_is_cleared_when_its_recording_is_taken_and_not_later(
    visitor: Visitor, recording: Path
) -> None:
    first, *later = await visitor.speak(recording)
    assert first["microphone"] is None
    assert not any("microphone" in updates for updates in later)


async def test_starting_anew_forgets_and_greets(visitor: Visitor) -> None:
    await visitor.write("hello")
    view = await visitor.handlers.restart(visitor.request)
    greeting = visitor.session.persona.greeting
    assert [message["content"] for message in view["transcript"]] == [greeting]
    assert (view["again"], view["table"]) == (None, "")
    assert visitor.session.conversation.exchanges == []


async def test_a_chinese_persona_over_the_embedded_model_comes_with_a_warning(visitor: Visitor) -> None:
    personas = visitor.handlers.engines.personas.values()
    chinese = next(persona for persona in personas if persona.language == "zh")
    updates = await visitor.handlers.choose_persona(chinese.id, visitor.request)
    assert [text for _, text in await visitor.said()][-2:] == [chinese.greeting, "ℹ️ " + word("english_only", "en")]
    assert updates["voice"]["value"] == chinese.voices[0].name
    assert visitor.session.voice == chinese.voices[0]


async def test_another_voice_speaks_from_the_next_turn_on_and_the_history_stays(visitor: Visitor) -> None:
    await visitor.write("hello")
    voice = visitor.session.persona.voices[-1]
    await visitor.handlers.choose_voice(voice.name, visitor.request)
    await visitor.write("again")
    assert [turn.record()["voice"] for turn in visitor.session.turns][1] == voice.name
    assert len(visitor.session.conversation.exchanges) == 2


# A page that is gone


async def empty(updates: AsyncIterator[Updates]) -> None:
    async for _ in updates:
        pass


CALLS: dict[str, Callable[[Handlers, gr.Request], Any]] = {
    "show_status": lambda handlers, request: handlers.show_status(request),
    "choose_persona": lambda handlers, request: handlers.choose_persona("robin", request),
    "choose_voice": lambda handlers, request: handlers.choose_voice("", request),
    "restart": lambda handlers, request: handlers.restart(request),
    "stop": lambda handlers, request: handlers.stop(NOT_CUT, request),
    "played": lambda handlers, request: handlers.played({}, request),
    "speak": lambda handlers, request: empty(handlers.speak("x.wav", NOT_CUT, request)),
    "write": lambda handlers, request: empty(handlers.write({"text": "hi"}, NOT_CUT, request)),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_page_that_is_gone_is_told_to_reload(visitor: Visitor, call: str) -> None:
    await visitor.handlers.close_page(visitor.request)
    with pytest.raises(gr.Error) as caught:
        await CALLS[call](visitor.handlers, visitor.request)
    assert "reload" in str(caught.value.message)
    assert caught.value.print_exception is False


async def test_a_page_without_a_session_is_told_to_reload(handlers: Handlers) -> None:
    with pytest.raises(gr.Error, match="reload"):
        await handlers.open_page(gr.Request(headers={}))


async def test_closing_a_page_stops_its_turn_and_may_come_twice(visitor: Visitor, engines: ScriptedEngines) -> None:
    engines.brain = model = ScriptedModel(time.monotonic, ENDLESS, first=0.0, gap=0.005)
    writing = asyncio.create_task(visitor.write("talk on"))
    await until(lambda: model.requests)
    await visitor.handlers.close_page(visitor.request)
    await visitor.handlers.close_page(visitor.request)
    await writing
    assert model.closed == 1
    assert len(visitor.handlers.sessions) == 0
