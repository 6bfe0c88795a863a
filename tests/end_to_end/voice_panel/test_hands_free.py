"""One tap, and then just talk: what is heard, played, shown and told."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.panel_harness import (
    RATE,
    TOKEN,
    PanelServer,
    delta,
    done,
    panel_json,
    tone,
    turn_event,
    turn_started,
    words,
)
from tests.support.panel_page import FREQUENCY, LEVEL, Open, notices, reply, shows, state_is, talk

pytestmark = pytest.mark.browser


def test_one_tap_and_the_microphone_is_heard_at_the_wires_rate(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    talk(page, server)
    server.wait("input_audio_buffer.append", 60)
    sound = server.sound()[RATE // 10 : RATE // 10 + RATE].astype(float)
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound))))
    assert spectrum.argmax() == FREQUENCY, "a second of sound: each bin is one hertz"
    loudness = np.sqrt(np.mean(np.square(sound)) * 2)
    assert loudness == pytest.approx(LEVEL, rel=0.02)
    page.wait_for_function(
        "expected => Math.abs(window.spokenChat.level / expected - 1) < 0.05", arg=LEVEL / 32768 / 2**0.5
    )
    asked = page.evaluate("window.asked.audio")
    assert all(asked[name] is True for name in ("echoCancellation", "noiseSuppression", "autoGainControl"))
    assert server.tokens == [TOKEN]
    assert server.types == [], "nothing but sound is sent"
    page.click(".talk-button")
    state_is(page, "off")
    server.wait("input_audio_buffer.clear")


def test_muted_the_microphone_sends_silence(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    talk(page, server)
    page.click("[data-part=mute]")
    state_is(page, "muted")
    page.wait_for_timeout(300)
    server.forget()
    server.wait("input_audio_buffer.append", 5)
    assert np.abs(server.sound()).max() == 0
    page.click("[data-part=mute]")
    state_is(page, "listening")


def test_a_hands_free_turn_shows_both_sides_and_tells_once_when_it_was_heard(
    open_panel: Open, server: PanelServer
) -> None:
    page = open_panel()
    talk(page, server)
    server.wait("input_audio_buffer.append", 40)
    server.send({"type": "input_audio_buffer.speech_started", "item_id": "i", "audio_start_ms": 100})
    state_is(page, "hearing")
    server.send({"type": "input.caption", "item_id": "i", "stable": "what is", "tail": "<b>your</b>"})
    shows(page, "what is <b>your</b>")
    assert page.inner_text(".talk-tail").strip() == "<b>your</b>"
    server.send({"type": "input_audio_buffer.speech_stopped", "item_id": "i", "audio_end_ms": 600})
    state_is(page, "thinking")
    heard = {"type": "conversation.item.input_audio_transcription.completed", "item_id": "i"}
    reply(server, "a", 1.0, kind="hands_free", item="i", speech_end_ms=500)
    server.send({**heard, "transcript": "what is your name"})
    server.send({"type": "reply.mood", "turn_id": "turn_a", "mood": "glad"})
    server.send({"type": "response.output_audio.done", "response_id": "resp_a"}, done("resp_a"))
    state_is(page, "speaking")
    for text in ("what is your name", "reply a", "glad"):
        shows(page, text)
    played = server.wait("turn.played")
    assert played["turn_id"] == "turn_a"
    assert 0 <= played["playback_ms"] < played["waited_ms"]
    assert played["waited_ms"] > 300, "40 chunks were captured, and the speech ended at 500 ms"
    assert page.evaluate("window.spokenChat.lastPlayed.waited_ms") == played["waited_ms"]
    state_is(page, "listening")
    assert server.types.count("turn.played") == 1
    page.wait_for_function("window.harness.triggered.includes('refresh')")


def test_the_bars_of_the_turn_show_the_servers_own_figures(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    talk(page, server)
    marks: dict[str, float] = {"speech_start": 0, "speech_end": 1000, "endpoint": 1400, "asr_start": 1200}
    server.send(turn_started("a", "hands_free"))
    server.send(turn_event("turn.progress", "a", marks, {"endpoint_delay_ms": "400.0", "asr_ms": ""}))
    page.wait_for_selector(".talk-bar[data-stage=wait]")
    assert page.locator(".talk-bar").count() == 1
    marks |= {"asr_done": 1500, "browser_received": 1880, "browser_play": 1900}
    server.send(turn_event("turn.timeline", "a", marks, {"asr_ms": "300.1", "playback_ms": "20.3", "v2v_ms": "900.7"}))
    shows(page, "900.7")
    assert page.inner_text("[data-metric=asr_ms]") == "300.1"
    boxes = [page.locator(f".talk-bar[data-stage={stage}]").bounding_box() for stage in ("wait", "asr", "play")]
    left = [box["x"] for box in boxes if box is not None]
    assert left == sorted(left) and len(left) == 3
    assert page.locator(".talk-badge").all_inner_texts() == ["hands-free", "speculation hit", "first turn"]


def test_a_dropped_utterance_leaves_what_was_there_before(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    talk(page, server)
    server.send(turn_started("a", "hands_free", "i"))
    server.send({"type": "input.caption", "item_id": "i", "stable": "one", "tail": ""})
    server.send(done("resp_a"), {"type": "input_audio_buffer.speech_started", "item_id": "j", "audio_start_ms": 1})
    server.send({"type": "input.caption", "item_id": "j", "stable": "cough", "tail": ""})
    shows(page, "cough")
    server.send({"type": "input.dropped", "item_id": "j", "reason": "nothing_heard"})
    shows(page, "one")
    state_is(page, "listening")


def test_a_reply_that_is_spoken_over_is_flushed_and_cut_to_what_was_played(
    open_panel: Open, server: PanelServer
) -> None:
    page = open_panel()
    talk(page, server)
    reply(server, "a", kind="hands_free")
    state_is(page, "speaking")
    server.send({"type": "reply.duck", "turn_id": "turn_a", "down": True})
    page.wait_for_timeout(400)
    server.send({"type": "output_audio_buffer.cleared", "response_id": "resp_a"}, done("resp_a", "cancelled"))
    cut = server.wait("conversation.item.truncate")
    assert cut["item_id"] == "item_of_resp_a" and cut["content_index"] == 0
    assert 300 < cut["audio_end_ms"] < 5000
    state_is(page, "listening")
    server.send(delta("resp_a", tone(300, 1)), words("resp_a", "too late"))
    server.send({"type": "output_audio_buffer.cleared", "response_id": "resp_a"})
    assert server.wait("conversation.item.truncate", 2)["audio_end_ms"] == cut["audio_end_ms"]
    assert page.evaluate("window.spokenChat.playing") is False, "what comes of it after that is not played"
    assert "too late" not in page.inner_text(".talk-captions")


def test_a_reply_heard_to_its_end_is_never_cut_shorter(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    talk(page, server)
    reply(server, "a", 0.5, kind="hands_free")
    server.send({"type": "response.output_audio.done", "response_id": "resp_a"}, done("resp_a"))
    state_is(page, "speaking")
    state_is(page, "listening")
    server.send({"type": "output_audio_buffer.cleared", "response_id": "resp_a"})
    assert server.wait("conversation.item.truncate")["audio_end_ms"] == pytest.approx(500, abs=2)


def test_the_page_can_silence_the_reply_and_learns_how_much_was_heard(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    assert page.evaluate("window.spokenChat.stop()") == -1
    talk(page, server)
    reply(server, "a")
    state_is(page, "speaking")
    page.wait_for_timeout(300)
    assert page.evaluate("window.spokenChat.secondsQueued") == pytest.approx(5)
    assert 0.2 < page.evaluate("window.spokenChat.stop()") < 4
    assert page.evaluate("window.spokenChat.playing") is False


def test_stop_silences_the_reply_and_cancels_it(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    talk(page, server)
    assert page.is_disabled("[data-part=stop]")
    reply(server, "a")
    state_is(page, "speaking")
    page.click("[data-part=stop]")
    cancelled = server.wait("response.cancel")
    assert [kind for kind in server.types if kind != "turn.played"] == ["conversation.item.truncate", "response.cancel"]
    server.send({"type": "error", "error": {"code": "x", "message": "too late", "event_id": cancelled["event_id"]}})
    state_is(page, "listening")
    assert notices(page) == [], "that the reply was over by then is nothing to tell"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_panel_fits_its_screen(open_panel: Open, server: PanelServer, width: int, language: str) -> None:
    page = open_panel(value=panel_json(language=language), viewport={"width": width, "height": 844})
    talk(page, server)
    reply(server, "a", kind="hands_free")
    server.send(words("resp_a", "Donaudampfschifffahrtsgesellschaft" * 8))
    server.send({"type": "notice", "code": "n", "message": "https://example.org/" + "x" * 300})
    figures = {"v2v_ms": "12345.6", "endpoint_delay_ms": "10000.0"}
    server.send(turn_event("turn.progress", "a", {"speech_end": 0, "endpoint": 10000, "browser_play": 12345}, figures))
    shows(page, "12345.6")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_control_has_a_name_and_can_be_reached_by_keyboard(open_panel: Open) -> None:
    page = open_panel()
    for role, name in (("button", "Start to talk"), ("button", "Hold to talk"), ("button", "Send")):
        assert page.get_by_role(role, name=name).count() == 1  # type: ignore[arg-type]
    assert page.get_by_role("textbox", name="Write a message").count() == 1
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.part") == "button"
    page.keyboard.press("Space")
    state_is(page, "listening")
