"""One client's sound: decoded, bounded, brought to the listening models' rate and handed to the talk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from spoken_chat.audio import ASR_RATE, TTS_RATE
from spoken_chat.audio.pcm import from_pcm16
from spoken_chat.realtime.faults import BadEvent
from spoken_chat.realtime.given import pcm16
from spoken_chat.realtime.rate import ToAsrRate
from spoken_chat.settings import Settings
from spoken_chat.talk.talk import Talk

MOST_IN_EVENT_S: Final = 15.0
"""Sound in one event."""

BURST_S: Final = 30.0
"""How far a hands-free client's sound may run ahead of time: enough to send a recording at once."""

RECOVERED_S: Final = 5.0
"""After too much, sound is taken again once it could run ahead by this much."""

PIECE: Final = ASR_RATE // 10
"""Samples heard at once; then others on the event loop get their turn."""


class Microphone:
    """The stream of one connection. `heard_before`: seconds that the talk heard from earlier ones."""

    def __init__(
        self, talk: Talk, settings: Settings, heard_before: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.heard = 0.0
        """Seconds of this connection's sound that the talk heard."""
        self._talk = talk
        self._settings = settings
        self._heard_before = heard_before
        self._clock = clock
        self._rate = ToAsrRate()
        self._given = 0.0
        self._since_commit = 0.0
        self._full = False
        self._ahead = BURST_S
        self._refilled = clock()
        self._too_fast = False

    async def hear(self, encoded: str) -> None:
        """The next sound, as `input_audio_buffer.append` holds it. Raises BadEvent when it cannot be taken."""
        samples = pcm16(encoded, "audio", MOST_IN_EVENT_S)
        seconds = len(samples) / TTS_RATE
        self._given += seconds
        by_hand = self._talk.options.detection == "manual"
        if not (self._fits(seconds) if by_hand else self._in_time(seconds)):
            return
        self.heard += seconds
        pcm = self._rate.feed(from_pcm16(samples))
        for start in range(0, len(pcm), PIECE):
            if start:
                await asyncio.sleep(0)
            await self._talk.hear(pcm[start : start + PIECE])

    def begin_again(self) -> None:
        """The sound so far was committed or cleared."""
        self._since_commit = 0.0
        self._full = False

    def milliseconds(self, position: float) -> int:
        """Where `position` of the talk's stream, in seconds, lies in the sound this client sent."""
        dropped = self._given - self.heard
        return max(0, round((position - self._heard_before + dropped) * 1000))

    def _fits(self, seconds: float) -> bool:
        """By hand: what is sent between two commits has a bound. Raises BadEvent when it is reached."""
        most = self._settings.audio_max_seconds
        if self._since_commit + seconds > most:
            if not self._full:
                self._full = True
                raise BadEvent(
                    "input_audio_buffer_full",
                    f"{most:g} s of sound wait already; commit or clear them before more is taken.",
                    "audio",
                    seconds=most,
                )
            return False
        self._since_commit += seconds
        return True

    def _in_time(self, seconds: float) -> bool:
        """Hands-free: sound comes as fast as it is spoken, but for a burst. Raises BadEvent once in each."""
        now = self._clock()
        self._ahead = min(BURST_S, self._ahead + now - self._refilled)
        self._refilled = now
        needed = max(seconds, RECOVERED_S) if self._too_fast else seconds
        if needed > self._ahead:
            if not self._too_fast:
                self._too_fast = True
                raise BadEvent(
                    "audio_too_fast",
                    f"Sound came more than {BURST_S:g} s ahead of time; what is too early is dropped.",
                    "audio",
                    seconds=BURST_S,
                )
            return False
        self._too_fast = False
        self._ahead -= seconds
        return True
