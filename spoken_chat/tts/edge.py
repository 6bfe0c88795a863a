"""Speech by Microsoft Edge's online voices, through the package edge-tts, decoded and passed on as it arrives."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncGenerator, Iterator
from typing import Final

import edge_tts

from spoken_chat.audio import TTS_RATE, Pcm16
from spoken_chat.audio.silence import SilenceTrimmer
from spoken_chat.errors import ChatError
from spoken_chat.tts import SpeechChunk, SpeechEvent, SpeechRequest, SpeechStyle
from spoken_chat.tts.edge_stream import EdgeStream
from spoken_chat.tts.interruption import AnnouncedWord, SpeechInterrupted, remaining_text, speakable
from spoken_chat.tts.mp3 import Mp3Decoder

TICKS_PER_SECOND: Final = 10_000_000
"""The service announces times in units of 100 ns."""

LONGEST_MESSAGE: Final = 800
"""Characters sent in one request. edge-tts cuts at 4096 bytes of escaped UTF-8 (at most 5 bytes a character, for
"&amp;") and goes on with the next part even when the one before was cut off, so it never gets two parts at once."""

_BREAK: Final = re.compile(r"[\s。，、；：！？]")
_NAME: Final = "edge"
_log = logging.getLogger(__name__)


class EdgeSynthesizer:
    """Speaks with the voice `request.voices["edge"]`, such as `zh-CN-XiaoxiaoNeural`. Needs the network."""

    def __init__(self, *, connect_timeout: float, step_timeout: float) -> None:
        """`connect_timeout`: longest wait for the first sound; `step_timeout`: between two pieces of it; seconds."""
        self._connect_timeout = connect_timeout
        self._step_timeout = step_timeout

    @property
    def name(self) -> str:
        """`edge`."""
        return _NAME

    @property
    def parallel(self) -> int:
        """Two: the wait is the network's."""
        return 2

    def load(self) -> None:
        """Nothing needs loading."""

    def close(self) -> None:
        """Nothing is kept between clauses."""

    async def synthesize(self, request: SpeechRequest) -> AsyncGenerator[SpeechEvent, None]:
        """Yield the clause's sound as it arrives, without the silence around it.

        Raises SpeechInterrupted with the text still to be said when the service fails, and a plain ChatError when
        the request has no voice that edge-tts knows.
        """
        trimmer = SilenceTrimmer(TTS_RATE)
        for part, following in _parts(request.text):
            async with contextlib.aclosing(self._speak(part, request)) as sound:
                try:
                    async for pcm in sound:
                        for chunk in _chunks(trimmer.feed(pcm)):
                            yield chunk
                except SpeechInterrupted as interruption:
                    for chunk in _chunks(trimmer.finish()):
                        yield chunk
                    interruption.remaining += following
                    raise
        for chunk in _chunks(trimmer.finish()):
            yield chunk

    async def _speak(self, text: str, request: SpeechRequest) -> AsyncGenerator[Pcm16, None]:
        """The samples of one request to the service, as they are decoded. Raises SpeechInterrupted."""
        received = _Received(text)
        fault: ChatError | None = None
        async with EdgeStream(_communicate(text, request)) as stream:
            try:
                while (mp3 := await self._next_sound(stream, received)) is not None:
                    yield received.decode(mp3)
                yield received.finish()
                received.check_complete(stream)
            except ChatError as error:
                fault = error
        if fault is None:
            return
        remaining = received.remaining()
        if not remaining:
            _log.info("edge-tts failed after the last word of a clause: %s", fault.message)
            return
        raise SpeechInterrupted(fault.code, fault.message, remaining, **fault.details) from fault

    async def _next_sound(self, stream: EdgeStream, received: _Received) -> bytes | None:
        """The next piece of mp3, or None at the end; words announced before it are noted. Raises ChatError."""
        longest = self._step_timeout if received.samples else self._connect_timeout
        try:
            async with asyncio.timeout(longest):
                while (message := await stream.receive()) is not None:
                    if message["type"] == "audio":
                        return message["data"]
                    received.announce(message["text"], message["offset"] + message["duration"])
                return None
        except TimeoutError as error:
            if stream.turn_ended:
                return None
            raise ChatError(
                "tts_timeout",
                f"The voice service edge-tts sent no sound for {longest:g} s; check the network connection.",
                seconds=longest,
            ) from error


class _Received:
    """What has come of one request: sound, and the words announced for it."""

    def __init__(self, text: str) -> None:
        self.samples = 0
        self._text = text
        self._words: list[AnnouncedWord] = []
        self._decoder = Mp3Decoder()

    def announce(self, word: str, end_ticks: float) -> None:
        self._words.append(AnnouncedWord(word, end_ticks / TICKS_PER_SECOND))

    def decode(self, mp3: bytes) -> Pcm16:
        return self._counted(self._decoder.feed(mp3))

    def finish(self) -> Pcm16:
        return self._counted(self._decoder.finish())

    def check_complete(self, stream: EdgeStream) -> None:
        """Raise ChatError unless the service said that it had finished and sound came of it."""
        if self.samples == 0:
            raise ChatError("tts_no_sound", "The voice service edge-tts sent no sound; try another voice or text.")
        if not stream.turn_ended:
            raise ChatError(
                "tts_dropped", "The connection to the voice service edge-tts broke off; check the network connection."
            )

    def remaining(self) -> str:
        """The part of the text that was not spoken in full."""
        return remaining_text(self._text, self._words, self.samples / TTS_RATE) if self.samples else self._text

    def _counted(self, pcm: Pcm16) -> Pcm16:
        self.samples += len(pcm)
        return pcm


def _communicate(text: str, request: SpeechRequest) -> edge_tts.Communicate:
    voice = request.voices.get(_NAME)
    if voice is None:
        raise ChatError(
            "tts_no_voice",
            f"There is no edge-tts voice for the language {request.language!r}; add one to the persona.",
            engine=_NAME,
            language=request.language,
        )
    rate, pitch = _prosody(request.style)
    try:
        return edge_tts.Communicate(text, voice, rate=rate, pitch=pitch, boundary="WordBoundary")
    except ValueError as error:
        raise ChatError(
            "tts_bad_voice",
            f"edge-tts cannot speak with the voice {voice!r}, rate {rate} and pitch {pitch}; correct the persona.",
            voice=voice,
        ) from error


def _prosody(style: SpeechStyle) -> tuple[str, str]:
    """Rate and pitch as the service reads them: a rate of 1.08 is `+8%`, a pitch of 10 is `+10Hz`."""
    return f"{round((style.rate - 1) * 100):+d}%", f"{style.pitch_hz:+d}Hz"


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Cut `text` into what one request may hold, at a space or mark where there is one: (part, what follows it)."""
    start = 0
    while start < len(text):
        end = min(len(text), start + LONGEST_MESSAGE)
        if end < len(text):
            end = max((match.end() for match in _BREAK.finditer(text, start, end)), default=end)
        if speakable(text[start:end]):
            yield text[start:end], text[end:]
        start = end


def _chunks(pcm: Pcm16) -> list[SpeechEvent]:
    """`pcm` as events: none when it is empty."""
    return [SpeechChunk(pcm, _NAME)] if len(pcm) else []
