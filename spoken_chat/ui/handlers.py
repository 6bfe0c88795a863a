"""What the page does: a person's input becomes a turn, the turn's events become updates of the page."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import gradio as gr

from spoken_chat.engines import EMBEDDED_LANGUAGE, Engines, is_embedded_default
from spoken_chat.errors import ChatError
from spoken_chat.events import Heard, Notice
from spoken_chat.intake import check_text, read_image, read_speech
from spoken_chat.session import ChatSession, SessionStore
from spoken_chat.turn import Utterance
from spoken_chat.ui.figures import loading_line, title_view, turn_card, turns_table
from spoken_chat.ui.sound import ReplySounds
from spoken_chat.ui.text import fault, language_of, word
from spoken_chat.ui.transcript import Message, Page

REDRAW_S: Final = 0.05
"""The page is redrawn at most this often while a reply streams; sound does not wait for it."""

BROWSER_WORD_S: Final = 1.0
"""How long the last drawing of a turn waits for the browser to say when its sound could be heard."""

MOST_WAIT_MS: Final = 60_000.0
"""A page that claims to have waited longer for its first sound is not believed."""

Updates = dict[str, Any]
"""New values of the page's parts, by part name."""


class Handlers:
    """The page's event handlers, over one app's engines."""

    def __init__(self, engines: Engines) -> None:
        self.engines = engines
        self.sounds = ReplySounds()
        self.sessions = SessionStore()
        self._pages: dict[str, Page] = {}

    async def open_page(self, request: gr.Request) -> Updates:
        """A page was loaded: start its session."""
        persona, voice = self.engines.opening_persona, self.engines.opening_voice
        session = ChatSession(persona, voice, self.engines.token_budget)
        page = Page(session, language_of(request.headers.get("accept-language")))
        key = _key(request)
        self.sessions.add(key, session)
        self._pages[key] = page
        page.greet()
        return {
            "title": title_view(page.language),
            "persona": persona.id,
            "voice": gr.update(choices=[one.name for one in persona.voices], value=voice.name),
            **self._status(page),
            **self._view(page),
        }

    async def close_page(self, request: gr.Request) -> None:
        """The tab was closed: stop its turn and forget it."""
        key = _key(request)
        page = self._pages.pop(key, None)
        if page is not None:
            page.claim()
        await self.sessions.drop(key)

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
            page.session.choose(persona, voice)
            page.greet()
            if is_embedded_default(self.engines.settings) and persona.language != EMBEDDED_LANGUAGE:
                page.tell("ℹ️ " + word("english_only", page.language))
        return {
            "voice": gr.update(choices=[one.name for one in persona.voices], value=voice.name),
            "transcript": page.messages,
        }

    async def choose_voice(self, name: str, request: gr.Request) -> Updates:
        """Another voice of the same persona, from the next turn on."""
        session = self._page(request).session
        session.choose(session.persona, session.persona.voice(name))
        return {}

    async def restart(self, request: gr.Request) -> Updates:
        """A new conversation."""
        page = self._page(request)
        page.claim()
        await page.session.restart()
        page.messages.clear()
        page.greet()
        return {**self._view(page), "again": None}

    async def stop(self, heard: float, request: gr.Request) -> Updates:
        """Stop: the turn ends; the history keeps what was heard."""
        page = self._page(request)
        page.claim()
        await page.session.stop(_seconds(heard))
        return self._view(page)

    async def played(self, data: object, request: gr.Request) -> Updates:
        """The page says how long after the first sound arrived it could be heard."""
        page = self._page(request)
        if isinstance(data, dict):
            turn = next((one for one in page.session.turns if one.id == data.get("turn")), None)
            waited = _milliseconds(data.get("wait_ms"))
            if turn is not None and waited is not None:
                turn.heard_after(waited / 1000, waited / 1000)
                page.audible.set()
        return self._figures(page)

    async def speak(self, path: str | None, heard: float, request: gr.Request) -> AsyncIterator[Updates]:
        """Speech was recorded or uploaded."""
        received_at = time.monotonic()
        page = self._page(request)
        if path is None:
            return
        await page.session.stop(_seconds(heard))
        placeholder = page.wait_for_words()

        def prepare() -> Utterance:
            return Utterance(audio=read_speech(Path(path), self.engines.settings), received_at=received_at)

        yield {"microphone": None, "transcript": page.messages}
        async for updates in self._turn(page, prepare, placeholder):
            yield updates

    async def write(self, value: dict[str, Any], heard: float, request: gr.Request) -> AsyncIterator[Updates]:
        """Text was sent, perhaps with an image."""
        received_at = time.monotonic()
        page = self._page(request)
        text = str(value.get("text") or "").strip()
        files = [Path(str(name)) for name in value.get("files") or []]
        if not text and not files:
            return
        await page.session.stop(_seconds(heard))
        settings = self.engines.settings
        for file in files:
            page.show_image(file)
        if text:
            page.say(text[: settings.text_max_chars])

        def prepare() -> Utterance:
            checked = check_text(text, settings)
            image = read_image(files[0], settings) if files else None
            return Utterance(text=checked, image=image, received_at=received_at)

        yield {"transcript": page.messages}
        async for updates in self._turn(page, prepare):
            yield updates

    async def _turn(
        self, page: Page, prepare: Callable[[], Utterance], placeholder: Message | None = None
    ) -> AsyncIterator[Updates]:
        """Run one turn and yield the page's updates; a fault becomes one sentence in the transcript."""
        claim = page.claim()
        try:
            stages = await self.engines.stages()
            page.session.conversation.budget = self.engines.token_budget
            utterance = await asyncio.to_thread(prepare)
            if not page.holds(claim):  # stopped, or something newer came, while this was being prepared
                if placeholder is not None:
                    page.take_away(placeholder)
                yield {"transcript": page.messages}
                return
            turn, events = await page.session.take(
                stages, utterance, lambda turn: page.begin(turn, self.sounds, placeholder)
            )
        except ChatError as error:
            if placeholder is not None:
                page.take_away(placeholder)
            page.tell("⚠️ " + fault(error, page.language))
            yield {"transcript": page.messages}
            return
        yield {"player": json.dumps({"turn": turn.id, "url": f"v1/sound/{turn.id}"})}
        drawn = -math.inf
        clock = asyncio.get_running_loop().time
        async for event in events:
            if clock() - drawn >= REDRAW_S or isinstance(event, Heard | Notice):
                yield self._view(page)
                drawn = clock()
        if "first_audio_sent" in turn.timeline.marks and "browser_play" not in turn.timeline.marks:
            # The browser's word comes a moment after the first sound. What is drawn last must hold it, or else this
            # drawing could overtake the one that does.
            with suppress(TimeoutError):
                await asyncio.wait_for(page.audible.wait(), BROWSER_WORD_S)
        yield {**self._view(page), "again": page.sound_of(turn)}

    def _view(self, page: Page) -> Updates:
        return {"transcript": page.messages, **self._figures(page)}

    def _figures(self, page: Page) -> Updates:
        turns = page.session.turns
        return {
            "card": turn_card(turns[-1] if turns else None, page.language),
            "table": turns_table(turns, f"v1/sessions/{page.session.id}/turns", page.language),
        }

    def _status(self, page: Page) -> Updates:
        return {
            "status": loading_line(self.engines.states, page.language),
            "ticker": gr.Timer(active=not self.engines.ready),
        }

    def _page(self, request: gr.Request) -> Page:
        key = _key(request)
        try:
            self.sessions.get(key)
        except ChatError as error:
            language = language_of(request.headers.get("accept-language"))
            raise gr.Error(fault(error, language), print_exception=False) from None
        return self._pages[key]


def _key(request: gr.Request) -> str:
    if request.session_hash is None:
        raise gr.Error("This page has no session; reload it.", print_exception=False)
    return request.session_hash


def _milliseconds(told: object) -> float | None:
    """A wait as the page tells it; None for what cannot be one."""
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None
    return float(told) if 0 <= told < MOST_WAIT_MS else None


def _seconds(heard: float | None) -> float | None:
    """The page sends -1 when nothing was cut off."""
    return heard if heard is not None and math.isfinite(heard) and heard >= 0 else None
