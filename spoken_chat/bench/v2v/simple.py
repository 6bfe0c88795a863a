"""The simple pipeline of most Gradio demos: the whole recording, then the whole reply, then the whole voice."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

from spoken_chat.asr.whisper import WhisperRecognizer
from spoken_chat.audio import FloatPcm
from spoken_chat.conversation import Conversation
from spoken_chat.engines import Engines
from spoken_chat.errors import ChatError
from spoken_chat.llm import TextDelta
from spoken_chat.tts import SpeechChunk, SpeechRequest


class SimplePipeline:
    """On the same models as the app: its whisper through `transcribe()` with defaults, its server, its voice."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    async def answer(self, audio: FloatPcm) -> float:
        """Seconds from the end of the recording `audio` (16 kHz mono) to the reply's sound, ready to play.

        Raises ChatError when an engine is not one that can be used so.
        """
        engines = self._engines
        recognizer = engines.recognizer
        stages = await engines.stages()
        if not isinstance(recognizer, WhisperRecognizer):
            raise ChatError("bench_engine", "The simple pipeline needs faster-whisper for speech recognition.")
        persona, voice = engines.opening_persona, engines.opening_voice
        started = time.monotonic()
        words = await asyncio.to_thread(self._transcribe, recognizer, audio)
        messages = Conversation().messages(persona.prefix, words, None, persona.examples)
        async with aclosing(stages.model.stream(messages)) as events:
            reply = "".join([event.text async for event in events if isinstance(event, TextDelta)])
        request = SpeechRequest(reply, persona.language, voice.engines)
        samples = 0
        async with aclosing(engines.synthesizer.synthesize(request)) as spoken:
            async for event in spoken:
                if isinstance(event, SpeechChunk):
                    samples += len(event.pcm)
        if not samples:
            raise ChatError("bench_silent", "The simple pipeline's voice said nothing.")
        return time.monotonic() - started

    @staticmethod
    def _transcribe(recognizer: WhisperRecognizer, audio: FloatPcm) -> str:
        segments, _ = recognizer.model.transcribe(audio)
        return "".join(segment.text for segment in segments)
