"""Captions of what somebody says while they say it: when the recogniser drafts what, and what is told of it.

Drafts use the same recogniser as the pass over the whole utterance, which must not wait for them. So there is at most
one at a time, for at most a third of the time, only while there is speech, and none where the machine is too slow.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from spoken_chat.asr import Recognizer
from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.audio.vad import CHUNK
from spoken_chat.errors import ChatError
from spoken_chat.talk.background import Background
from spoken_chat.talk.caption_pieces import Piece, Pieces, Slice
from spoken_chat.talk.caption_text import CaptionText
from spoken_chat.talk.options import WORK_AFTER_S

log = logging.getLogger(__name__)

INTERVAL_S: Final = 0.5
"""From one draft's start to the next one's: faster than this, captions flicker."""
LEAST_NEWS_S: Final = 0.3
"""Speech since the last draft without which the next would say the same: about a word."""
REST: Final = 2.0
"""After a draft, nothing is drafted for this many times as long as it took."""

GIVE_UP_AFTER_S: Final = 2 * CHUNK / ASR_RATE
"""A draft that would not be over when the final pass is asked is stopped after this much silence."""
TOO_SLOW_S: Final = (WORK_AFTER_S - GIVE_UP_AFTER_S) / 0.57
"""While drafts take longer than this on average, there are none.

A stopped draft still ends its step in work. It has two, encoder and decoder, of which neither was measured to take more
than 0.57 of it, so that it is over when the final pass is asked after `WORK_AFTER_S` of silence.
"""
TRY_AGAIN_S: Final = 5.0
"""Between the drafts by which a slow machine shows that it has become faster."""

_WEIGHT: Final = 0.2
"""Of the latest draft in the average: one slow draft alone ends no captions, three in a row do."""


class Captions:
    """The captions of one talk, utterance after utterance. `tell(stable, tail)` is called when they change.

    `stable` is the beginning of every later `stable`, until `reset`; `stable + tail` is the whole text.
    """

    def __init__(
        self,
        recognizer: Recognizer,
        languages: Callable[[], Sequence[str]],
        tell: Callable[[str, str], None],
        clock: Callable[[], float],
    ) -> None:
        self._recognizer = recognizer
        self._languages = languages
        self._tell = tell
        self._clock = clock
        self._background = Background()
        self._pace = _Pace()
        self._draft: asyncio.Task[None] | None = None
        self._begun = 0.0
        self.reset()

    def reset(self) -> None:
        """The utterance is over; what is fed next belongs to another one."""
        if self._draft is not None:
            self._draft.cancel()
        self._text = CaptionText()
        self._pieces: Pieces | None = None
        self._told = ("", "")
        self._news_s = 0.0
        self._voiced_to = 0.0
        self._failed = False

    async def stop(self) -> None:
        """Stop the draft in work and wait until it is gone."""
        await self._background.close()

    def feed(self, position_s: float, voiced: bool, slice: Slice, speech_start: float) -> None:
        """The next 32 ms of an utterance end at `position_s` of the stream, and are speech or not.

        `slice(start, end)` gives the sound between two positions. The utterance began at `speech_start`.
        """
        if self._pieces is None:
            self._pieces = Pieces(speech_start)
        self._pieces.note(position_s, voiced)
        now = self._clock()
        if voiced:
            self._voiced_to = position_s
            self._news_s += CHUNK / ASR_RATE
        if self._draft is not None:
            self._stop_if_late(self._draft, now, position_s - self._voiced_to)
        elif voiced and not self._failed and self._news_s >= LEAST_NEWS_S and now >= self._pace.next_at:
            piece = self._pieces.due(position_s, slice)
            self._news_s = 0.0
            self._begun = now
            self._draft = self._background.start(self._run(piece, slice(piece.start, piece.end), self._pieces))
            self._draft.add_done_callback(self._over)

    def _stop_if_late(self, draft: asyncio.Task[None], now: float, silence_s: float) -> None:
        if silence_s >= WORK_AFTER_S:
            draft.cancel()
        elif silence_s >= GIVE_UP_AFTER_S:
            expected_end = self._begun + self._pace.average
            if expected_end > now + WORK_AFTER_S - silence_s:
                draft.cancel()

    def _over(self, draft: asyncio.Task[None]) -> None:
        self._draft = None
        self._pace.ended(self._begun, self._clock(), whole=not draft.cancelled())

    async def _run(self, piece: Piece, sound: FloatPcm, pieces: Pieces) -> None:
        try:
            heard = (await self._recognizer.draft(sound, self._languages())).text
        except ChatError as error:
            self._failed = True
            log.warning("there are no more captions of this utterance: %s", error.message)
            return
        except Exception:  # the event loop logs it; the next chunk must not begin another draft that fails the same way
            self._failed = True
            raise
        if piece.closed:
            pieces.close(piece)
            self._text.freeze(heard, sentence_may_end=piece.paused)
        else:
            self._text.update(heard)
        shown = (self._text.stable, self._text.tail)
        if shown != self._told:
            self._told = shown
            self._tell(*shown)


class _Pace:
    """How long drafts take, and when the next one may begin; in seconds on the captions' clock."""

    def __init__(self) -> None:
        self.average = 0.0
        """Of the latest drafts; 0 before the first one."""
        self.next_at = 0.0
        self._alone = True  # the next draft decides alone: it is the first, or a trial

    def ended(self, begun: float, now: float, *, whole: bool) -> None:
        """A draft ended, or was stopped: then it would have taken longer than it did."""
        took = now - begun
        if whole or took > self.average:
            self.average = took if self._alone else self.average + _WEIGHT * (took - self.average)
            self._alone = self.average > TOO_SLOW_S
        self.next_at = max(begun + INTERVAL_S, now + (TRY_AGAIN_S if self.average > TOO_SLOW_S else REST * took))
