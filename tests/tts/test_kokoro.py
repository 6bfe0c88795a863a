"""The local voice speaks Chinese and English, one clause at a time, and can be interrupted."""

from __future__ import annotations

import asyncio
import functools
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein

from spoken_chat.asr.whisper_weights import model_folder
from spoken_chat.audio import ASR_RATE, TTS_RATE, Pcm16
from spoken_chat.audio.pcm import to_mono
from spoken_chat.errors import ChatError
from spoken_chat.settings import ROOT, load
from spoken_chat.tts import SpeechChunk, SpeechRequest, SpeechStyle
from spoken_chat.tts import kokoro as kokoro_module
from spoken_chat.tts.kokoro import CHUNK_SECONDS, KokoroSynthesizer
from spoken_chat.tts.kokoro_model import Interrupt, KokoroModel, read_voice

engines = pytest.mark.engines

VOICES = {"en": "af_heart", "zh": "zf_xiaoxiao"}
ENGLISH = "The weather is lovely today, so let us take a walk in the park."
CHINESE = "今天天气真不错，我们一起去公园散步吧。"


def request(text: str, language: str = "en", **parts: Any) -> SpeechRequest:
    return SpeechRequest(text, language, {"kokoro": VOICES[language]}, **parts)


async def chunks_of(voice: KokoroSynthesizer, clause: SpeechRequest) -> list[Pcm16]:
    return [event.pcm async for event in voice.synthesize(clause) if isinstance(event, SpeechChunk)]


async def speak(voice: KokoroSynthesizer, clause: SpeechRequest) -> Pcm16:
    return np.concatenate(await chunks_of(voice, clause))


class FakeModel:
    """Speaks 0.5 s of tone for whatever it is given; "…" goes on until it is interrupted."""

    made = 0

    def __init__(self, *_: object) -> None:
        time.sleep(0.02)
        type(self).made += 1
        self.spoken: list[str] = []
        self.running = threading.Event()
        self.interrupted = threading.Event()

    def voice(self, name: str) -> str:
        return name

    def speak(self, phonemes: str, _style: object, _speed: float, interrupt: Interrupt) -> Pcm16:
        self.spoken.append(phonemes)
        if phonemes.startswith("…"):
            self.running.set()
            while not interrupt.options.terminate:
                time.sleep(0.002)
            self.interrupted.set()
            raise RuntimeError("interrupted")
        return np.full(TTS_RATE // 2, 5000, np.int16)


class FakePhonemizer:
    """Takes text for phonemes."""

    def __init__(self, _cache: Path) -> None:
        self.loaded: list[str] = []

    def load(self, language: str) -> None:
        self.loaded.append(language)

    def phonemes(self, text: str, _language: str) -> str:
        return text


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[KokoroSynthesizer]:
    """The synthesiser around a scripted network."""
    monkeypatch.setattr(kokoro_module, "KokoroModel", FakeModel)
    monkeypatch.setattr(kokoro_module, "Phonemizer", FakePhonemizer)
    FakeModel.made = 0
    voice = KokoroSynthesizer(load())
    yield voice
    voice.close()


def network(voice: KokoroSynthesizer) -> Any:
    """The scripted network inside."""
    return voice._loaded()


def test_loading_from_several_threads_happens_once(scripted: KokoroSynthesizer) -> None:
    threads = [threading.Thread(target=scripted.load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert FakeModel.made == 1


async def test_a_clause_loads_the_voice_when_nobody_did(scripted: KokoroSynthesizer) -> None:
    assert len(await speak(scripted, request("hello"))) == TTS_RATE // 2
    assert FakeModel.made == 1


async def test_sound_comes_in_short_chunks(scripted: KokoroSynthesizer) -> None:
    lengths = [len(chunk) for chunk in await chunks_of(scripted, request("hello"))]
    assert lengths == [round(TTS_RATE * CHUNK_SECONDS)] * 2 + [TTS_RATE // 10]


async def test_text_longer_than_the_network_takes_is_spoken_whole_in_pieces(scripted: KokoroSynthesizer) -> None:
    text = " ".join(f"sentence number {number}." for number in range(40))
    pcm = await speak(scripted, request(text))
    pieces = [piece for piece in network(scripted).spoken if piece in text]
    assert "".join(pieces) == text
    assert len(pieces) > 2
    assert len(pcm) == len(pieces) * TTS_RATE // 2


async def test_text_with_nothing_to_say_yields_nothing(scripted: KokoroSynthesizer) -> None:
    assert await chunks_of(scripted, request("")) == []


async def test_cancelling_returns_at_once_and_frees_the_voice_for_the_next_clause(scripted: KokoroSynthesizer) -> None:
    task = asyncio.create_task(speak(scripted, request("… for ever")))
    model = await asyncio.to_thread(network, scripted)
    await asyncio.to_thread(model.running.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await speak(scripted, request("next"))) == TTS_RATE // 2
    assert model.interrupted.is_set()


async def test_a_clause_cancelled_while_it_waits_is_never_spoken(scripted: KokoroSynthesizer) -> None:
    first = asyncio.create_task(speak(scripted, request("… for ever")))
    model = await asyncio.to_thread(network, scripted)
    await asyncio.to_thread(model.running.wait)
    second = asyncio.create_task(speak(scripted, request("waiting")))
    await asyncio.sleep(0)
    for task in (second, first):
        task.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    await speak(scripted, request("next"))
    assert "waiting" not in model.spoken


async def test_closing_after_the_first_chunk_speaks_no_further_piece(scripted: KokoroSynthesizer) -> None:
    text = " ".join(f"sentence number {number}." for number in range(40))
    async with aclosing(scripted.synthesize(request(text))) as events:
        await anext(events)
    assert len([piece for piece in network(scripted).spoken if piece in text]) == 1


async def test_a_persona_without_a_kokoro_voice_is_told(scripted: KokoroSynthesizer) -> None:
    with pytest.raises(ChatError, match="names no voice for kokoro") as fault:
        await chunks_of(scripted, SpeechRequest("hello", "en", {"edge": "en-US-EmmaNeural"}))
    assert fault.value.code == "voice_missing"


def test_a_voice_without_a_file_is_told_with_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "af_heart.bin").write_bytes(bytes(510 * 256 * 4))
    with pytest.raises(ChatError, match=r"'zf_nobody'.*af_heart") as fault:
        read_voice(tmp_path, "zf_nobody")
    assert fault.value.code == "voice_missing"
    with pytest.raises(ChatError, match="no Kokoro voice"):
        read_voice(tmp_path / "elsewhere", "../af_heart")


def test_a_voice_file_cut_short_is_told(tmp_path: Path) -> None:
    (tmp_path / "af_heart.bin").write_bytes(bytes(1000))
    with pytest.raises(ChatError, match="damaged") as fault:
        read_voice(tmp_path, "af_heart")
    assert fault.value.code == "voice_damaged"


@pytest.mark.parametrize("name", ["zf_xiaoxiao", "zm_yunxi", "af_heart", "am_michael"])
def test_the_voices_shipped_can_be_read(name: str) -> None:
    style = read_voice(ROOT / "assets" / "voices", name)
    assert style.shape == (510, 256)
    assert np.isfinite(style).all()


@pytest.fixture(scope="module")
def voice() -> Iterator[KokoroSynthesizer]:
    """The real voice."""
    real = KokoroSynthesizer(load(), ["zh"])
    real.load()
    yield real
    real.close()


@functools.cache
def recogniser() -> Any:
    """The packaged speech model, through faster-whisper alone."""
    from faster_whisper import WhisperModel

    return WhisperModel(str(model_folder(load())), device="cpu", compute_type="int8")


def heard(pcm: Pcm16, language: str) -> str:
    """What a listener understands, letters only and in Simplified Chinese."""
    from opencc import OpenCC

    segments, _ = recogniser().transcribe(to_mono(pcm, TTS_RATE, ASR_RATE), language=language, beam_size=1)
    return letters(OpenCC("t2s").convert("".join(segment.text for segment in segments)))


def letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text.lower())


def error_rate(said: str, wanted: str) -> float:
    return Levenshtein.distance(said, letters(wanted)) / len(letters(wanted))


@engines
@pytest.mark.parametrize(("text", "language", "fastest", "slowest"), [(ENGLISH, "en", 25, 8), (CHINESE, "zh", 9, 2.5)])
async def test_a_sentence_is_understood_and_takes_as_long_as_speech_does(
    voice: KokoroSynthesizer, text: str, language: str, fastest: float, slowest: float
) -> None:
    pcm = await speak(voice, request(text, language))
    assert pcm.dtype == np.int16
    assert np.abs(pcm).max() > 3000
    assert len(text) / fastest < len(pcm) / TTS_RATE < len(text) / slowest
    assert error_rate(heard(pcm, language), text) < 0.25


@engines
async def test_figures_and_dates_are_spoken(voice: KokoroSynthesizer) -> None:
    pcm = await speak(voice, request("会议在2026年11月30日，10:30开始。", "zh"))
    said = heard(pcm, "zh")
    assert re.search("2026|二零二六|二〇二六", said)
    assert re.search("30|三十", said)
    assert re.search("11月|十一月", said)


@engines
async def test_the_last_sentence_of_a_long_clause_is_spoken(voice: KokoroSynthesizer) -> None:
    short = await speak(voice, request(ENGLISH, style=SpeechStyle(rate=1.3)))
    others = "My sister bought a new bicycle last week. The kitchen smells of fresh bread."
    text = f"{ENGLISH} {others} Elephants never forget a friend. The train to the mountains leaves at noon."
    long = await speak(voice, request(text, style=SpeechStyle(rate=1.3)))
    assert len(long) > 2.5 * len(short)
    said = heard(long, "en")
    assert all(word in said for word in ("bicycle", "bread", "elephants", "mountains", "noon"))


@engines
async def test_the_style_sets_the_pace(voice: KokoroSynthesizer) -> None:
    slow, fast = [await speak(voice, request("你好，朋友。", "zh", style=SpeechStyle(rate))) for rate in (0.8, 1.3)]
    assert len(fast) < 0.85 * len(slow)


@engines
async def test_silence_at_the_ends_is_gone(voice: KokoroSynthesizer) -> None:
    pcm = await speak(voice, request("你好。", "zh"))
    loud = np.flatnonzero(np.abs(pcm) > 500)
    assert loud[0] < 0.15 * TTS_RATE
    assert len(pcm) - loud[-1] < 0.3 * TTS_RATE


@engines
async def test_cancelling_the_real_network_leaves_it_usable(voice: KokoroSynthesizer) -> None:
    task = asyncio.create_task(speak(voice, request(ENGLISH)))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await speak(voice, request("你好。", "zh"))) > TTS_RATE // 4


@engines
def test_an_interrupted_network_stops_before_it_has_spoken(voice: KokoroSynthesizer) -> None:
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail

    model: KokoroModel = voice._loaded()
    interrupt = Interrupt()
    interrupt.set()
    with pytest.raises(Fail, match="terminate"):
        model.speak("həlˈO.", model.voice("af_heart"), 1.0, interrupt)


@engines
async def test_a_missing_voice_is_told_and_the_next_clause_is_spoken(voice: KokoroSynthesizer) -> None:
    with pytest.raises(ChatError) as fault:
        await chunks_of(voice, SpeechRequest("hello", "en", {"kokoro": "af_nobody"}))
    assert fault.value.code == "voice_missing"
    assert await chunks_of(voice, request("你好。", "zh"))


@engines
def test_speaking_makes_no_connection_imports_no_gpl_package_and_prints_nothing(tmp_path: Path) -> None:
    program = f"""
        import asyncio, sys
        def refuse(event, args):
            if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "subprocess.Popen"):
                raise SystemExit(f"{{event}} {{args}}")
        sys.addaudithook(refuse)
        from pathlib import Path
        from spoken_chat.settings import load
        from spoken_chat.tts import SpeechRequest
        from spoken_chat.tts import kokoro
        voice = kokoro.KokoroSynthesizer(load(), ["zh"])
        voice._phonemizer = kokoro.Phonemizer(Path({str(tmp_path)!r}))
        async def main():
            for text, language, name in (("你好", "zh", "zm_yunxi"), ("Hi Gradio", "en", "am_michael")):
                request = SpeechRequest(text, language, {{"kokoro": name}})
                assert [event async for event in voice.synthesize(request)]
        asyncio.run(main())
        voice.close()
        unwanted = [name for name in sys.modules if name.split(".")[0] in ("phonemizer", "espeakng_loader", "nltk")]
        assert not unwanted, unwanted
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
