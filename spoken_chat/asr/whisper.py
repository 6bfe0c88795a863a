"""Speech recognition with faster-whisper, for short utterances several times faster than its `transcribe()`.

`transcribe()` always encodes 30 s. Here its CTranslate2 model is called directly on a window that fits the speech;
the language is decided on the same encoder output, among those allowed. Speech over 25 s goes through `transcribe()`.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import opencc
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer
from faster_whisper.transcribe import get_suppressed_tokens

from spoken_chat.asr import Transcript, cuda
from spoken_chat.asr.whisper_weights import model_folder, model_name
from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.audio.pcm import levelled
from spoken_chat.audio.vad import speech_only
from spoken_chat.cores import available_cores
from spoken_chat.errors import ChatError
from spoken_chat.settings import Settings

MAX_THREADS: Final = 8
LONG_S: Final = 25.0
"""Longer speech goes through `transcribe()`."""

_LEAST_WINDOW_S: Final = 9.0
_PADDING_S: Final = 3.0
"""With less silence after the speech the decoder loops."""
_FULL_WINDOW_S: Final = 30.0
_LEAST_DRAFT_WINDOW_S: Final = 4.0
"""A draft's window fits its sound and the padding. Below 4 s short words turn into others; a least window of 9 s has
half the errors on sound of 1 to 2 s, and costs twice the time."""
LONGEST_DRAFT_S: Final = 10.0
"""Only the latest sound is drafted: this much still takes about half a second on two cores."""
_TOKENS_PER_S: Final = 8
_MORE_TOKENS: Final = 8
_MAX_LENGTH: Final = 448
"""Longest sequence of the decoder, its prompt included."""

_MADE_UP: Final = ((0.55, -1.0), (0.3, -1.5), (0.8, -0.5))
"""Above the one (probability of no speech) and below the other (mean log-probability of the text) of a pair, what the
decoder says was made up. Measured on the packaged model: real speech reached 0.53 and -0.66, sounds that nobody speaks
lay at 0.54 to 0.90 and -0.69 to -2.5."""
_LOOP_TOKENS: Final = 8
"""A shorter repetition is taken for speech."""
_ECHO_TOKENS: Final = 5
"""So much of a draft said again at its end is the decoder's doing: few people repeat that within a few seconds."""
_LONG_TEMPERATURES: Final = (0.0, 0.4)

_SPACE_BETWEEN_CHINESE: Final = re.compile(r"(?<=[\u3000-\u9fff])\s+(?=[\u3000-\u9fff])")

NOTHING: Final = Transcript("")


@dataclass(frozen=True)
class _Hypothesis:
    """What the decoder made of a window. `capped`: it was stopped at the longest length allowed."""

    tokens: list[int]
    log_probability: float
    no_speech: float
    capped: bool

    @property
    def made_up(self) -> bool:
        return is_made_up(self.no_speech, self.log_probability)

    @property
    def loops(self) -> bool:
        """Who repeats himself comes to an end; a decoder that got stuck does not."""
        return self.capped and len(without_loop(self.tokens)) < len(self.tokens)


class WhisperRecognizer:
    """The `Recognizer` on faster-whisper. One utterance at a time, in a thread of its own."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._threads = settings.asr_threads or min(MAX_THREADS, available_cores())
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="asr")
        self._finals: set[threading.Event] = set()
        """Utterances that wait for the thread, for which drafts make way."""
        self._loading = threading.Lock()
        self._model: WhisperModel | None = None
        self._suppressed: list[int] = []
        self._simplify = opencc.OpenCC("t2s")
        self._where = ""

    @property
    def name(self) -> str:
        """The engine and model in words, such as `faster-whisper base int8 cpu`; the last two once it is loaded."""
        return " ".join(filter(None, ["faster-whisper", model_name(self._settings), self._where]))

    @property
    def model(self) -> WhisperModel:
        """The model, loaded when it is not yet. Raises ChatError."""
        with self._loading:
            if self._model is None:
                self._model = self._loaded()
            return self._model

    def load(self) -> None:
        """Load the model and run it once; blocks. Raises ChatError."""
        self.model  # noqa: B018 - loading is the point

    def close(self) -> None:
        """Wait for the utterance in work, drop those that wait, and end the thread."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    async def transcribe(self, audio: FloatPcm, languages: Sequence[str]) -> Transcript:
        """Recognise 16 kHz mono `audio`; the language is one of `languages` (ISO 639-1). Raises ChatError.

        When cancelled, the work stops at its next step.
        """
        stopped = threading.Event()
        self._finals.add(stopped)
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._executor, self._final, audio, languages, stopped
            )
        finally:
            self._finals.discard(stopped)
            stopped.set()

    async def draft(self, audio: FloatPcm, languages: Sequence[str]) -> Transcript:
        """What 16 kHz mono `audio` (its last 10 s) says so far, in one pass of the decoder. Raises ChatError.

        An utterance that is to be transcribed goes first: a draft that waits lets it pass, a draft in work stops at
        its next step and begins again after it. When cancelled, the work stops at its next step.
        """
        stopped = threading.Event()
        try:
            drafted: Transcript | None = None
            while drafted is None:
                drafted = await asyncio.get_running_loop().run_in_executor(
                    self._executor, self._draft, audio, languages, stopped
                )
            return drafted
        finally:
            stopped.set()

    def recognise(
        self, audio: FloatPcm, languages: Sequence[str], stopped: threading.Event | None = None
    ) -> Transcript:
        """`transcribe`, blocking; for one thread at a time. Stops early, with nothing heard, once `stopped` is set."""
        stopped = stopped or threading.Event()
        model = self.model
        self._check(languages)
        speech = speech_only(levelled(audio, ASR_RATE))
        if not len(speech) or stopped.is_set():
            return NOTHING
        with _faults_named():
            if len(speech) > LONG_S * ASR_RATE:
                return self._long(model, speech, languages, stopped)
            return self._short(model, speech, languages, stopped)

    def _final(self, audio: FloatPcm, languages: Sequence[str], stopped: threading.Event) -> Transcript:
        self._finals.discard(stopped)
        return self.recognise(audio, languages, stopped)

    def _draft(self, audio: FloatPcm, languages: Sequence[str], stopped: threading.Event) -> Transcript | None:
        """`draft`, blocking; None when it made way for an utterance."""
        if self._finals:
            return None
        model = self.model
        self._check(languages)
        speech = speech_only(levelled(audio[-int(LONGEST_DRAFT_S * ASR_RATE) :], ASR_RATE))
        if not len(speech) or stopped.is_set():
            return NOTHING
        seconds = len(speech) / ASR_RATE
        with _faults_named():
            encoded = self._encode(model, speech, max(_LEAST_DRAFT_WINDOW_S, seconds + _PADDING_S))
            if stopped.is_set():
                return NOTHING
            if self._finals:
                return None
            language = self._language(model, encoded, languages)
            heard = self._decode(model, encoded, language, int(seconds * _TOKENS_PER_S) + _MORE_TOKENS)
        # Of so little sound the decoder often says the end twice, or a syllable over and over, before any limit.
        return self._heard(model, replace(heard, tokens=without_echo(heard.tokens), capped=False), language)

    def _loaded(self) -> WhisperModel:
        folder = model_folder(self._settings)
        device, compute_type = "cpu", "int8"
        if self._settings.asr_device != "cpu":
            trial = cuda.probe(folder)
            if trial.works:
                device, compute_type = "cuda", cuda.COMPUTE_TYPE
            elif self._settings.asr_device == "cuda":
                raise ChatError(
                    "asr_no_cuda",
                    f"Speech recognition cannot use the GPU: {trial.reason}; set --asr-device to auto or cpu.",
                    reason=trial.reason,
                )
        try:
            model = WhisperModel(
                str(folder), device=device, compute_type=compute_type, cpu_threads=self._threads, local_files_only=True
            )
            self._suppressed = list(get_suppressed_tokens(self._tokenizer(model, "en"), [-1]))
            self._warm(model)
        except (RuntimeError, ValueError) as error:
            raise ChatError(
                "asr_model_broken",
                f"The speech model in {folder} could not be loaded: {error}.",
                folder=str(folder),
            ) from error
        self._where = f"{compute_type} {device}"
        return model

    def _warm(self, model: WhisperModel) -> None:
        """Run every part once: the first pass of each is slow."""
        silence = np.zeros(ASR_RATE, np.float32)
        speech_only(silence)
        for window_s in (_LEAST_WINDOW_S, _LEAST_DRAFT_WINDOW_S):
            encoded = self._encode(model, silence, window_s)
            language = self._language(model, encoded, model.supported_languages)
            tokens = self._decode(model, encoded, language, _MORE_TOKENS).tokens
            self._chinese(self._tokenizer(model, language).decode(tokens))

    def _check(self, languages: Sequence[str]) -> None:
        known = self.model.supported_languages
        if not any(language in known for language in languages):
            raise ChatError(
                "asr_language",
                f"The speech model {model_name(self._settings)} does not know the language "
                f"{' or '.join(languages)}; choose another persona or another --asr-model.",
                languages=" ".join(languages),
            )

    def _short(
        self, model: WhisperModel, speech: FloatPcm, languages: Sequence[str], stopped: threading.Event
    ) -> Transcript:
        seconds = len(speech) / ASR_RATE
        encoded = self._encode(model, speech, max(_LEAST_WINDOW_S, seconds + _PADDING_S))
        if stopped.is_set():
            return NOTHING
        language = self._language(model, encoded, languages)
        limit = int(seconds * _TOKENS_PER_S) + _MORE_TOKENS
        heard = self._decode(model, encoded, language, limit)
        if heard.capped and not heard.loops and not stopped.is_set():
            # The speaker is fast, or the tokens of this language are short.
            heard = self._decode(model, encoded, language, 2 * limit)
        if heard.loops and not stopped.is_set():
            # The window that the model was trained on mostly breaks the loop.
            heard = self._decode(model, self._encode(model, speech, _FULL_WINDOW_S), language, limit)
        return NOTHING if stopped.is_set() else self._heard(model, heard, language)

    def _heard(self, model: WhisperModel, heard: _Hypothesis, language: str) -> Transcript:
        """`heard` as text: without what was made up, and without a loop that was stopped."""
        if heard.made_up:
            return NOTHING
        tokens = without_loop(heard.tokens) if heard.capped else heard.tokens
        return self._transcript(self._tokenizer(model, language).decode(tokens), language)

    def _long(
        self, model: WhisperModel, speech: FloatPcm, languages: Sequence[str], stopped: threading.Event
    ) -> Transcript:
        first = speech[: int(_FULL_WINDOW_S * ASR_RATE)]
        language = self._language(model, self._encode(model, first, _FULL_WINDOW_S), languages)
        segments, _ = model.transcribe(
            speech,
            language=language,
            beam_size=1,
            temperature=_LONG_TEMPERATURES,
            condition_on_previous_text=False,
        )
        texts = []
        for segment in segments:
            if stopped.is_set():
                return NOTHING
            if not is_made_up(segment.no_speech_prob, segment.avg_logprob):
                texts.append(segment.text)
        return self._transcript("".join(texts), language)

    def _encode(self, model: WhisperModel, speech: FloatPcm, window_s: float) -> Any:
        window = np.pad(speech, (0, max(0, int(window_s * ASR_RATE) - len(speech))))
        return model.encode(model.feature_extractor(window, padding=0))

    def _language(self, model: WhisperModel, encoded: Any, languages: Sequence[str]) -> str:
        allowed = [language for language in languages if language in model.supported_languages]
        if len(allowed) == 1:
            return allowed[0]
        found = {token[2:-2]: probability for token, probability in model.model.detect_language(encoded)[0]}
        return max(allowed, key=lambda language: found.get(language, 0.0))

    def _decode(self, model: WhisperModel, encoded: Any, language: str, limit: int) -> _Hypothesis:
        tokenizer = self._tokenizer(model, language)
        prompt = [*tokenizer.sot_sequence, tokenizer.no_timestamps]
        length = min(_MAX_LENGTH, len(prompt) + limit)
        result = model.model.generate(
            encoded,
            [prompt],
            beam_size=1,
            max_length=length,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_tokens=self._suppressed,
        )[0]
        tokens = result.sequences_ids[0]
        return _Hypothesis(
            tokens=tokens,
            # The score is a mean over the tokens; the end token counts too.
            log_probability=result.scores[0] * len(tokens) / (len(tokens) + 1),
            no_speech=result.no_speech_prob,
            capped=len(prompt) + len(tokens) >= length,
        )

    def _tokenizer(self, model: WhisperModel, language: str) -> Tokenizer:
        return Tokenizer(model.hf_tokenizer, model.model.is_multilingual, task="transcribe", language=language)

    def _transcript(self, text: str, language: str) -> Transcript:
        stripped = text.strip()
        if not any(char.isalnum() for char in stripped):
            return NOTHING
        return Transcript(self._chinese(stripped) if language == "zh" else stripped, language)

    def _chinese(self, text: str) -> str:
        """Simplified, and without the spaces that the decoder sometimes puts at pauses."""
        simplified: str = self._simplify.convert(text)
        return _SPACE_BETWEEN_CHINESE.sub("", simplified)


@contextlib.contextmanager
def _faults_named() -> Iterator[None]:
    """What CTranslate2 raises, as a ChatError."""
    try:
        yield
    except RuntimeError as error:
        raise ChatError(
            "asr_failed", f"Speech recognition failed ({error}); please try again, or type.", reason=str(error)
        ) from error


def is_made_up(no_speech: float, log_probability: float) -> bool:
    """Whether a sentence with these two figures of the decoder is one that nobody said."""
    return any(no_speech > empty and log_probability < doubtful for empty, doubtful in _MADE_UP)


def without_loop(tokens: Sequence[int]) -> list[int]:
    """`tokens` up to the first round of what they repeat at their end at least three times; else all of them."""
    for period in range(1, len(tokens) // 3 + 1):
        same = _said_again(tokens, period)
        if same >= max(2 * period, _LOOP_TOKENS):
            return list(tokens[: len(tokens) - same])
    return list(tokens)


def without_echo(tokens: Sequence[int]) -> list[int]:
    """`tokens` of a draft without what its end only says again; nothing, where all of it is one syllable over and over.

    The last tokens may belong to a round that was cut off.
    """
    for cut in range(min(3, len(tokens))):
        end = len(tokens) - cut
        for period in range(1, end):
            same = _said_again(tokens[:end], period)
            looped = same >= 2 * period and same >= _ECHO_TOKENS - 1
            if looped or (cut == 0 and same >= _ECHO_TOKENS):
                return [] if looped and end - same == period else list(tokens[: end - same])
    return list(tokens)


def _said_again(tokens: Sequence[int], period: int) -> int:
    """How many of the last tokens are the same as those `period` places before them."""
    same = 0
    while same < len(tokens) - period and tokens[-1 - same] == tokens[-1 - same - period]:
        same += 1
    return same
