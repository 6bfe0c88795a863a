"""What the page does: choices change the talk, and what the talk tells becomes updates of the page."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import gradio as gr

from spoken_chat.engines import EMBEDDED_LANGUAGE
from spoken_chat.errors import ChatError
from spoken_chat.intake import read_speech
from spoken_chat.supervisor import LOOK_S
from spoken_chat.talk.options import TalkOptions
from spoken_chat.talk.registry import TalkRegistry
from spoken_chat.turn import Turn, Utterance
from spoken_chat.ui.card import turn_card
from spoken_chat.ui.options import DETECTIONS, SWITCHES, WAIT_LIMITS_S, WAITS, chosen
from spoken_chat.ui.panel import panel_value
from spoken_chat.ui.server_card import server_view
from spoken_chat.ui.status import loading_line, title_view
from spoken_chat.ui.table import turns_table
from spoken_chat.ui.text import fault, language_of, word
from spoken_chat.ui.transcript import Page
from spoken_chat.ui.waterfall import waterfalls

REDRAW_S: Final = 0.05
"""The page is redrawn at most this often while a reply streams; sound does not wait for it."""

BROWSER_WORD_S: Final = 1.0
"""How long the last drawing of a turn waits for the browser to say when its sound could be heard."""

LOADING_S: Final = 0.5
"""How often a page asks how far the loading is; once all is ready, it asks as often as the server is looked at."""

Updates = dict[str, Any]
"""New values of the page's parts, by part name."""


class Handlers:
    """The page's event handlers, over one app's talks."""

    def __init__(self, registry: TalkRegistry) -> None:
        self.registry = registry
        self.engines = registry.engines
        self._pages: dict[str, Page] = {}

    async def open_page(self, request: gr.Request) -> Updates:
        """A page was loaded: open its talk."""
        key = _key(request)
        opened = self.registry.open(language_of(request.headers.get("accept-language")))
        self._pages[key] = page = Page(opened)
        page.greet()
        persona, voice = page.session.persona, page.session.voice
        return {
            "title": title_view(page.language),
            "persona": persona.id,
            "voice": gr.update(choices=[one.name for one in persona.voices], value=voice.name),
            **_options(page.talk.options, page.language),
            **self._status(page),
            **self._view(page),
        }

    async def close_page(self, request: gr.Request) -> None:
        """The tab was closed: stop its talk and forget it."""
        page = self._pages.pop(_key(request), None)
        if page is not None:
            page.claim()
            page.close()
            await self.registry.drop(page.opened.token)

    async def show_status(self, request: gr.Request) -> Updates:
        """How far the engines are; asked again and again until they are ready."""
        return self._status(self._page(request))

    async def choose_persona(self, persona_id: str, request: gr.Request) -> Updates:
        """Another persona, with the first of its voices."""
        page = self._page(request)
        persona = self.engines.personas[persona_id]
        voice = page.session.voice
        if persona.id != page.session.persona.id:
            voice = persona.voices[0]
            await page.talk.choose(persona, voice)
            page.greet()
            if self.engines.embedded_default and persona.language != EMBEDDED_LANGUAGE:
                page.tell("ℹ️ " + word("english_only", page.language))
        return {
            "voice": gr.update(choices=[one.name for one in persona.voices], value=voice.name),
            "transcript": page.messages,
        }

    async def choose_voice(self, name: str, request: gr.Request) -> Updates:
        """Another voice of the same persona, from the next turn on."""
        page = self._page(request)
        persona = page.session.persona
        await page.talk.choose(persona, persona.voice(name))
        return {}

    async def choose_option(self, name: str, value: object, request: gr.Request) -> Updates:
        """Another value of one setting, at once; the panel is told of what it must show."""
        page = self._page(request)
        before = page.talk.options
        options = chosen(before, name, value)
        await page.talk.configure(options)
        updates = _changed_waits(before, options, name)
        if name in WAITS and value != getattr(options, name):
            least, most = WAIT_LIMITS_S
            now = updates[name] = getattr(options, name)
            gr.Warning(word("wait_refused", page.language).format(least=least, most=most, now=now))
        if name == "detection":
            updates |= _shown_waits(options)
            updates["panel"] = self._panel(page)
        return updates

    async def restart(self, request: gr.Request) -> Updates:
        """A new conversation; also of a page that the app does not know any more, as after a restart."""
        page = self._pages.get(_key(request))
        if page is None:
            return {**await self.open_page(request), "again": None}
        page.claim()
        await page.talk.restart()
        page.clear()
        page.greet()
        page.changed()
        return {**self._view(page), "panel": self._panel(page), "again": None}

    async def refresh(self, request: gr.Request) -> Updates:
        """The panel heard of something new. Of a page that is not known any more, the panel itself says so."""
        page = self._pages.get(_key(request))
        if page is None:
            return {}
        return {**self._view(page), **self._again(page)}

    async def answer_recording(self, path: str | None, heard: float, request: gr.Request) -> AsyncIterator[Updates]:
        """A recording was handed in: answer it, and show the answer as it comes, whether or not the panel is there."""
        received_at = time.monotonic()
        page = self._page(request)
        if path is None:
            return
        claim = page.claim()
        place = page.hand_in()
        await page.talk.stop(_seconds(heard))
        yield {"recording": None, "transcript": page.messages}
        turn: Turn | None = None
        try:
            sound = await asyncio.to_thread(read_speech, Path(path), self.engines.settings)
            if page.holds(claim):  # nothing newer came, and it was not stopped, while this was being read
                turn = await page.talk.say(Utterance(audio=sound, received_at=received_at))
        except ChatError as error:
            page.tell_fault(error)
        finally:
            page.give_up(place)
        if turn is None:
            yield {"transcript": page.messages}
            return
        if page.closed:  # the page was closed just before its talk had begun the turn
            await page.talk.stop()
            return
        async for updates in self._follow(page, turn):
            yield updates

    async def _follow(self, page: Page, turn: Turn) -> AsyncIterator[Updates]:
        """The page as `turn` changes it, up to its end."""
        clock = asyncio.get_running_loop().time
        while True:
            news = page.news
            if page.over(turn):
                break
            drawn = clock()
            yield self._view(page)
            await news.wait()
            await asyncio.sleep(max(0.0, drawn + REDRAW_S - clock()))
        if "first_audio_sent" in turn.timeline.marks:
            # The browser's word comes a moment after the first sound. What is drawn last must hold it, or else this
            # drawing could overtake the one that does.
            with suppress(TimeoutError):
                await asyncio.wait_for(_heard(page, turn), BROWSER_WORD_S)
        yield {**self._view(page), **self._again(page)}

    def _view(self, page: Page) -> Updates:
        turns, language = page.session.turns, page.language
        return {
            "transcript": page.messages,
            "card": turn_card(turns[-1] if turns else None, language),
            "falls": waterfalls(turns, language),
            "table": turns_table(turns, f"v1/sessions/{page.session.id}/turns", language),
        }

    def _again(self, page: Page) -> Updates:
        sound = page.take_sound()
        return {} if sound is None else {"again": sound}

    def _status(self, page: Page) -> Updates:
        model, ready = self.engines.model, self.engines.ready
        return {
            "status": loading_line(self.engines.states, page.language),
            "server": server_view(model.card, page.language),
            "ticker": gr.Timer(LOOK_S if ready else LOADING_S, active=not ready or model.watched),
            "panel": self._panel(page),
        }

    def _panel(self, page: Page) -> str:
        ready, settings = self.engines.ready, self.engines.settings
        return panel_value(page.opened, ready, settings, conversation=page.conversation)

    def _page(self, request: gr.Request) -> Page:
        page = self._pages.get(_key(request))
        if page is None:
            error = ChatError("session_gone", "This conversation has ended; reload the page to start another.")
            raise gr.Error(fault(error, language_of(request.headers.get("accept-language"))), print_exception=False)
        return page


async def _heard(page: Page, turn: Turn) -> None:
    """Wait until the browser has said when the first sound of `turn` could be heard."""
    while True:
        news = page.news
        if page.closed or "browser_play" in turn.timeline.marks:
            return
        await news.wait()


def _options(options: TalkOptions, language: str) -> Updates:
    """Every setting as it is, and what can be chosen in the page's language."""
    choices = [(word(f"detection_{one}", language), one) for one in DETECTIONS]
    return {
        "detection": gr.update(choices=choices, value=options.detection),
        **_shown_waits(options),
        **{name: getattr(options, name) for name in SWITCHES},
    }


def _shown_waits(options: TalkOptions) -> Updates:
    """Only the waits that matter are shown."""
    return {
        name: gr.update(value=getattr(options, name), visible=detection == options.detection)
        for name, detection in WAITS.items()
    }


def _changed_waits(before: TalkOptions, after: TalkOptions, chosen_one: str) -> Updates:
    """The waits that followed the one that was chosen."""
    others = [name for name in WAITS if name != chosen_one]
    return {name: getattr(after, name) for name in others if getattr(after, name) != getattr(before, name)}


def _key(request: gr.Request) -> str:
    if request.session_hash is None:
        raise gr.Error("This page has no session; reload it.", print_exception=False)
    return request.session_hash


def _seconds(heard: float | None) -> float | None:
    """The page sends -1 when nothing was cut off."""
    return heard if heard is not None and math.isfinite(heard) and heard >= 0 else None
