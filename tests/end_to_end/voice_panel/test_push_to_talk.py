"""Holding space, or a button, while one speaks."""

from __future__ import annotations

import pytest

from tests.support.panel_harness import PanelServer, done, panel_json, session
from tests.support.panel_page import Open, notices, reply, shows, state_is, talk

pytestmark = pytest.mark.browser


def test_holding_space_hands_in_what_was_said_meanwhile(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    page.keyboard.down("Space")
    state_is(page, "hearing")
    server.wait("input_audio_buffer.append", 30)
    page.keyboard.up("Space")
    server.wait("input.hold", 2)
    assert server.types == [
        "input.hold",
        "input_audio_buffer.clear",
        "input_audio_buffer.commit",
        "response.create",
        "input.hold",
    ]
    holds = [event["held"] for event in server.events if event["type"] == "input.hold"]
    assert holds == [True, False], "listening goes on as before"
    state_is(page, "thinking")
    length = len(server.sound())
    page.wait_for_timeout(200)
    assert len(server.sound()) == length, "the microphone was open for that only"
    reply(server, "a", 1.0, kind="push_to_talk")
    played = server.wait("turn.played")
    assert 0 <= played["playback_ms"] < played["waited_ms"]


def test_pushing_to_talk_over_a_reply_stops_it_first(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    talk(page, server)
    reply(server, "a")
    state_is(page, "speaking")
    page.keyboard.down("Space")
    server.wait("input_audio_buffer.clear")
    kinds = [kind for kind in server.types if kind != "turn.played"]
    assert kinds == ["conversation.item.truncate", "response.cancel", "input.hold", "input_audio_buffer.clear"]
    server.wait("input_audio_buffer.append", len(server.sound()) // 480 + 20)
    page.keyboard.up("Space")
    server.wait("response.create")
    server.forget()
    server.wait("input_audio_buffer.append")
    server.send(done("resp_a", "cancelled"))


def test_a_short_slip_on_space_hands_nothing_in(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    page.keyboard.press("Space")
    page.wait_for_selector(".talk-notice")
    assert notices(page) == ["Keep holding while you speak, then let go."]
    assert "response.create" not in server.types
    state_is(page, "off")


def test_space_in_the_text_box_is_a_space(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    page.type("[data-part=text]", "a b")
    assert page.input_value("[data-part=text]") == "a b"
    assert server.tokens == [], "and connects nothing"


def test_choosing_by_hand_while_somebody_talks_closes_the_microphone(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    talk(page, server)
    server.send({"type": "input_audio_buffer.speech_started", "item_id": "i", "audio_start_ms": 1})
    state_is(page, "hearing")
    page.evaluate("value => window.harness.set(value)", panel_json(detection="manual"))
    state_is(page, "off")
    shows(page, "Hold to talk")
    assert page.get_attribute(".talk", "data-talking") == "false"
    server.wait("input_audio_buffer.clear")
    server.forget()
    page.wait_for_timeout(300)
    assert len(server.sound()) == 0


def test_by_hand_the_large_button_is_held(open_panel: Open, server: PanelServer) -> None:
    server.greeting = [{"type": "session.created", "session": session(None)}]
    page = open_panel(value=panel_json(detection="manual"))
    shows(page, "Hold to talk")
    page.hover(".talk-button")
    page.mouse.down()
    state_is(page, "hearing")
    server.wait("input_audio_buffer.append", 30)
    page.mouse.up()
    server.wait("response.create")
    assert server.types == ["input_audio_buffer.clear", "input_audio_buffer.commit", "response.create"]
