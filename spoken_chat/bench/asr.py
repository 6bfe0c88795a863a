"""`bench asr`: our short-window path against faster-whisper's `transcribe()`, same model, same beam, one process.

Both hear the same samples, one after the other, file by file, `--repeats` times; the order changes each time. Ours is
the whole `WhisperRecognizer.recognise`: levelling, voice detector, language, text. The reference gets its best
reasonable settings: the same loaded model and threads, beam 1, no voice filter, everything else as faster-whisper has
it. There are two comparisons: `detected`, where both find out the language (ours among English and Chinese,
`transcribe()` among all, as it cannot be restricted), and `given`, where both are told.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import opencc
from rapidfuzz.distance import Levenshtein

from spoken_chat.asr.whisper import WhisperRecognizer
from spoken_chat.bench.report import Target, add_json_argument, at_least, at_most, median, table, write_json
from spoken_chat.bench.speech import RECORDINGS, Sample, recorded, synthesised
from spoken_chat.settings import Settings

LANGUAGES: Final = ("zh", "en")
BEAM: Final = 1
TARGET_SPEED: Final = 2.5
TARGET_CER_POINTS: Final = 1.0

_DIGITS: Final = {
    "en": ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    "zh": tuple("零一二三四五六七八九"),
}

Recognise = Callable[[Sample], str]


@dataclass(frozen=True)
class FileResult:
    """One file: the medians of both sides in ms, their ratio, and both character error rates in percent."""

    name: str
    seconds: float
    n: int
    ours_ms: float
    reference_ms: float
    ratio: float
    ours_cer: float
    reference_cer: float
    ours_text: str
    reference_text: str


@dataclass(frozen=True)
class Comparison:
    """All files with the language `detected` or `given`.

    `speed` is the sum of the reference's medians over the sum of ours; the error rates are over all characters.
    """

    language: str
    files: list[FileResult]
    speed: float
    median_ratio: float
    ours_cer: float
    reference_cer: float


def plain(text: str, language: str) -> str:
    """`text` as both sides are compared: Simplified, lower case, single digits as words, letters only, no spaces."""
    folded = unicodedata.normalize("NFKC", _simplifier().convert(text)).casefold()
    spelt = "".join(_DIGITS[language][int(char)] if char in "0123456789" else char for char in folded)
    return "".join(char for char in spelt if char.isalnum())


@functools.cache
def _simplifier() -> opencc.OpenCC:
    return opencc.OpenCC("t2s")


def errors(heard: str, sample: Sample) -> tuple[int, int]:
    """Character edits from what was said to `heard`, and the number of characters that were said."""
    said = plain(sample.words, sample.language)
    return Levenshtein.distance(said, plain(heard, sample.language)), len(said)


def compare(
    language: str,
    samples: Sequence[Sample],
    repeats: int,
    ours: Recognise,
    reference: Recognise,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Run both sides on every sample `repeats` times, in turns, after one run of each that does not count."""
    for side in (ours, reference):
        side(samples[0])
    times: dict[tuple[str, Recognise], list[float]] = {
        (s.name, side): [] for s in samples for side in (ours, reference)
    }
    texts: dict[tuple[str, Recognise], str] = {}
    for turn in range(repeats):
        for sample in samples:
            for side in (ours, reference) if turn % 2 == 0 else (reference, ours):
                started = clock()
                texts[sample.name, side] = side(sample)
                times[sample.name, side].append((clock() - started) * 1000)
    files = []
    edits = {ours: 0, reference: 0}
    characters = 0
    for sample in samples:
        rates = {}
        for side in (ours, reference):
            wrong, length = errors(texts[sample.name, side], sample)
            edits[side] += wrong
            rates[side] = 100 * wrong / length
        characters += length
        mine, theirs = median(times[sample.name, ours]), median(times[sample.name, reference])
        files.append(
            FileResult(
                name=sample.name,
                seconds=round(sample.seconds, 2),
                n=mine.n,
                ours_ms=mine.value,
                reference_ms=theirs.value,
                ratio=theirs.value / mine.value,
                ours_cer=rates[ours],
                reference_cer=rates[reference],
                ours_text=texts[sample.name, ours],
                reference_text=texts[sample.name, reference],
            )
        )
    return Comparison(
        language=language,
        files=files,
        speed=sum(file.reference_ms for file in files) / sum(file.ours_ms for file in files),
        median_ratio=statistics.median(file.ratio for file in files),
        ours_cer=100 * edits[ours] / characters,
        reference_cer=100 * edits[reference] / characters,
    )


def targets_of(comparison: Comparison) -> list[Target]:
    """What the project asks of a comparison."""
    how = f"language {comparison.language}"
    return [
        at_least(f"at least {TARGET_SPEED} times faster ({how})", comparison.speed, TARGET_SPEED),
        at_most(
            f"CER at most {TARGET_CER_POINTS:g} point worse ({how})",
            comparison.ours_cer - comparison.reference_cer,
            TARGET_CER_POINTS,
            "points",
        ),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench asr`."""
    parser.add_argument("--repeats", type=_positive, default=3, help="runs per file and side (default: 3)")
    add_json_argument(parser)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Measure, print, and write `--json`. 0 when every target is met, else 1. Raises ChatError."""
    samples = recorded()
    print(f"{len(samples)} recordings of people" + ("" if samples else f" (there is no {RECORDINGS})"))
    samples += synthesised(settings)
    recogniser = WhisperRecognizer(settings)
    recogniser.load()
    print(f"{recogniser.name}, beam {BEAM}, {len(samples)} files, {arguments.repeats} runs each\n")
    try:
        comparisons = [
            compare("detected", samples, arguments.repeats, *_detected(recogniser)),
            compare("given", samples, arguments.repeats, *_given(recogniser)),
        ]
    finally:
        recogniser.close()
    targets = [target for comparison in comparisons for target in targets_of(comparison)]
    for comparison in comparisons:
        _print(comparison)
    for target in targets:
        print(target.line())
    results = {"engine": recogniser.name, "beam": BEAM, "comparisons": [asdict(each) for each in comparisons]}
    write_json(arguments.json, results, targets)
    return 0 if all(target.met for target in targets) else 1


def _detected(recogniser: WhisperRecognizer) -> tuple[Recognise, Recognise]:
    return (
        lambda sample: recogniser.recognise(sample.audio, LANGUAGES).text,
        lambda sample: _reference(recogniser, sample, None),
    )


def _given(recogniser: WhisperRecognizer) -> tuple[Recognise, Recognise]:
    return (
        lambda sample: recogniser.recognise(sample.audio, [sample.language]).text,
        lambda sample: _reference(recogniser, sample, sample.language),
    )


def _reference(recogniser: WhisperRecognizer, sample: Sample, language: str | None) -> str:
    segments, _ = recogniser.model.transcribe(sample.audio, language=language, beam_size=BEAM)
    return "".join(segment.text for segment in segments)


def _print(comparison: Comparison) -> None:
    print(f"language {comparison.language}; medians of {comparison.files[0].n} runs per file")
    rows: list[list[object]] = [
        [file.name, file.seconds, file.ours_ms, file.reference_ms, file.ratio, file.ours_cer, file.reference_cer]
        for file in comparison.files
    ]
    print(table(["file", "s", "ours ms", "transcribe() ms", "times faster", "our CER %", "its CER %"], rows))
    print(
        f"overall {comparison.speed:.2f} times faster (median of files {comparison.median_ratio:.2f}), "
        f"CER {comparison.ours_cer:.2f} % against {comparison.reference_cer:.2f} %\n"
    )
