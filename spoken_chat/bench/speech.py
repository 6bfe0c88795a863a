"""Speech with known words: recordings of people where the project's checkout has them, and synthesised speech."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from spoken_chat.audio import ASR_RATE, TTS_RATE, FloatPcm
from spoken_chat.audio.decode import decode_audio
from spoken_chat.audio.pcm import to_mono
from spoken_chat.settings import ROOT, Settings
from spoken_chat.tts import SpeechChunk, SpeechRequest, Synthesizer

RECORDINGS: Final = ROOT.parent / "shared" / "speech"
"""Recordings of people, described in SOURCES.md: a table of file, seconds, language and words."""

_SOURCES: Final = "SOURCES.md"
_WORDS: Final = {
    "wenet_librispeech-1995-1837-0001.wav": "It was the first great sorrow of his life. It was not so much the loss of "
    "the cotton itself, but the fantasy, the hopes, the dreams built around it."
}
"""What is said where the table gives the number of the recording instead."""

SENTENCES: Final = (
    ("en", "Could you tell me a short story about the sea?"),
    ("en", "I had a long day at work, and now I just want to cook something simple."),
    ("en", "What should I bring when I visit my friend tomorrow?"),
    ("zh", "你今天过得怎么样？"),
    ("zh", "我想周末去公园散步，你觉得天气会好吗？"),
    ("zh", "请给我讲一个有趣的故事。"),
)
"""What is synthesised: language and words, without figures, which each side would spell its own way."""

_VOICES: Final = {"en": "af_heart", "zh": "zf_xiaoxiao"}


@dataclass(frozen=True)
class Sample:
    """16 kHz mono speech, its ISO 639-1 language and what is said."""

    name: str
    audio: FloatPcm
    language: str
    words: str

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.audio) / ASR_RATE


def recorded(folder: Path = RECORDINGS) -> list[Sample]:
    """The recordings in `folder` that its SOURCES.md describes, in the table's order; none where there is no folder."""
    sources = folder / _SOURCES
    if not sources.is_file():
        return []
    samples = []
    for line in sources.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 4 or not (folder / cells[0]).is_file():
            continue
        name, _, language, words = cells[:4]
        audio = decode_audio(folder / name, max_seconds=60, max_bytes=10_000_000)
        samples.append(Sample(name, audio, language, _WORDS.get(name, words)))
    return samples


def synthesised(settings: Settings, sentences: Sequence[tuple[str, str]] = SENTENCES) -> list[Sample]:
    """`sentences` ((language, words) each) as the Kokoro voice speaks them. Raises ChatError without its weights."""
    # Imported here: it takes seconds, and who has recordings does not need it.
    from spoken_chat.tts.kokoro import KokoroSynthesizer

    voice = KokoroSynthesizer(settings)
    try:
        voice.load()
        return asyncio.run(_speak_all(voice, sentences))
    finally:
        voice.close()


async def _speak_all(voice: Synthesizer, sentences: Sequence[tuple[str, str]]) -> list[Sample]:
    samples = []
    for number, (language, words) in enumerate(sentences, start=1):
        request = SpeechRequest(words, language, {"kokoro": _VOICES[language]})
        pieces = [event.pcm async for event in voice.synthesize(request) if isinstance(event, SpeechChunk)]
        audio = to_mono(np.concatenate(pieces), TTS_RATE, ASR_RATE)
        samples.append(Sample(f"synthesised {language} {number}", audio, language, words))
    return samples
