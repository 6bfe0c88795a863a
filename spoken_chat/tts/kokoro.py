"""The local voice: Kokoro-82M on the CPU, Chinese and English, no network."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import numpy as np

from spoken_chat.audio import Pcm16
from spoken_chat.audio.silence import TAIL_SECONDS, SilenceTrimmer
from spoken_chat.errors import ChatError
from spoken_chat.settings import ROOT, Settings
from spoken_chat.tts import SpeechChunk, SpeechEvent, SpeechRequest
from spoken_chat.tts.kokoro_model import LONGEST, RATE, Interrupt, KokoroModel, voice_names
from spoken_chat.tts.kokoro_tokens import SENTENCE_ENDS, split_phonemes
from spoken_chat.tts.phonemes import Phonemizer

log = logging.getLogger(__name__)

ENGINE: Final = "kokoro"
VOICE_DIR: Final = ROOT / "assets" / "voices"

CHUNK_SECONDS: Final = 0.2
_SENTENCE_PAUSE_SECONDS: Final = 0.25
"""Silence kept behind a sentence when more of the same clause follows."""

_WARM_UP: Final = {"zh": "你好。", "en": "Hello."}


class KokoroSynthesizer:
    """Speaks one clause at a time in a thread of its own, so that clauses never compete for the cores."""

    name = ENGINE
    parallel = 1

    def __init__(self, settings: Settings, languages: Sequence[str] = (), voice_dir: Path = VOICE_DIR) -> None:
        """Nothing is loaded yet. `languages` are those that `load` makes ready; any other is on its first clause."""
        self._settings = settings
        self._languages = tuple(languages)
        self._voice_dir = voice_dir
        self._lock = threading.Lock()
        self._model: KokoroModel | None = None
        self._phonemizer = Phonemizer(settings.cache_dir)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=ENGINE)

    def load(self) -> None:
        """Load the network and the languages given, and run each once; blocks. Raises ChatError.

        A second call, also from another thread, waits for the first and returns.
        """
        self._loaded()

    def close(self) -> None:
        """Drop what waits and let the thread end; a clause being spoken should be closed before."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def synthesize(self, request: SpeechRequest) -> AsyncGenerator[SpeechEvent, None]:
        """Yield the clause's sound in pieces of about 0.2 s. Raises ChatError.

        Nothing comes within a stretch of up to 180 phonemes, about 12 s, as the network speaks it in one go. Closing
        the generator interrupts the network within one of its layers. Text with nothing to say yields nothing.
        """
        voice = request.voices.get(ENGINE)
        if voice is None:
            raise ChatError(
                "voice_missing",
                f"The persona names no voice for {ENGINE}; add one to its file, such as `{ENGINE}: af_heart`.",
                engine=ENGINE,
            )
        loop = asyncio.get_running_loop()
        interrupts: list[Interrupt] = []
        try:
            pieces = await loop.run_in_executor(self._executor, self._pieces, request, voice)
            for number, piece in enumerate(pieces, start=1):
                interrupts.append(Interrupt())
                pause = _pause(piece) if number < len(pieces) else TAIL_SECONDS
                pcm = await loop.run_in_executor(
                    self._executor, self._speak, piece, voice, request.style.rate, pause, interrupts[-1]
                )
                for chunk in _chunks(pcm):
                    yield SpeechChunk(chunk, ENGINE)
        finally:
            for interrupt in interrupts:
                interrupt.set()

    def _loaded(self) -> KokoroModel:
        with self._lock:
            if self._model is None:
                started = time.monotonic()
                model = KokoroModel(self._settings.cache_dir, self._voice_dir, self._settings.tts_threads)
                self._warm_up(model)
                self._model = model
                log.info("%s loaded in %.1f s", ENGINE, time.monotonic() - started)
            return self._model

    def _warm_up(self, model: KokoroModel) -> None:
        for language in self._languages:
            self._phonemizer.load(language)
            self._phonemizer.phonemes(_WARM_UP.get(language, _WARM_UP["en"]), language)
        for voice in voice_names(self._voice_dir)[:1]:
            # The network does not know languages: one run warms them all.
            model.speak("həlˈO.", model.voice(voice), 1.0, Interrupt())

    def _pieces(self, request: SpeechRequest, voice: str) -> list[str]:
        self._loaded().voice(voice)
        return split_phonemes(self._phonemizer.phonemes(request.text, request.language), LONGEST)

    def _speak(self, phonemes: str, voice: str, speed: float, pause: float, interrupt: Interrupt) -> Pcm16:
        model = self._loaded()
        pcm = model.speak(phonemes, model.voice(voice), speed, interrupt)
        trimmer = SilenceTrimmer(RATE, tail=pause)
        return np.concatenate([trimmer.feed(pcm), trimmer.finish()])


def _pause(piece: str) -> float:
    return _SENTENCE_PAUSE_SECONDS if piece.rstrip().endswith(tuple(SENTENCE_ENDS)) else TAIL_SECONDS


def _chunks(pcm: Pcm16) -> Iterator[Pcm16]:
    step = round(RATE * CHUNK_SECONDS)
    for start in range(0, len(pcm), step):
        yield pcm[start : start + step]
