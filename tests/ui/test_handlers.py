"""What the page does: what it is told may be nonsense, come twice at once, or come from a page that is gone."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from spoken_chat.audio import TTS_RATE
from spoken_chat.conversation import ImagePart
from spoken_chat.ui import handlers as page_handlers
from spoken_chat.ui.handlers import Handlers, Updates
from spoken_chat.ui.options import SWITCHES, WAITS
from spoken_chat.ui.text import word
from tests.support.app import ScriptedEngines
from tests.support.engines import ScriptedModel
from tests.support.markup import read
from tests.support.visitor import NOT_CUT, Visitor, visit
from tests.support.waiting import WAIT_S, until

pytestmark = pytest.mark.usefixtures("no_browser_to_wait_for")

REPLY = "One sentence here. Another sentence there."
ENDLESS = ["This is one more sentence. "] * 2000


# The talk on the page


async def test_what_is_said_over_the_websocket_is_shown_when_the_panel_asks(visitor: Visitor) -> None:
    turn = await visitor.write("hello")
    view = await visitor.refresh()
    assert (await visitor.said())[-2:] == [("user", "hello"), ("assistant", REPLY)]
    assert read(view["card"]).figures()["ttft_ms"] == str(turn.metrics.ttft_ms)
    assert len(read(view["table"]).find("tr", data_turn=turn.id)) == 1
    assert len(read(view["falls"]).find("figure", data_turn=turn.id)) == 1


async def test_what_the_browser_heard_is_shown_when_the_panel_asks(visitor: Visitor) -> None:
    turn = await visitor.write("hello")
    assert read((await visitor.refresh())["card"]).figures()["v2v_ms"] == ""
    visitor.talk_of_page.talk.played(turn.id, 0.5, 0.02)
    assert read((await visitor.refresh())["card"]).figures()["v2v_ms"] == "500.0"


async def test_the_reply_can_be_heard_again_and_is_sent_to_the_page_once(visitor: Visitor) -> None:
    await visitor.write("hello")
    rate, samples = (await visitor.refresh())["again"]
    assert (rate, len(samples)) == (TTS_RATE, 2 * TTS_RATE)
    assert "again" not in await visitor.refresh()


async def test_an_interrupted_reply_shows_what_was_heard_of_it(visitor: Visitor) -> None:
    turn = await visitor.write("hello")
    visitor.talk_of_page.talk.truncate(turn.id, 1.0)
    assert (await visitor.said())[-1] == ("assistant", "One sentence here.\n■ stopped")
    assert visitor.session.conversation.exchanges[0].reply == "One sentence here."


async def test_of_two_messages_at_once_both_are_shown_and_the_last_is_answered(
    visitor: Visitor, engines: ScriptedEngines
) -> None:
    engines.brain = ScriptedModel(time.monotonic, [REPLY], first=0.2, gap=0.005)
    await asyncio.gather(visitor.write("one"), visitor.write("two"))
    assert [turn.status for turn in visitor.session.turns] == ["cancelled", "completed"]
    said = await visitor.said()
    assert [text for role, text in said if role == "user"] == ["one", "two"]
    assert [text for _, text in said].count(REPLY) == 1
    assert [text for _, text in said].count("■ stopped") == 1


async def test_an_image_without_words_for_a_blind_model_is_a_fault(visitor: Visitor, engines: ScriptedEngines) -> None:
    engines.brain.vision = False
    turn = await visitor.say("", ImagePart("data:image/png;base64,AAAA", 64))
    await until(lambda: turn.status == "failed")
    assert (await visitor.said())[-1][1].startswith("⚠️ This model cannot see")
    assert engines.brain.requests == []


async def test_pages_do_not_stop_or_see_each_other(handlers: Handlers) -> None:
    one, other = await visit(handlers, "one"), await visit(handlers, "other", "zh-CN")
    await asyncio.gather(one.write("from one"), other.write("from the other"))
    for page, said in ((one, "from one"), (other, "from the other")):
        (turn,) = page.session.turns
        assert (turn.status, turn.transcript) == ("completed", said)
        assert [text for role, text in await page.said() if role == "user"] == [said]
    assert word("title", "zh") in other.opened["title"]
    assert word("title", "en") in one.opened["title"]


# The panel's value


async def test_the_panel_gets_the_token_of_the_pages_own_talk(handlers: Handlers, visitor: Visitor) -> None:
    value = json.loads(visitor.opened["panel"])
    assert handlers.registry.by_token(value["token"]) is visitor.talk_of_page
    assert (value["language"], value["ready"], value["detection"]) == ("en", True, "adaptive")
    assert value["limits"]["text_max_chars"] == handlers.engines.settings.text_max_chars


async def test_the_panel_is_told_when_the_engines_are_ready(visitor: Visitor, engines: ScriptedEngines) -> None:
    engines.states["asr"].status = "loading"
    status = await visitor.handlers.show_status(visitor.request)
    assert (status["ticker"].active, json.loads(status["panel"])["ready"]) == (True, False)
    engines.states["asr"].status = "ready"
    status = await visitor.handlers.show_status(visitor.request)
    assert (status["ticker"].active, json.loads(status["panel"])["ready"]) == (False, True)


# The settings


async def test_the_settings_open_with_what_the_apps_settings_say(visitor: Visitor) -> None:
    options, opened = visitor.talk_of_page.talk.options, visitor.opened
    assert opened["detection"]["value"] == options.detection
    for name in WAITS:
        assert opened[name]["value"] == getattr(options, name)
    for name in SWITCHES:
        assert opened[name] == getattr(options, name)


@pytest.mark.parametrize(
    ("language", "labels"), [("en-US", ["Adaptive", "Fixed wait", "By hand"]), ("zh", ["自适应", "固定等待", "手动"])]
)
async def test_the_ways_to_end_a_turn_are_named_in_the_language_of_the_page(
    handlers: Handlers, language: str, labels: list[str]
) -> None:
    page = await visit(handlers, "page", language)
    assert [label for label, _ in page.opened["detection"]["choices"]] == labels


async def test_a_choice_changes_the_talk_at_once_and_the_panel_is_told_of_another_detection(visitor: Visitor) -> None:
    updates = await visitor.handlers.choose_option("detection", "manual", visitor.request)
    assert visitor.talk_of_page.talk.options.detection == "manual"
    assert json.loads(updates["panel"])["detection"] == "manual"
    assert not any(updates[name]["visible"] for name in WAITS)
    updates = await visitor.handlers.choose_option("detection", "fixed", visitor.request)
    assert [name for name in WAITS if updates[name]["visible"]] == ["wait"]


@pytest.mark.parametrize("name", SWITCHES)
async def test_each_switch_changes_the_talk(visitor: Visitor, name: str) -> None:
    talk = visitor.talk_of_page.talk
    before = getattr(talk.options, name)
    assert await visitor.handlers.choose_option(name, not before, visitor.request) == {}
    assert getattr(talk.options, name) is not before


async def test_a_wait_that_another_one_must_follow_moves_it_on_the_page_too(visitor: Visitor) -> None:
    updates = await visitor.handlers.choose_option("wait_finished", 3.0, visitor.request)
    assert updates == {"wait_unfinished": 3.0}
    assert await visitor.handlers.choose_option("wait_finished", 2.0, visitor.request) == {}


@pytest.mark.parametrize("value, kept", [(None, 0.6), (math.nan, 0.6), ("soon", 0.6), (99, 5.0), (-3, 0.2)])
async def test_a_wait_that_cannot_be_is_put_right_with_one_sentence(
    visitor: Visitor, value: object, kept: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences: list[str] = []
    monkeypatch.setattr(gr, "Warning", sentences.append)
    assert await visitor.handlers.choose_option("wait", value, visitor.request) == {"wait": kept}
    assert visitor.talk_of_page.talk.options.wait == kept
    assert sentences == [f"The wait must be a number of seconds from 0.2 to 5; it is {kept:g} s now."]


# A recording


async def test_a_recording_is_answered_and_shown_as_the_answer_comes_although_no_panel_asks(
    visitor: Visitor, engines: ScriptedEngines, recording: Path
) -> None:
    engines.brain = ScriptedModel(time.monotonic, ["One. ", "Two. ", "Three."], first=0.0, gap=0.15)
    drawn: list[str] = []
    async for updates in visitor.handlers.answer_recording(str(recording), NOT_CUT, visitor.request):
        drawn.append(read(updates["transcript"][-1]["content"]).text)
        last = updates
    assert drawn[0] == "🎙 " + word("listening", "en")
    assert {"One. ", "One. Two. "} <= set(drawn)
    assert drawn[-1] == "One. Two. Three."
    assert last["again"][0] == TTS_RATE
    assert (await visitor.said())[-2] == ("user", "what is your name")


async def test_the_recorder_is_cleared_when_its_recording_is_taken_and_not_later(
    visitor: Visitor, recording: Path
) -> None:
    first, *later = await visitor.hand_in(recording)
    assert first["recording"] is None
    assert not any("recording" in updates for updates in later)


async def test_the_last_drawing_of_a_recordings_turn_holds_the_word_of_the_browser(
    visitor: Visitor, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_handlers, "BROWSER_WORD_S", 100 * WAIT_S)
    answering = asyncio.create_task(visitor.hand_in(recording))
    await until(lambda: visitor.session.turns and visitor.session.turns[0].status == "completed")
    (turn,) = visitor.session.turns
    visitor.talk_of_page.talk.played(turn.id, 5.0, 0.02)
    async with asyncio.timeout(WAIT_S):
        last = (await answering)[-1]
    (row,) = read(last["table"]).find("tr", data_turn=turn.id)
    assert row.figures()["v2v_ms"] == "5000.0"


async def test_a_recording_stops_the_reply_that_still_plays_and_keeps_what_was_heard_of_it(
    visitor: Visitor, recording: Path
) -> None:
    await visitor.write("hello")
    await visitor.hand_in(recording, heard=1.0)
    replies = [exchange.reply for exchange in visitor.session.conversation.exchanges]
    assert replies == ["One sentence here.", REPLY]
    assert ("assistant", "One sentence here.\n■ stopped") in await visitor.said()


async def test_of_two_recordings_at_once_each_takes_its_own_place_or_leaves_it(
    visitor: Visitor, engines: ScriptedEngines, recording: Path
) -> None:
    engines.ears.delay = 0.2
    await asyncio.gather(visitor.hand_in(recording), visitor.hand_in(recording))
    turns = visitor.session.turns
    said = [text for _, text in await visitor.said()]
    assert turns[-1].status == "completed"
    assert not any(word("listening", "en") in text for text in said)
    assert said.count("what is your name") == len([turn for turn in turns if turn.transcript])
    assert said.count(REPLY) == [turn.status for turn in turns].count("completed")


async def test_no_recording_is_no_turn(visitor: Visitor) -> None:
    assert await visitor.hand_in(None) == []
    assert visitor.session.turns == []


async def test_a_recording_that_cannot_be_used_leaves_one_sentence_and_the_next_one_works(
    visitor: Visitor, recording: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.wav"
    broken.write_bytes(b"no sound at all" * 100)
    before = await visitor.said()
    await visitor.hand_in(broken)
    (fault,) = (await visitor.said())[len(before) :]
    assert fault[1].startswith("⚠️")
    await visitor.hand_in(recording)
    assert visitor.session.turns[-1].status == "completed"


async def test_while_the_models_load_a_recording_is_told_to_wait_and_leaves_no_place_behind(
    visitor: Visitor, engines: ScriptedEngines, recording: Path
) -> None:
    engines.states["asr"].status = "loading"
    before = await visitor.said()
    await visitor.hand_in(recording)
    (fault,) = (await visitor.said())[len(before) :]
    assert "still loading" in fault[1]
    engines.states["asr"].status = "ready"
    await visitor.hand_in(recording)
    assert visitor.session.turns[-1].status == "completed"


@pytest.mark.parametrize("heard", [NOT_CUT, -0.5, math.nan, math.inf, None])
async def test_where_nothing_was_cut_off_the_talk_itself_knows_what_was_heard(
    visitor: Visitor, recording: Path, heard: float | None
) -> None:
    await visitor.write("hello")
    await visitor.hand_in(recording, heard)  # type: ignore[arg-type]
    assert len(visitor.session.turns) == 2
    heard_seconds = visitor.session.turns[0].heard_seconds
    assert heard_seconds is not None
    assert 0 <= heard_seconds < 2


# Another conversation, another persona


async def test_starting_anew_forgets_and_greets(visitor: Visitor) -> None:
    await visitor.write("hello")
    view = await visitor.handlers.restart(visitor.request)
    greeting = visitor.session.persona.greeting
    assert [message["content"] for message in view["transcript"]] == [greeting]
    assert (view["again"], view["table"], view["falls"]) == (None, "", "")
    assert visitor.session.conversation.exchanges == []
    assert "again" not in await visitor.refresh(), "the sound of before is gone"


async def test_starting_anew_stops_the_turn_that_runs(visitor: Visitor, engines: ScriptedEngines) -> None:
    engines.brain = model = ScriptedModel(time.monotonic, ENDLESS, first=0.0, gap=0.005)
    turn = await visitor.say("talk on")
    await until(lambda: model.requests)
    await visitor.handlers.restart(visitor.request)
    assert (turn.status, model.closed) == ("cancelled", 1)
    assert await visitor.said() == [("assistant", visitor.session.persona.greeting)]


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
    assert len(visitor.session.conversation.exchanges) == 1
    await visitor.write("again")
    assert [turn.record()["voice"] for turn in visitor.session.turns][1] == voice.name


# A page that is gone


async def empty(updates: AsyncIterator[Updates]) -> None:
    async for _ in updates:
        pass


CALLS: dict[str, Callable[[Handlers, gr.Request], Any]] = {
    "show_status": lambda handlers, request: handlers.show_status(request),
    "choose_persona": lambda handlers, request: handlers.choose_persona("robin", request),
    "choose_voice": lambda handlers, request: handlers.choose_voice("", request),
    "choose_option": lambda handlers, request: handlers.choose_option("barge_in", True, request),
    "answer_recording": lambda handlers, request: empty(handlers.answer_recording("x.wav", NOT_CUT, request)),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_page_that_is_gone_is_told_to_reload(visitor: Visitor, call: str) -> None:
    await visitor.handlers.close_page(visitor.request)
    with pytest.raises(gr.Error) as caught:
        await CALLS[call](visitor.handlers, visitor.request)
    assert "reload" in str(caught.value.message)
    assert caught.value.print_exception is False


async def test_starting_anew_gives_a_page_that_the_app_does_not_know_a_conversation(handlers: Handlers) -> None:
    request = gr.Request(session_hash="of a page from before the app was started again", headers={})
    updates = await handlers.restart(request)
    token = json.loads(updates["panel"])["token"]
    assert handlers.registry.by_token(token) is not None
    assert updates["transcript"] and updates["again"] is None
    await handlers.close_page(request)
    assert len(handlers.registry) == 0


async def test_starting_anew_empties_the_panel_too(visitor: Visitor) -> None:
    before = json.loads(visitor.opened["panel"])
    after = json.loads((await visitor.handlers.restart(visitor.request))["panel"])
    assert after["token"] == before["token"] and after["conversation"] != before["conversation"]


async def test_of_a_page_that_is_gone_only_the_panel_speaks(visitor: Visitor) -> None:
    await visitor.handlers.close_page(visitor.request)
    assert await visitor.handlers.refresh(visitor.request) == {}


async def test_a_page_without_a_session_is_told_to_reload(handlers: Handlers) -> None:
    with pytest.raises(gr.Error, match="reload"):
        await handlers.open_page(gr.Request(headers={}))


async def test_closing_a_page_stops_its_turn_and_may_come_twice(
    visitor: Visitor, engines: ScriptedEngines, recording: Path
) -> None:
    engines.brain = model = ScriptedModel(time.monotonic, ENDLESS, first=0.0, gap=0.005)
    answering = asyncio.create_task(visitor.hand_in(recording))
    await until(lambda: model.requests)
    await visitor.handlers.close_page(visitor.request)
    await visitor.handlers.close_page(visitor.request)
    async with asyncio.timeout(WAIT_S):
        await answering
    assert model.closed == 1
    assert len(visitor.handlers.registry) == 0
