"""The real edge-tts client speaks against a local server: sound as it arrives, and no text lost when it breaks off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import edge_tts
import numpy as np
import pytest

from spoken_chat.audio import TTS_RATE, Pcm16
from spoken_chat.errors import ChatError
from spoken_chat.tts import SpeechChunk, SpeechRequest, SpeechStyle
from spoken_chat.tts.edge import LONGEST_MESSAGE, EdgeSynthesizer
from spoken_chat.tts.interruption import SpeechInterrupted
from tests.support import edge_server
from tests.support.edge_server import Behaviour, EdgeServer

TEXT = "Hello there, my good friend."
SHORT = 0.4
"""Timeout where the server stalls; PATIENT where it must not run out."""
PATIENT = 20.0
NEVER = 3600.0
STALLS = (Behaviour.STALL_MID_AUDIO, Behaviour.STALL_BEFORE_END)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EdgeServer]:
    for proxy in ("http_proxy", "https_proxy", "ws_proxy", "wss_proxy", "all_proxy"):
        monkeypatch.delenv(proxy, raising=False)
        monkeypatch.delenv(proxy.upper(), raising=False)
    async with EdgeServer(spoken_as={"22": ("twenty", "two")}) as running:
        monkeypatch.setattr("edge_tts.communicate.WSS_URL", running.url)
        # A client that waits for the answer to its close frame, which a stalled server does not give, hangs here.
        monkeypatch.setattr("aiohttp.client.DEFAULT_WS_CLIENT_TIMEOUT", aiohttp.ClientWSTimeout(ws_close=NEVER))
        yield running


def voice(*, connect_timeout: float = PATIENT, step_timeout: float = PATIENT) -> EdgeSynthesizer:
    return EdgeSynthesizer(connect_timeout=connect_timeout, step_timeout=step_timeout)


def request(text: str = TEXT, style: SpeechStyle | None = None) -> SpeechRequest:
    return SpeechRequest(text, "en", {"edge": "en-US-EmmaNeural"}, style or SpeechStyle())


async def speak(synthesizer: EdgeSynthesizer, asked: SpeechRequest) -> tuple[Pcm16, SpeechInterrupted | None]:
    """All the sound, and the interruption that ended it, if any."""
    pieces: list[Pcm16] = [np.zeros(0, dtype=np.int16)]
    try:
        async with asyncio.timeout(PATIENT * 2):
            async for event in synthesizer.synthesize(asked):
                assert isinstance(event, SpeechChunk)
                assert event.engine == "edge"
                assert len(event.pcm) > 0
                pieces.append(event.pcm)
    except SpeechInterrupted as interruption:
        return np.concatenate(pieces), interruption
    return np.concatenate(pieces), None


def beeps(pcm: Pcm16) -> int:
    """How many separate sounds of at least 50 ms are in `pcm`."""
    frame = TTS_RATE // 100
    loud = np.abs(pcm[: len(pcm) // frame * frame].astype(np.int32)).reshape(-1, frame).max(axis=1) > 2000
    edges = np.flatnonzero(np.diff(np.concatenate([[0], loud.astype(np.int8), [0]])))
    return int(np.sum(edges[1::2] - edges[::2] >= 5))


async def all_closed(server: EdgeServer) -> None:
    """Return once the server sees no open connection; never, if the client leaves one open."""
    async with asyncio.timeout(PATIENT):
        await server.until_open(0)


async def test_a_clause_is_spoken_whole_and_without_the_silence_around_it(server: EdgeServer) -> None:
    pcm, interruption = await speak(voice(), request())

    assert interruption is None
    assert beeps(pcm) == 5
    loud = np.flatnonzero(np.abs(pcm) > 2000)
    assert loud[0] / TTS_RATE < edge_server.LEAD_SECONDS / 2
    assert (len(pcm) - loud[-1]) / TTS_RATE < edge_server.PAUSE_SECONDS
    spoken = 5 * edge_server.WORD_SECONDS + 4 * edge_server.PAUSE_SECONDS
    assert (loud[-1] - loud[0]) / TTS_RATE == pytest.approx(spoken, rel=0.02)
    assert [asked.text for asked in server.requests] == [TEXT]
    assert '"wordBoundaryEnabled":"true"' in server.requests[0].config


async def test_a_mood_changes_rate_and_pitch(server: EdgeServer) -> None:
    await speak(voice(), request(style=SpeechStyle(rate=1.08, pitch_hz=10)))
    await speak(voice(), request(style=SpeechStyle(rate=0.9, pitch_hz=-5)))
    await speak(voice(), request())

    assert [(asked.rate, asked.pitch) for asked in server.requests] == [
        ("+8%", "+10Hz"),
        ("-10%", "-5Hz"),
        ("+0%", "+0Hz"),
    ]
    assert server.requests[0].voice == "Microsoft Server Speech Text to Speech Voice (en-US, EmmaNeural)"


async def test_sound_goes_out_while_the_service_is_still_speaking(server: EdgeServer) -> None:
    server.default = Behaviour.STALL_MID_AUDIO
    events = voice().synthesize(request())

    assert isinstance(await anext(events), SpeechChunk)
    await events.aclose()


async def test_markup_in_the_text_reaches_the_service_as_text(server: EdgeServer) -> None:
    await speak(voice(), request("Tom & Jerry <b>run</b>"))

    assert server.requests[0].text == "Tom & Jerry <b>run</b>"


@pytest.mark.parametrize("text", ["", "  ", "…!?", "😀"])
async def test_a_text_with_nothing_to_say_is_not_sent(server: EdgeServer, text: str) -> None:
    pcm, interruption = await speak(voice(), request(text))

    assert (len(pcm), interruption, server.connections) == (0, None, 0)


async def test_one_403_is_retried_by_the_client(server: EdgeServer) -> None:
    server.next(Behaviour.FORBIDDEN)
    pcm, interruption = await speak(voice(), request())

    assert interruption is None
    assert beeps(pcm) == 5
    assert server.connections == 2


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (Behaviour.FORBIDDEN, "tts_refused"),
        (Behaviour.DROP_BEFORE_SOUND, "tts_no_sound"),
        (Behaviour.NO_AUDIO, "tts_no_sound"),
        (Behaviour.NOISE_FOR_AUDIO, "bad_mp3"),
        (Behaviour.UNKNOWN_PATH, "tts_bad_reply"),
        (Behaviour.GARBAGE_TEXT, "tts_bad_reply"),
        (Behaviour.GARBAGE_METADATA, "tts_bad_reply"),
        (Behaviour.GARBAGE_BINARY, "tts_bad_reply"),
        (Behaviour.GARBAGE_FRAME, "tts_bad_reply"),
    ],
)
async def test_a_fault_before_any_sound_leaves_the_whole_text(
    server: EdgeServer, behaviour: Behaviour, code: str
) -> None:
    server.default = behaviour
    pcm, interruption = await speak(voice(), request())

    assert interruption is not None
    assert (len(pcm), interruption.code, interruption.remaining) == (0, code, TEXT)
    await all_closed(server)


@pytest.mark.parametrize("behaviour", [Behaviour.STALL_BEFORE_HANDSHAKE, Behaviour.STALL_BEFORE_SOUND])
async def test_a_stall_before_any_sound_ends_with_the_first_timeout(server: EdgeServer, behaviour: Behaviour) -> None:
    server.default = behaviour
    pcm, interruption = await speak(voice(connect_timeout=SHORT), request())

    assert interruption is not None
    assert (len(pcm), interruption.code, interruption.remaining) == (0, "tts_timeout", TEXT)
    await all_closed(server)


async def test_a_refused_connection_leaves_the_whole_text(server: EdgeServer) -> None:
    await server.refuse()
    _, interruption = await speak(voice(), request())

    assert interruption is not None
    assert (interruption.code, interruption.remaining) == ("tts_unreachable", TEXT)


async def test_a_host_that_has_no_address_leaves_the_whole_text(
    server: EdgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_such_host(*_: object, **__: object) -> list[object]:
        raise OSError(-2, "Name or service not known")

    monkeypatch.setattr("aiohttp.resolver.ThreadedResolver.resolve", no_such_host)
    monkeypatch.setattr("edge_tts.communicate.WSS_URL", server.url.replace("127.0.0.1", "voices.invalid"))
    _, interruption = await speak(voice(), request())

    assert interruption is not None
    assert (interruption.code, interruption.remaining) == ("tts_unreachable", TEXT)


async def test_a_failed_tls_handshake_leaves_the_whole_text(
    server: EdgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edge_tts.communicate.WSS_URL", server.url.replace("ws://", "wss://"))
    _, interruption = await speak(voice(), request())

    assert interruption is not None
    assert (interruption.code, interruption.remaining) == ("tts_unreachable", TEXT)


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (Behaviour.DROP_MID_AUDIO, "tts_dropped"),
        (Behaviour.CLOSE_MID_AUDIO, "tts_dropped"),
        (Behaviour.STALL_MID_AUDIO, "tts_timeout"),
    ],
)
@pytest.mark.parametrize(
    ("text", "heard", "remaining"),
    [
        (TEXT, 2, "my good friend."),
        ("今天天气很好，我们去公园吧。", 3, "我们去公园吧。"),
        ("I have 22 cats, dogs and birds.", 4, "22 cats, dogs and birds."),
        ("I have 22 cats, dogs and birds.", 6, "and birds."),
    ],
)
async def test_a_break_within_the_sound_leaves_what_was_not_heard_in_full(
    server: EdgeServer, behaviour: Behaviour, code: str, text: str, heard: int, remaining: str
) -> None:
    server.default = behaviour
    server.fault_after = heard
    pcm, interruption = await speak(voice(step_timeout=SHORT if behaviour in STALLS else PATIENT), request(text))

    assert interruption is not None
    assert (interruption.code, interruption.remaining) == (code, remaining)
    assert beeps(pcm) in (heard, heard + 1)
    await all_closed(server)


@pytest.mark.parametrize("behaviour", [Behaviour.DROP_BEFORE_END, Behaviour.STALL_BEFORE_END])
async def test_a_fault_after_the_last_word_is_no_interruption(server: EdgeServer, behaviour: Behaviour) -> None:
    server.default = behaviour
    pcm, interruption = await speak(voice(step_timeout=SHORT if behaviour in STALLS else PATIENT), request())

    assert interruption is None
    assert beeps(pcm) == 5
    await all_closed(server)


async def test_a_turn_that_has_ended_is_complete_even_when_the_service_never_closes(server: EdgeServer) -> None:
    server.default = Behaviour.STALL_AFTER_END
    pcm, interruption = await speak(voice(step_timeout=SHORT), request("I have 22."))

    assert interruption is None
    assert beeps(pcm) == 4
    await all_closed(server)


async def test_a_long_text_is_sent_in_parts_and_a_break_in_one_leaves_all_that_follows(
    server: EdgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spoken_chat.tts.edge.LONGEST_MESSAGE", 45)
    text = " ".join(f"word{index}" for index in range(16))
    server.next(Behaviour.NORMAL, Behaviour.DROP_MID_AUDIO)
    _, interruption = await speak(voice(), request(text))

    first, second = server.requests
    assert text.startswith(f"{first.text.strip()} {second.text.split()[0]}")
    assert interruption is not None
    assert interruption.remaining == text[text.index(second.text.split()[2]) :]


async def test_a_long_text_without_a_space_is_spoken_whole(server: EdgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spoken_chat.tts.edge.LONGEST_MESSAGE", 8)
    text = "天" * 14
    pcm, interruption = await speak(voice(), request(text))

    assert interruption is None
    assert beeps(pcm) == 7
    assert [asked.text for asked in server.requests] == ["天" * 8, "天" * 6]


@pytest.mark.parametrize("char", ["&", "天", "😀"])
def test_what_is_sent_at_once_is_never_cut_by_the_client(char: str) -> None:
    assert len(list(edge_tts.Communicate(char * LONGEST_MESSAGE, "en-US-EmmaNeural").texts)) == 1


@pytest.mark.parametrize("behaviour", [Behaviour.NORMAL, Behaviour.STALL_MID_AUDIO])
async def test_closing_in_the_middle_closes_the_connection_and_leaves_no_task(
    server: EdgeServer, behaviour: Behaviour
) -> None:
    server.default = behaviour
    before = client_tasks()
    events = voice().synthesize(request())
    await anext(events)
    async with asyncio.timeout(PATIENT):
        await events.aclose()

    assert client_tasks() == before
    await all_closed(server)


@pytest.mark.parametrize("behaviour", [Behaviour.STALL_BEFORE_HANDSHAKE, Behaviour.STALL_BEFORE_SOUND])
async def test_cancelling_the_wait_for_sound_closes_the_connection_and_leaves_no_task(
    server: EdgeServer, behaviour: Behaviour
) -> None:
    server.default = behaviour
    before = client_tasks()
    waiting = asyncio.create_task(speak(voice(), request()))
    async with asyncio.timeout(PATIENT):
        await server.until_open(1)
    waiting.cancel()
    await asyncio.wait([waiting], timeout=PATIENT)

    assert waiting.cancelled()
    assert client_tasks() == before
    await all_closed(server)


def client_tasks() -> set[str]:
    """Which tasks there are, without those of the server, which runs in this loop too."""
    names = {str(getattr(task.get_coro(), "__qualname__", task)) for task in asyncio.all_tasks()}
    return {name for name in names if not name.startswith("RequestHandler")}


async def test_a_language_without_an_edge_voice_is_told() -> None:
    with pytest.raises(ChatError) as fault:
        await speak(voice(), SpeechRequest(TEXT, "en", {"kokoro": "af_heart"}))
    assert fault.value.code == "tts_no_voice"


async def test_a_voice_id_that_cannot_be_one_is_told() -> None:
    with pytest.raises(ChatError) as fault:
        await speak(voice(), SpeechRequest(TEXT, "en", {"edge": "Emma"}))
    assert fault.value.code == "tts_bad_voice"


def test_the_engine_needs_no_loading_and_speaks_two_clauses_at_once() -> None:
    synthesizer = voice()
    synthesizer.load()

    assert (synthesizer.name, synthesizer.parallel) == ("edge", 2)
