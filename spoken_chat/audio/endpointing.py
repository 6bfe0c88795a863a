"""When somebody begins to speak, pauses and has finished: from the voice detector's probabilities to events.

Pure: no clock, no sound, no threads. Time is the stream's own, counted in chunks of 32 ms, and every position is in
seconds since the stream began. The events of one utterance come in this order:

    Onset, (FalseOnset | Started, (Paused, Resumed)*, [Paused], Ended)

An end by silence always has its Paused, at the latest in the same list; an end by length or by hand needs none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from spoken_chat.audio import ASR_RATE
from spoken_chat.audio.vad import CHUNK

CHUNK_S: Final = CHUNK / ASR_RATE
"""Seconds per probability."""

_ONSET_GAP_S: Final = 0.1
"""Silence that undoes what was too short to be an utterance. A shorter gap lies within a word, before its plosive."""

_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Onset:
    """Something like speech began at `position`; it may still be a cough."""

    position: float


@dataclass(frozen=True)
class Started:
    """Somebody speaks, since `position`: the same as that of the Onset before it."""

    position: float


@dataclass(frozen=True)
class FalseOnset:
    """The Onset at `position` fell silent before it was long enough for speech."""

    position: float


@dataclass(frozen=True)
class Paused:
    """The speaker has been silent since `speech_end` for so long that work on an answer may begin."""

    speech_end: float


@dataclass(frozen=True)
class Resumed:
    """The same utterance goes on after Paused; its new speech began at `position`."""

    position: float


@dataclass(frozen=True)
class Ended:
    """The utterance is over. `position` is how far the stream had come when that was known.

    `speech_end` is where the last speech ended. It equals `position` when the utterance was cut while the speaker
    still spoke, because of its length or by hand.
    """

    speech_start: float
    speech_end: float
    position: float


SpeechEvent = Onset | Started | FalseOnset | Paused | Resumed | Ended


@dataclass(frozen=True)
class EndpointRule:
    """When probabilities become speech, and speech an utterance. Times in seconds.

    Speech begins at a probability of `start` and lasts until one below `stop` (Silero's hysteresis). `onset_s` and
    `minimum_s` of it give Onset and Started; `pause_s` of silence gives Paused; an utterance longer than `maximum_s`
    is Ended where it is.
    """

    start: float = 0.5
    stop: float = 0.35
    onset_s: float = 0.064
    minimum_s: float = 0.09
    pause_s: float = 0.2
    maximum_s: float = 60.0


DEFAULT_RULE: Final = EndpointRule()


class _Stage(IntEnum):
    SILENT = 0
    BEGINNING = 1
    ONSET = 2
    SPEAKING = 3
    PAUSED = 4


class Endpointer:
    """Finds the utterances of one stream. `rule` and `wait_s` may be set at any time: they hold from the next chunk.

    `wait_s` is the silence in seconds that ends an utterance.
    """

    def __init__(self, rule: EndpointRule = DEFAULT_RULE, wait_s: float = 0.6) -> None:
        self.rule = rule
        self.wait_s = wait_s
        self._stage = _Stage.SILENT
        self._chunks = 0
        self._voiced = False
        self._speech_start = 0
        self._speech_end = 0
        self._speech = 0

    @property
    def position(self) -> float:
        """Seconds fed since the stream began."""
        return self._chunks * CHUNK_S

    @property
    def speaking(self) -> bool:
        """Whether an utterance is in progress: between Started and Ended."""
        return self._stage >= _Stage.SPEAKING

    @property
    def voiced(self) -> bool:
        """Whether the last chunk was speech, be it a click."""
        return self._voiced

    @property
    def speech_s(self) -> float:
        """Seconds of speech in the speech in progress, pauses not counted; 0 without one."""
        return self._speech * CHUNK_S

    @property
    def silence_s(self) -> float:
        """Seconds since the last speech. After Paused, a first chunk of speech does not end the silence yet."""
        return (self._chunks - self._speech_end) * CHUNK_S

    def feed(self, probability: float) -> list[SpeechEvent]:
        """What the probability of speech in the next 32 ms makes known."""
        was_voiced = self._voiced
        self._voiced = probability >= self.rule.start or (was_voiced and probability >= self.rule.stop)
        self._chunks += 1
        events = self._hear_speech(was_voiced) if self._voiced else self._hear_silence()
        if self.speaking and _lasts(self._chunks - self._speech_start, self.rule.maximum_s):
            events.append(self._end())
        return events

    def end_now(self) -> Ended | None:
        """End the utterance by hand; speech that goes on is the next one. None, and no change, where there is none."""
        return self._end() if self.speaking else None

    def reset(self) -> None:
        """Forget the speech in progress, without an event. The position keeps counting."""
        self._forget()
        self._voiced = False
        self._speech_end = self._chunks

    def _hear_speech(self, was_voiced: bool) -> list[SpeechEvent]:
        events: list[SpeechEvent] = []
        if self._stage == _Stage.PAUSED:
            if not was_voiced:  # perhaps a click, for which no work may be thrown away: the next chunk decides
                return events
            events.append(Resumed((self._chunks - 2) * CHUNK_S))
            self._stage = _Stage.SPEAKING
            self._speech += 1
        elif self._stage == _Stage.SILENT:
            self._stage = _Stage.BEGINNING
            self._speech_start = self._chunks - 1
        self._speech += 1
        self._speech_end = self._chunks
        return events + self._beginnings()

    def _beginnings(self) -> list[SpeechEvent]:
        events: list[SpeechEvent] = []
        start = self._speech_start * CHUNK_S
        long_enough = _lasts(self._speech, self.rule.minimum_s)
        if self._stage == _Stage.BEGINNING and (long_enough or _lasts(self._speech, self.rule.onset_s)):
            self._stage = _Stage.ONSET
            events.append(Onset(start))
        if self._stage == _Stage.ONSET and long_enough:
            self._stage = _Stage.SPEAKING
            events.append(Started(start))
        return events

    def _hear_silence(self) -> list[SpeechEvent]:
        events: list[SpeechEvent] = []
        silence = self._chunks - self._speech_end
        if self._stage in (_Stage.BEGINNING, _Stage.ONSET) and _lasts(silence, _ONSET_GAP_S):
            if self._stage == _Stage.ONSET:
                events.append(FalseOnset(self._speech_start * CHUNK_S))
            self._forget()
        if self._stage == _Stage.SPEAKING and _lasts(silence, min(self.rule.pause_s, self.wait_s)):
            self._stage = _Stage.PAUSED
            events.append(Paused(self._speech_end * CHUNK_S))
        if self._stage == _Stage.PAUSED and _lasts(silence, self.wait_s):
            events.append(self._end())
        return events

    def _end(self) -> Ended:
        ended = Ended(self._speech_start * CHUNK_S, self._speech_end * CHUNK_S, self.position)
        self._forget()
        return ended

    def _forget(self) -> None:
        self._stage = _Stage.SILENT
        self._speech = 0


def _lasts(chunks: int, seconds: float) -> bool:
    """Whether so many chunks are at least `seconds` long."""
    return chunks * CHUNK_S >= seconds - _ROUNDING
