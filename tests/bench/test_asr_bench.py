from __future__ import annotations

import argparse
import json

import numpy as np
import pytest

from spoken_chat.audio import ASR_RATE
from spoken_chat.audio.pcm import wav_bytes
from spoken_chat.bench import asr as bench
from spoken_chat.bench.speech import Sample, recorded
from spoken_chat.settings import load
from tests.support import speech


def sample(name: str, words: str = "hello world", language: str = "en") -> Sample:
    return Sample(name, np.zeros(ASR_RATE, np.float32), language, words)


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        (" 1, 2, 3", "en", "onetwothree"),
        ("One TWO three!", "en", "onetwothree"),
        ("廣州市，佛地產 3", "zh", "广州市佛地产三"),
        ("Ａｓｋ not — what?", "en", "asknotwhat"),
    ],
)
def test_case_punctuation_script_spaces_and_single_digits_do_not_count(text, language, expected):
    assert bench.plain(text, language) == expected


def test_errors_are_character_edits_out_of_what_was_said():
    assert bench.errors("Hello, world.", sample("a")) == (0, 10)
    assert bench.errors("Hell word", sample("a")) == (2, 10)
    assert bench.errors("", sample("a")) == (10, 10)


class Sides:
    """Two scripted recognisers on one clock that only they move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.order: list[str] = []

    def clock(self) -> float:
        return self.now

    def ours(self, heard: Sample) -> str:
        self.order.append("ours")
        self.now += 0.1 if heard.name == "a" else 0.2
        return heard.words

    def reference(self, heard: Sample) -> str:
        self.order.append("reference")
        self.now += 0.4
        return "hello" if heard.name == "a" else heard.words


def test_ratios_come_from_medians_of_the_same_run():
    sides = Sides()
    result = bench.compare("given", [sample("a"), sample("b")], 3, sides.ours, sides.reference, sides.clock)
    assert [round(file.ratio, 6) for file in result.files] == [4.0, 2.0]
    assert [file.n for file in result.files] == [3, 3]
    assert result.speed == pytest.approx(0.8 / 0.3)
    assert result.median_ratio == pytest.approx(3.0)
    assert (result.ours_cer, result.reference_cer) == (0.0, 25.0)


def test_the_two_sides_take_turns_at_going_first_after_a_run_that_does_not_count():
    sides = Sides()
    bench.compare("given", [sample("a")], 2, sides.ours, sides.reference, sides.clock)
    assert sides.order == ["ours", "reference", "ours", "reference", "reference", "ours"]


def test_targets_are_printed_with_what_was_measured():
    comparison = bench.Comparison("detected", files=[], speed=3.1, median_ratio=3.0, ours_cer=5.5, reference_cer=4.0)
    lines = [target.line() for target in bench.targets_of(comparison)]
    assert lines == [
        "at least 2.5 times faster (language detected): 3.10, met",
        "CER at most 1 point worse (language detected): 1.50 points, NOT met",
    ]


@pytest.mark.parametrize("repeats", ["0", "-1"])
def test_no_repeats_are_refused(repeats):
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--repeats", repeats])


def test_a_folder_without_sources_has_no_recordings(tmp_path):
    assert recorded(tmp_path) == []


def test_recordings_are_those_of_the_table_that_are_there(tmp_path):
    (tmp_path / "here.wav").write_bytes(wav_bytes(np.ones(ASR_RATE, np.int16), ASR_RATE))
    (tmp_path / "SOURCES.md").write_text(
        "| file | seconds | language | what is said | source |\n|---|---|---|---|---|\n"
        "| here.wav | 1.0 | zh | 你好 | us |\n| gone.wav | 1.0 | en | hello | us |\n",
        encoding="utf-8",
    )
    found = recorded(tmp_path)
    assert [(each.name, each.language, each.words, each.seconds) for each in found] == [("here.wav", "zh", "你好", 1.0)]


@pytest.mark.engines
def test_the_whole_bench_prints_its_targets_and_writes_json(monkeypatch, capsys, tmp_path):
    shortest = min(speech.samples(), key=lambda each: each.seconds)
    monkeypatch.setattr(bench, "recorded", lambda: [shortest])
    monkeypatch.setattr(bench, "synthesised", lambda _: [])
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    report = tmp_path / "asr.json"
    bench.run(parser.parse_args(["--repeats", "1", "--json", str(report)]), load(asr_device="cpu"))
    printed = capsys.readouterr().out
    assert "times faster (language detected)" in printed
    assert "points" in printed
    written = json.loads(report.read_text(encoding="utf-8"))
    assert [each["language"] for each in written["comparisons"]] == ["detected", "given"]
    assert written["comparisons"][0]["files"][0]["name"] == shortest.name
    assert len(written["targets"]) == 4
