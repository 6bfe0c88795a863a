"""When the preferred voice fails, the other one finishes the clause: nothing lost, one notice, one short wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping

import pytest

from spoken_chat.errors import ChatError
from spoken_chat.tts import SpeechNotice, SpeechRequest
from spoken_chat.tts.edge import EdgeSynthesizer
from spoken_chat.tts.fallback import FallbackSynthesizer
from tests.support.edge_server import Behaviour, EdgeServer
from tests.support.fake_synthesizer import FakeSynthesizer, Script
from tests.support.virtual_time import run_virtual

Clock = Callable[[], float]
RETRY_AFTER = 60.0
TIMEOUT = 2.5
SHORT = 0.4
"""Timeout where the real client meets a server that stalls; PATIENT where it must not run out."""
PATIENT = 20.0
BOTH = {"edge": "en-US-EmmaNeural", "kokoro": "af_heart"}
TEXT = "Hello there, my good friend."


def unreachable(text: str = TEXT) -> Script:
    """The service does not answer: after the timeout, all of `text` is still to be said."""
    return Script(delays=(), fails_after=TIMEOUT, remaining=text)


def pair(clock: Clock, primary: FakeSynthesizer, secondary: FakeSynthesizer | None = None) -> FallbackSynthesizer:
    return FallbackSynthesizer(primary, secondary or FakeSynthesizer("kokoro"), retry_after=RETRY_AFTER, clock=clock)


async def speak(
    synthesizer: FallbackSynthesizer, text: str = TEXT, voices: Mapping[str, str] | None = None
) -> list[str]:
    """Who spoke, one entry a change of engine, and the code of each notice where it came."""
    heard: list[str] = []
    request = SpeechRequest(text, "en", BOTH if voices is None else voices)
    async for event in synthesizer.synthesize(request):
        said = f"notice {event.code}" if isinstance(event, SpeechNotice) else event.engine
        if isinstance(event, SpeechNotice) or heard[-1:] != [said]:
            heard.append(said)
    return heard


def test_a_clause_is_spoken_by_the_preferred_engine_alone() -> None:
    async def main(clock: Clock) -> None:
        primary, secondary = FakeSynthesizer("edge", parallel=2), FakeSynthesizer("kokoro")
        both = pair(clock, primary, secondary)

        assert await speak(both) == ["edge"]
        assert secondary.spoken == []
        assert (both.name, both.parallel, both.preferred, both.reason) == ("edge", 2, primary, None)

    run_virtual(main)


def test_the_other_engine_speaks_what_remains_in_the_same_clause() -> None:
    async def main(clock: Clock) -> None:
        primary = FakeSynthesizer("edge", Script(fails_after=0.5, remaining="my good friend."))
        secondary = FakeSynthesizer("kokoro")
        both = pair(clock, primary, secondary)

        assert await speak(both) == ["edge", "notice tts_fallback", "kokoro"]
        assert secondary.texts == ["my good friend."]
        assert secondary.spoken[0].at == pytest.approx(0.1 + 0.1 + 0.5)
        assert (both.name, both.parallel, both.reason) == ("kokoro", 1, "edge broke.")

    run_virtual(main)


def test_a_failure_that_does_not_say_what_remains_repeats_the_clause() -> None:
    async def main(clock: Clock) -> None:
        secondary = FakeSynthesizer("kokoro")
        await speak(pair(clock, FakeSynthesizer("edge", Script(fails_after=0.5)), secondary))

        assert secondary.texts == [TEXT]

    run_virtual(main)


def test_an_unreachable_service_costs_one_wait_and_one_notice_for_many_clauses() -> None:
    async def main(clock: Clock) -> None:
        primary, secondary = FakeSynthesizer("edge", default=unreachable()), FakeSynthesizer("kokoro")
        both = pair(clock, primary, secondary)
        heard = [await speak(both) for _ in range(5)]

        assert heard == [["notice tts_fallback", "kokoro"], *[["kokoro"]] * 4]
        assert len(primary.spoken) == 1
        assert secondary.texts == [TEXT] * 5
        assert clock() == pytest.approx(TIMEOUT + 5 * 0.2)

    run_virtual(main)


def test_a_clause_without_sound_yet_stops_waiting_when_another_one_fails() -> None:
    async def main(clock: Clock) -> None:
        primary, secondary = FakeSynthesizer("edge", default=unreachable()), FakeSynthesizer("kokoro")
        both = pair(clock, primary, secondary)

        async def second() -> list[str]:
            await asyncio.sleep(2.0)
            return await speak(both, "And another one.")

        heard = list(await asyncio.gather(speak(both), second()))

        assert sorted(len([said for said in clause if said.startswith("notice")]) for clause in heard) == [0, 1]
        assert [clause[-1] for clause in heard] == ["kokoro", "kokoro"]
        assert sorted(secondary.texts) == sorted([TEXT, "And another one."])
        assert [clause.at for clause in secondary.spoken] == [pytest.approx(TIMEOUT)] * 2
        assert [clause.outcome for clause in primary.spoken] == ["failed", "closed"]

    run_virtual(main)


def test_a_clause_that_is_being_spoken_goes_on_when_another_one_fails() -> None:
    async def main(clock: Clock) -> None:
        primary = FakeSynthesizer("edge", Script(delays=(0.1, 3.0, 0.1)), unreachable("two"))
        secondary = FakeSynthesizer("kokoro")
        both = pair(clock, primary, secondary)

        assert list(await asyncio.gather(speak(both, "one"), speak(both, "two"))) == [
            ["edge"],
            ["notice tts_fallback", "kokoro"],
        ]
        assert secondary.texts == ["two"]
        assert both.name == "kokoro"

    run_virtual(main)


def test_two_clauses_that_both_fail_are_one_outage() -> None:
    async def main(clock: Clock) -> None:
        primary = FakeSynthesizer(
            "edge", Script(fails_after=1.0, remaining="rest one"), Script(fails_after=1.5, remaining="rest two")
        )
        secondary = FakeSynthesizer("kokoro")
        both = pair(clock, primary, secondary)

        heard = list(await asyncio.gather(speak(both, "one"), speak(both, "two")))

        assert heard == [["edge", "notice tts_fallback", "kokoro"], ["edge", "kokoro"]]
        assert secondary.texts == ["rest one", "rest two"]

    run_virtual(main)


def test_after_a_while_one_clause_tries_again_and_success_ends_the_outage() -> None:
    async def main(clock: Clock) -> None:
        primary, secondary = FakeSynthesizer("edge", unreachable()), FakeSynthesizer("kokoro")
        both = pair(clock, primary, secondary)
        await speak(both)
        await asyncio.sleep(RETRY_AFTER - 1)
        assert await speak(both) == ["kokoro"]
        await asyncio.sleep(1)
        assert (both.preferred, both.reason) == (primary, "edge broke.")

        assert list(await asyncio.gather(speak(both, "trial"), speak(both, "meanwhile"))) == [["edge"], ["kokoro"]]
        assert both.reason is None
        assert list(await asyncio.gather(speak(both), speak(both))) == [["edge"], ["edge"]]

    run_virtual(main)


def test_a_trial_that_fails_goes_on_with_the_same_outage() -> None:
    async def main(clock: Clock) -> None:
        primary = FakeSynthesizer("edge", default=unreachable())
        both = pair(clock, primary)
        await speak(both)
        await asyncio.sleep(RETRY_AFTER)

        assert await speak(both) == ["kokoro"]
        await asyncio.sleep(RETRY_AFTER - 1)
        await speak(both)
        assert len(primary.spoken) == 2

    run_virtual(main)


def test_a_later_outage_gives_a_new_notice() -> None:
    async def main(clock: Clock) -> None:
        both = pair(clock, FakeSynthesizer("edge", unreachable(), Script(), unreachable()))
        heard = [await speak(both)]
        await asyncio.sleep(RETRY_AFTER)
        heard += [await speak(both), await speak(both), await speak(both)]

        assert heard == [["notice tts_fallback", "kokoro"], ["edge"], ["notice tts_fallback", "kokoro"], ["kokoro"]]

    run_virtual(main)


@pytest.mark.parametrize("sound_before_closing", [False, True])
def test_a_trial_that_is_cancelled_leaves_the_next_clause_to_try(sound_before_closing: bool) -> None:
    async def main(clock: Clock) -> None:
        primary = FakeSynthesizer("edge", unreachable())
        both = pair(clock, primary)
        await speak(both)
        await asyncio.sleep(RETRY_AFTER)
        if sound_before_closing:
            events = both.synthesize(SpeechRequest(TEXT, "en", BOTH))
            await anext(events)
            await events.aclose()
        else:
            trial = asyncio.create_task(speak(both))
            await asyncio.sleep(0.05)
            trial.cancel()
            await asyncio.wait([trial])

        assert primary.spoken[-1].outcome == "closed"
        assert both.reason is not None
        assert await speak(both) == ["edge"]
        assert both.reason is None

    run_virtual(main)


def test_a_trial_with_nothing_to_say_proves_nothing() -> None:
    async def main(clock: Clock) -> None:
        both = pair(clock, FakeSynthesizer("edge", unreachable(), Script(delays=())))
        await speak(both)
        await asyncio.sleep(RETRY_AFTER)

        assert await speak(both, "…") == []
        assert both.reason is not None
        assert await speak(both) == ["edge"]

    run_virtual(main)


def test_closing_a_clause_closes_the_engine_that_speaks_and_leaves_no_task() -> None:
    async def main(clock: Clock) -> None:
        primary = FakeSynthesizer("edge", Script(), Script(fails_after=0.1, remaining="rest"))
        secondary = FakeSynthesizer("kokoro")
        both = pair(clock, primary, secondary)
        events = both.synthesize(SpeechRequest(TEXT, "en", BOTH))
        await anext(events)
        await events.aclose()
        assert primary.spoken[0].outcome == "closed"

        events = both.synthesize(SpeechRequest(TEXT, "en", BOTH))
        for _ in range(4):
            await anext(events)
        await events.aclose()
        assert secondary.spoken[0].outcome == "closed"
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main)


def test_a_notice_that_nobody_took_is_given_with_the_next_clause() -> None:
    async def main(clock: Clock) -> None:
        both = pair(clock, FakeSynthesizer("edge", Script(delays=(0.1,), fails_after=1.0, remaining="rest")))
        with pytest.raises(ChatError):
            await speak(both, voices={"edge": "en-US-EmmaNeural"})

        assert await speak(both) == ["notice tts_fallback", "kokoro"]

    run_virtual(main)


def test_when_both_engines_fail_the_fault_names_both() -> None:
    async def main(clock: Clock) -> None:
        both = pair(clock, FakeSynthesizer("edge", unreachable()), FakeSynthesizer("kokoro", Script(fails_after=0.1)))

        with pytest.raises(ChatError) as fault:
            await speak(both)
        assert fault.value.code == "tts_failed"
        assert "edge broke." in fault.value.message
        assert "kokoro broke." in fault.value.message
        assert await speak(both) == ["kokoro"]

    run_virtual(main)


def test_a_language_that_the_other_engine_lacks_is_told_when_the_first_fails() -> None:
    async def main(clock: Clock) -> None:
        secondary = FakeSynthesizer("kokoro")
        both = pair(clock, FakeSynthesizer("edge", unreachable()), secondary)

        with pytest.raises(ChatError) as fault:
            await speak(both, voices={"edge": "fi-FI-NooraNeural"})
        assert fault.value.code == "tts_failed"
        assert "no kokoro voice" in fault.value.message
        assert secondary.spoken == []

    run_virtual(main)


def test_a_persona_without_a_voice_for_the_first_engine_speaks_with_the_other_and_is_no_outage() -> None:
    async def main(clock: Clock) -> None:
        primary = FakeSynthesizer("edge")
        both = pair(clock, primary)

        assert await speak(both, voices={"kokoro": "af_heart"}) == ["kokoro"]
        assert primary.spoken == []
        assert both.reason is None
        with pytest.raises(ChatError) as fault:
            await speak(both, voices={})
        assert fault.value.code == "tts_no_voice"

    run_virtual(main)


def test_an_unknown_error_is_not_hidden_and_does_not_block_the_next_trial() -> None:
    async def main(clock: Clock) -> None:
        bug = Script(fails_after=0.1, bug=ZeroDivisionError())
        both = pair(clock, FakeSynthesizer("edge", unreachable(), bug))
        await speak(both)
        await asyncio.sleep(RETRY_AFTER)
        with pytest.raises(ZeroDivisionError):
            await speak(both)

        assert await speak(both) == ["edge"]

    run_virtual(main)


def test_both_engines_are_loaded_and_a_missing_second_one_is_told_only_when_needed() -> None:
    async def main(clock: Clock) -> None:
        primary, secondary = FakeSynthesizer("edge", Script(), unreachable()), FakeSynthesizer("kokoro")
        secondary.load_fault = ChatError("weights_missing", "The weights are not installed.")
        both = pair(clock, primary, secondary)
        both.load()

        assert (primary.loads, secondary.loads) == (1, 1)
        assert both.secondary_fault == "The weights are not installed."
        assert await speak(both) == ["edge"]
        with pytest.raises(ChatError, match=r"edge broke.*The weights are not installed"):
            await speak(both)

    run_virtual(main)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EdgeServer]:
    for proxy in ("http_proxy", "ws_proxy", "all_proxy"):
        monkeypatch.delenv(proxy, raising=False)
        monkeypatch.delenv(proxy.upper(), raising=False)
    async with EdgeServer() as running:
        monkeypatch.setattr("edge_tts.communicate.WSS_URL", running.url)
        yield running


@pytest.mark.parametrize(
    ("behaviour", "heard", "left_for_the_other"),
    [
        (Behaviour.NORMAL, ["edge"], []),
        (Behaviour.DROP_BEFORE_END, ["edge"], []),
        (Behaviour.FORBIDDEN, ["notice tts_fallback", "kokoro"], [TEXT]),
        (Behaviour.STALL_BEFORE_HANDSHAKE, ["notice tts_fallback", "kokoro"], [TEXT]),
        (Behaviour.STALL_BEFORE_SOUND, ["notice tts_fallback", "kokoro"], [TEXT]),
        (Behaviour.STALL_MID_AUDIO, ["edge", "notice tts_fallback", "kokoro"], ["my good friend."]),
        (Behaviour.DROP_MID_AUDIO, ["edge", "notice tts_fallback", "kokoro"], ["my good friend."]),
        (Behaviour.CLOSE_MID_AUDIO, ["edge", "notice tts_fallback", "kokoro"], ["my good friend."]),
        (Behaviour.NO_AUDIO, ["notice tts_fallback", "kokoro"], [TEXT]),
        (Behaviour.NOISE_FOR_AUDIO, ["notice tts_fallback", "kokoro"], [TEXT]),
        (Behaviour.GARBAGE_FRAME, ["notice tts_fallback", "kokoro"], [TEXT]),
    ],
)
async def test_every_fault_of_the_real_client_is_made_good_within_the_clause(
    server: EdgeServer, behaviour: Behaviour, heard: list[str], left_for_the_other: list[str]
) -> None:
    server.default = behaviour
    secondary = FakeSynthesizer("kokoro", default=Script(delays=(0,)))
    stalls_first = behaviour in (Behaviour.STALL_BEFORE_HANDSHAKE, Behaviour.STALL_BEFORE_SOUND)
    edge = EdgeSynthesizer(
        connect_timeout=SHORT if stalls_first else PATIENT,
        step_timeout=SHORT if behaviour is Behaviour.STALL_MID_AUDIO else PATIENT,
    )
    both = FallbackSynthesizer(edge, secondary, retry_after=RETRY_AFTER)

    assert await speak(both) == heard
    assert secondary.texts == left_for_the_other


async def test_a_refused_connection_of_the_real_client_is_made_good_within_the_clause(
    server: EdgeServer, caplog: pytest.LogCaptureFixture
) -> None:
    await server.refuse()
    secondary = FakeSynthesizer("kokoro", default=Script(delays=(0,)))
    both = FallbackSynthesizer(
        EdgeSynthesizer(connect_timeout=PATIENT, step_timeout=PATIENT), secondary, retry_after=RETRY_AFTER
    )
    with caplog.at_level(logging.WARNING):
        heard = [await speak(both), await speak(both)]

    assert heard == [["notice tts_fallback", "kokoro"], ["kokoro"]]
    assert secondary.texts == [TEXT, TEXT]
    assert "edge failed, kokoro goes on" in caplog.text
