"""What the v2v benchmark makes of its measurements, and one short run of it."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spoken_chat.audio import ASR_RATE
from spoken_chat.bench.speech import Sample
from spoken_chat.bench.v2v import barge_in, command, detector, embedded, gpu_delays
from spoken_chat.bench.v2v.app_process import AppProcess
from spoken_chat.bench.v2v.client import VoiceClient
from spoken_chat.bench.v2v.scripted import Delays
from spoken_chat.bench.v2v.turns import Spoken, spoken_turn
from spoken_chat.bench.v2v.utterances import LEAST, Utterance, chosen
from spoken_chat.bench.v2v.watched import LoopLag
from spoken_chat.errors import ChatError
from spoken_chat.settings import load
from tests.support import speech


def turn(**fields: Any) -> Spoken:
    known: dict[str, Any] = {
        "utterance": "u", "from_end_ms": 1000.0, "v2v_ms": 1000.0, "after_endpoint_ms": 600.0,
        "endpoint_delay_ms": 400.0, "first_audio_ms": 600.0, "speculation": "hit", "dropped_starts": 0, "reopened": 0,
        "too_early": 0,
    }  # fmt: skip
    return Spoken(**{**known, **fields})


def compared(**fields: Any) -> embedded.Compared:
    without = turn(v2v_ms=1150.0, from_end_ms=1150.0, speculation="off")
    whole: dict[str, Any] = {"simple_ms": 4000.0, "ours": turn(), "without": without, "paused": turn(dropped_starts=1)}
    return embedded.Compared(**{**whole, **fields})


def test_the_saved_share_is_of_the_window_between_the_work_and_the_endpoint() -> None:
    assert compared().saved_percent == pytest.approx(100 * 150 / (400 - 192))


def test_only_hits_save_anything() -> None:
    assert compared(ours=turn(speculation="miss")).saved_percent is None


def test_a_longer_endpoint_delay_without_speculation_is_not_counted_as_saved() -> None:
    later = turn(v2v_ms=1350.0, endpoint_delay_ms=600.0, speculation="off")
    assert compared(without=later).saved_percent == compared().saved_percent


def test_the_embedded_report_compares_medians_and_says_what_was_met() -> None:
    slow = compared(ours=turn(from_end_ms=2000.0))
    text, targets = embedded.report([compared(), slow, slow], [1.0, 30.0], [])
    assert "n = 3: simple 4000 ms, ours 2000 ms" in text
    ratio, saved, miss, lag = targets
    assert (ratio.measured, ratio.met) == (0.5, False)
    assert (saved.met, miss.met, lag.met) == (False, True, False)


def test_a_miss_that_ended_as_two_turns_is_not_compared() -> None:
    reopened = compared(paused=turn(dropped_starts=1, reopened=1))
    _, (_, _, miss, _) = embedded.report([reopened], [1.0], [])
    assert (miss.measured, miss.met) == (None, False)


def test_a_target_of_which_nothing_was_measured_is_not_met() -> None:
    nothing = compared(ours=turn(speculation="miss"), paused=turn())
    _, (ratio, *others) = embedded.report([nothing], [], [])
    assert ratio.met
    _, hits = gpu_delays.report([turn(speculation="miss")], [turn(speculation="off")])
    _, detected = detector.report([])
    _, barged = barge_in.report([], stopped=0, tried=0)
    for target in (*others, *hits, *detected, *barged):
        assert (target.measured, target.met) == (None, False), target.name
        assert "not measured" in target.line()


def test_only_hits_count_for_what_speculation_hides() -> None:
    hits = [turn(v2v_ms=405.0), turn(v2v_ms=410.0), turn(v2v_ms=900.0, speculation="miss")]
    text, (target,) = gpu_delays.report(hits, [turn(v2v_ms=650.0, speculation="off")])
    assert target.measured == 7.5 and "n = 2" in text and "250 ms" in text


def test_the_barge_in_report_takes_the_slowest_and_fails_on_a_stopping_mhm() -> None:
    found = [barge_in.Interruption(90.0, 450.0, 0.2), barge_in.Interruption(151.0, 470.0, 120.0)]
    text, targets = barge_in.report(found, stopped=1, tried=2)
    assert "1 of 2" in text
    assert [(target.measured, target.met) for target in targets] == [(151.0, False), (1.0, False), (120.0, False)]


def test_an_interruption_that_never_turned_the_reply_down_or_closed_it_fails() -> None:
    found = [barge_in.Interruption(90.0, 450.0, 0.2), barge_in.Interruption(None, 470.0, None)]
    _, (ducked, _, closed) = barge_in.report(found, stopped=0, tried=1)
    assert not ducked.met and not closed.met


def test_the_request_that_was_being_answered_is_the_one_whose_end_counts() -> None:
    before, own, prefill, next_one = (1.0, 4.0), (5.0, 10.48), (10.1, 10.2), (10.45, 10.9)
    found = barge_in.interruption(10.0, 10.09, 10.45, [before, own, prefill, next_one])
    assert (found.duck_ms, found.flush_ms, found.close_ms) == pytest.approx((90.0, 450.0, 30.0))
    assert barge_in.interruption(10.0, None, None, []) == barge_in.Interruption(None, None, None)


async def test_the_loops_lag_is_looked_at_only_while_there_is_work() -> None:
    lag = LoopLag()
    lag.start()
    await asyncio.sleep(0.05)
    assert await lag.stop() == []
    lag.start()
    with lag.work():
        await asyncio.sleep(0.02)
        time.sleep(0.05)  # noqa: ASYNC251 - the loop is to be held up
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.05)
    seen = await lag.stop()
    assert seen and max(seen) >= 40


def test_the_detectors_report_is_about_its_slow_chunks() -> None:
    _, targets = detector.report([0.1] * 90 + [1.0] * 10)
    assert not targets[0].met


def test_parts_run_in_their_own_order_and_unknown_ones_are_named() -> None:
    assert command.parts_of("detector, added") == ["added", "detector"]
    for wrong in ("faster", "added,faster", ""):
        with pytest.raises(ChatError) as fault:
            command.parts_of(wrong)
        assert "embedded" in fault.value.message


@pytest.mark.parametrize("fields", [{"repeats": 0}, {"utterances": 1}])
def test_numbers_that_measure_nothing_are_refused(fields: dict[str, int]) -> None:
    given = argparse.Namespace(**{"repeats": 1, "utterances": 7, "parts": "detector", "json": None, **fields})
    with pytest.raises(ChatError):
        command.run(given, load())


def test_too_few_utterances_are_refused_and_silence_is_none() -> None:
    silent = Sample("silent", np.zeros(ASR_RATE, np.float32), "en", "")
    with pytest.raises(ChatError) as fault:
        chosen([silent] * 20)
    assert str(LEAST) in fault.value.message


def test_a_pause_is_put_where_it_is_quietest_and_takes_nothing_away() -> None:
    audio = np.ones(4 * ASR_RATE, np.float32)
    audio[ASR_RATE * 5 // 2 : ASR_RATE * 5 // 2 + 1600] = 0.01
    paused = Utterance("u", audio).with_pause(0.25)
    assert paused.seconds == pytest.approx(4.25)
    assert np.count_nonzero(paused.audio) == len(audio)
    zeros = np.flatnonzero(paused.audio == 0)
    assert 2.5 <= zeros[0] / ASR_RATE <= 2.6 and len(zeros) == round(0.25 * ASR_RATE)


def test_the_client_knows_when_each_place_in_its_sound_was_sent() -> None:
    client = VoiceClient(SimpleNamespace())  # type: ignore[arg-type]
    client._sent = [(0.02, 10.02), (0.04, 10.05), (0.06, 10.06)]
    assert client.position == 0.06
    assert client.sent_at(0.04) == 10.05
    assert client.sent_at(0.03) == pytest.approx(10.04)
    assert client.sent_at(0.05) == pytest.approx(10.05)


@pytest.mark.engines
async def test_a_spoken_turn_of_scripted_engines_is_measured_over_the_wire() -> None:
    sample = speech.spoken("en")
    said = dataclasses.replace(Utterance(sample.name, sample.audio[: 2 * ASR_RATE]))
    async with asyncio.timeout(60), AppProcess({}, Delays()) as app:
        with_it = await spoken_turn(app, said)
        without = await spoken_turn(app, said, gpu_delays.NO_SPECULATION)
    assert (with_it.speculation, without.speculation) == ("hit", "off")
    for one in (with_it, without):
        assert one.endpoint_delay_ms >= 400
        assert one.v2v_ms >= one.endpoint_delay_ms + one.first_audio_ms - 1
