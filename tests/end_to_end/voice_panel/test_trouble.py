"""No microphone, no connection, another tab: each is said, and the talk goes on."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.support.browser import QUIET, executable
from tests.support.panel_harness import TOKEN, PanelServer, failed, panel_json, turn_started
from tests.support.panel_page import Open, notices, reply, shows, state_is, talk, write

pytestmark = pytest.mark.browser

REFUSES = "MediaDevices.prototype.getUserMedia = async () => { throw new DOMException('', 'NAME'); };"


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("Object.defineProperty(window, 'isSecureContext', { value: false });", "HTTPS"),
        ("delete Navigator.prototype.mediaDevices;", "cannot record"),
        ("delete window.AudioWorkletNode;", "cannot record"),
        *(
            (
                f"MediaDevices.prototype.getUserMedia = async () => {{ throw new DOMException('', '{name}'); }};",
                sentence,
            )
            for name, sentence in (
                ("NotAllowedError", "blocked"),
                ("NotFoundError", "No microphone was found"),
                ("NotReadableError", "another program"),
            )
        ),
    ],
    ids=["insecure", "no devices", "no worklet", "denied", "missing", "busy"],
)
def test_each_cause_of_no_microphone_is_told_apart(
    open_panel: Open, server: PanelServer, script: str, sentence: str
) -> None:
    page = open_panel(script)
    page.click(".talk-button")
    page.wait_for_selector(".talk-notice")
    assert len(notices(page)) == 1 and sentence in notices(page)[0]
    state_is(page, "off")
    write(page, "typing works")
    server.wait("response.create")


def test_a_browser_without_a_device_says_so(browser: Browser, server: PanelServer) -> None:
    bare = browser.browser_type.launch(executable_path=executable(), args=list(QUIET))
    page = bare.new_context(permissions=["microphone"]).new_page()
    page.goto(server.url)
    page.click(".talk-button")
    page.wait_for_selector(".talk-notice")
    assert "No microphone was found" in notices(page)[0]
    bare.close()


def test_a_lost_connection_comes_back_with_the_same_token(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    talk(page, server)
    reply(server, "a", kind="hands_free")
    state_is(page, "speaking")
    server.reachable = False
    server.drop()
    state_is(page, "lost")
    shows(page, "The connection was lost")
    write(page, "still here")
    assert page.input_value("[data-part=text]") == "still here"
    server.forget()
    said = [{"role": "user", "text": "before"}, {"role": "assistant", "text": "it broke"}]
    restored = {"type": "conversation.restored", "items": said, "voice": "v", "detection": "adaptive"}
    server.greeting = [*server.greeting, restored]
    server.reachable = True
    server.wait_connected(2)
    assert server.wait("conversation.item.create")["item"]["content"][0]["text"] == "still here"
    assert server.tokens == [TOKEN, TOKEN]
    server.wait("input_audio_buffer.append")
    assert page.input_value("[data-part=text]") == ""
    assert notices(page) == []


def test_a_break_while_space_is_held_gives_listening_back(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    page.keyboard.down("Space")
    server.wait("input_audio_buffer.append", 5)
    server.greeting.append({"type": "conversation.restored", "items": [], "voice": "v", "detection": "manual"})
    server.forget()
    server.drop()
    shows(page, "please say it again")
    assert server.wait("input.hold")["held"] is False
    page.keyboard.up("Space")


def test_a_conversation_taken_over_waits_for_a_tap(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    talk(page, server)
    server.send({"type": "error", "error": {"code": "taken_over", "message": "elsewhere", "event_id": None}})
    server.drop(4001)
    state_is(page, "lost")
    assert notices(page) == ["This conversation goes on in another tab; tap the button to bring it back here."]
    page.wait_for_timeout(1200)
    assert len(server.tokens) == 1
    page.click(".talk-button")
    server.wait_connected(2)
    state_is(page, "listening")
    assert notices(page) == []


def test_a_conversation_that_is_gone_is_not_asked_for_again(open_panel: Open, server: PanelServer) -> None:
    gone = {"code": "session_gone", "message": "This conversation has ended; reload.", "event_id": None}
    server.refuse = (1008, [{"type": "error", "error": gone}])
    page = open_panel()
    write(page, "hello")
    state_is(page, "lost")
    shows(page, "as after a restart")
    assert len(notices(page)) == 1
    assert page.input_value("[data-part=text]") == "hello"


def test_after_the_app_was_started_again_one_tap_gives_another_conversation(
    open_panel: Open, server: PanelServer
) -> None:
    page = open_panel()
    talk(page, server)
    server.send({"type": "input_audio_buffer.speech_started", "item_id": "i", "audio_start_ms": 1})
    state_is(page, "hearing")
    server.refuse = (1008, [])
    server.drop()
    shows(page, "as after a restart")
    assert len(notices(page)) == 1
    assert page.locator(".talk-dots").count() == 0, "nobody is heard any more"
    shows(page, "Ended")
    asked = len(server.tokens)
    page.keyboard.down("Space")
    page.keyboard.up("Space")
    page.fill("[data-part=text]", "half a sentence")
    server.refuse, server.value = None, panel_json(token="another", conversation="b.0")
    with page.expect_navigation():
        page.click(".talk-button")
    assert len(server.tokens) == asked, "the old conversation is not asked for again"
    page.wait_for_function("document.querySelector('[data-part=text]')?.value === 'half a sentence'")
    talk(page, server)
    assert server.tokens[-1] == "another" and notices(page) == []


def test_a_failed_answer_leaves_no_empty_answer_behind(open_panel: Open, server: PanelServer) -> None:
    page = open_panel()
    write(page, "hello")
    server.wait("response.create")
    server.send(turn_started("a"), failed("resp_a", "llm_busy", "The model is busy."))
    shows(page, "The model is busy.")
    assert page.locator("[data-who=reply]").count() == 0
    reply(server, "b")
    state_is(page, "speaking")
    assert notices(page) == [], "the next turn goes well: what was wrong is old news"


def test_another_conversation_empties_the_panel(open_panel: Open, server: PanelServer) -> None:
    page = open_panel(value=panel_json(conversation="a.0"))
    page.keyboard.press("Space")
    page.wait_for_selector(".talk-notice")
    write(page, "hello")
    reply(server, "a")
    shows(page, "reply a")
    page.evaluate("value => window.harness.set(value)", panel_json(conversation="a.1"))
    page.wait_for_function("document.querySelector('.talk-captions').dataset.empty === 'true'")
    assert notices(page) == [] and "hello" not in page.inner_text(".talk")
