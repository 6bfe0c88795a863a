"""Which engine each stage uses, why, and how far its loading is. The one place where engines are chosen."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, Final, Literal

from spoken_chat.asr import Recognizer
from spoken_chat.asr.whisper import WhisperRecognizer
from spoken_chat.errors import ChatError
from spoken_chat.model_stage import ModelStage
from spoken_chat.persona import Persona, PersonaVoice, default_for, load_personas
from spoken_chat.server.installed import find_vllm, gpus
from spoken_chat.settings import Settings
from spoken_chat.stage_state import Choice, StageState
from spoken_chat.stages import Stages
from spoken_chat.talk.ears import Ears
from spoken_chat.tts import SpeechChunk, SpeechNotice, SpeechRequest, Synthesizer
from spoken_chat.tts.edge import EdgeSynthesizer
from spoken_chat.tts.fallback import FallbackSynthesizer
from spoken_chat.tts.kokoro import KokoroSynthesizer

log = logging.getLogger(__name__)

ASR_ENGINES: Final[dict[str, Callable[[Settings], Recognizer]]] = {"faster-whisper": WhisperRecognizer}
TTS_ENGINES: Final[dict[str, Callable[[Settings, Sequence[str]], Synthesizer]]] = {
    "edge": lambda settings, _: EdgeSynthesizer(
        connect_timeout=settings.tts_connect_timeout, step_timeout=settings.tts_step_timeout
    ),
    "kokoro": KokoroSynthesizer,
}

EMBEDDED_DEFAULTS: Final = {"llm_temperature": 0.3, "llm_max_tokens": 96}
"""What suits SmolLM2 where nothing else was asked for: hotter, it leaves the mood tag out and rambles."""

StageName = Literal["asr", "llm", "tts"]
STAGES: Final[tuple[StageName, ...]] = ("asr", "llm", "tts")
IN_WORDS: Final[dict[StageName, str]] = {"asr": "speech recognition", "llm": "the language model", "tts": "the voice"}
EMBEDDED_LANGUAGE: Final = "en"
"""The only language of the embedded SmolLM2."""


def choose_llm(settings: Settings) -> Choice:
    """The model server: the one that was named, else a local vLLM where it can run, else the embedded one."""
    if settings.llm_base_url:
        return Choice("server", f"{settings.llm_base_url} was given")
    if settings.llm_engine == "vllm":
        return Choice("vllm", "vLLM was asked for (--llm-engine)")
    if settings.llm_gguf:
        return Choice("embedded", f"no server was given; the model {settings.llm_gguf} was")
    if settings.llm_engine == "embedded":
        return Choice("embedded", "it was asked for (--llm-engine)")
    found = find_vllm(settings.vllm_python)
    if found is None or not found.needs_gpu:
        return Choice("embedded", "no server was given (SPOKEN_CHAT_LLM_BASE_URL), and vLLM is not installed")
    if not gpus():
        return Choice("embedded", f"no server was given; vLLM {found.version} is installed, but no GPU answers")
    return Choice("vllm", f"vLLM {found.version} and a GPU are here")


def is_embedded_default(settings: Settings, choice: Choice) -> bool:
    """Whether the packaged SmolLM2 answers, `choice` being which server does."""
    return choice.engine == "embedded" and not settings.llm_gguf


def suited(settings: Settings, choice: Choice) -> Settings:
    """`settings` with what suits the packaged model, where it answers and nothing else was asked for."""
    if not is_embedded_default(settings, choice):
        return settings
    unasked = {name: value for name, value in EMBEDDED_DEFAULTS.items() if name not in settings.model_fields_set}
    return settings.model_copy(update=unasked)


def choose_asr(settings: Settings) -> Choice:
    """Speech recognition: faster-whisper with the model that was asked for."""
    return Choice("faster-whisper", f"model {settings.asr_model}, device {settings.asr_device}")


def choose_tts(settings: Settings) -> Choice:
    """The voice: edge-tts with Kokoro behind it, or the one that was asked for."""
    if settings.tts_engine == "auto":
        return Choice("edge+kokoro", "edge-tts while its service answers, else the local Kokoro voice")
    return Choice(settings.tts_engine, "it was asked for")


def make_synthesizer(settings: Settings, languages: Sequence[str]) -> Synthesizer:
    """The synthesiser that `choose_tts` names; `languages` are those to be ready from the start."""
    if settings.tts_engine == "auto":
        return FallbackSynthesizer(
            TTS_ENGINES["edge"](settings, languages),
            TTS_ENGINES["kokoro"](settings, languages),
            retry_after=settings.tts_retry_after,
        )
    return TTS_ENGINES[settings.tts_engine](settings, languages)


class Engines:
    """The engines of one app: loaded side by side, closed together."""

    def __init__(self, settings: Settings) -> None:
        choice = choose_llm(settings)  # once: it may ask another Python for its vLLM and the driver for its cards
        self.settings = suited(settings, choice)
        self.embedded_default = is_embedded_default(settings, choice)
        """Whether the packaged SmolLM2 answers."""
        self.states: dict[StageName, StageState] = {name: StageState() for name in STAGES}
        self.personas = load_personas(settings.persona_dir)
        self.opening_persona = self._opening_persona()
        self.model = ModelStage(self.settings, choice, self.states["llm"], self.personas, self.opening_persona)
        self.recognizer: Recognizer = ASR_ENGINES[choose_asr(settings).engine](settings)
        self.synthesizer: Synthesizer = make_synthesizer(settings, [self.opening_persona.language])
        self.listening = Ears()

    def _opening_persona(self) -> Persona:
        wanted = self.settings.persona
        if wanted:
            if wanted not in self.personas:
                known = ", ".join(self.personas)
                raise ChatError("persona_unknown", f"There is no persona {wanted!r}; choose one of {known}.")
            return self.personas[wanted]
        return default_for(self.personas, EMBEDDED_LANGUAGE if self.embedded_default else "zh")

    @property
    def opening_voice(self) -> PersonaVoice:
        """The voice to open with. Raises ChatError when the one that was asked for is not the persona's."""
        persona, wanted = self.opening_persona, self.settings.voice
        if wanted and wanted not in [voice.name for voice in persona.voices]:
            known = ", ".join(voice.name for voice in persona.voices)
            raise ChatError("voice_unknown", f"{persona.name} has no voice {wanted!r}; choose one of {known}.")
        return persona.voice(wanted)

    @property
    def ready(self) -> bool:
        """Whether every stage can be used."""
        return all(state.status == "ready" for state in self.states.values())

    @property
    def failed(self) -> bool:
        """Whether some stage could not be loaded."""
        return any(state.status == "failed" for state in self.states.values())

    @property
    def token_budget(self) -> int:
        """Tokens a prompt may have: the model's window less the longest reply."""
        chat = self.model.chat
        window = self.settings.llm_context_tokens or (chat.context_tokens if chat else None) or 4096
        return max(256, window - self.settings.llm_max_tokens)

    async def load(self, stages: Sequence[StageName] = STAGES) -> None:
        """Load `stages` side by side. A stage that fails says so in its state; nothing is raised."""
        await asyncio.gather(*(self._load_stage(name) for name in stages))

    async def load_model_again(self) -> None:
        """Load the language model once more; its state keeps saying what is wrong until it works."""
        await self._load_stage("llm", again=True)

    async def stages(self, needed: Sequence[StageName] = STAGES) -> Stages:
        """The engines for a turn that needs the stages `needed`. Raises ChatError while one of them loads.

        An embedded server that died is started again.
        """
        self.check_loaded(needed)
        await self.model.revive()
        assert self.model.chat is not None
        return Stages(self.recognizer, self.model.chat, self.synthesizer)

    def check_loaded(self, needed: Sequence[StageName]) -> None:
        """Raise the ChatError that says which of the stages `needed` cannot be used, and why."""
        for name in needed:
            state = self.states[name]
            if state.status == "failed":
                raise ChatError(state.code, state.detail)
            if state.status != "ready":
                raise ChatError("still_loading", "The models are still loading; try again in a moment.")

    async def close(self) -> None:
        """Close every connection, end the model server where it is ours, and let the worker threads go."""
        await self.model.close()
        self.recognizer.close()
        self.synthesizer.close()

    def health(self) -> dict[str, Any]:
        """What /healthz answers of the stages."""
        return {name: state.as_dict() for name, state in self.states.items()}

    async def _load_stage(self, name: StageName, *, again: bool = False) -> None:
        """Load one stage; its state says how far it is. Tried `again`, it keeps saying what is wrong until it works."""
        loaders: dict[StageName, Callable[[], Awaitable[str]]] = {
            "asr": self._load_asr,
            "llm": self._load_llm,
            "tts": self._load_tts,
        }
        state = self.states[name]
        started = time.monotonic()
        if not again:
            state.status, state.code, state.detail, state.seconds = "loading", "", "", None
        try:
            state.engine = await loaders[name]()
        except ChatError as error:
            if state.code != error.code:
                log.warning("%s", error.message)
            state.status, state.code, state.detail = "failed", error.code, error.message
        except Exception:  # whatever it is, the stage must not seem to load for ever
            state.status, state.code = "failed", "stage_broken"
            state.detail = f"An unforeseen error stopped the loading of {IN_WORDS[name]}; the log says more."
            log.exception("the stage %s could not be loaded", name)
        else:
            state.status = "ready"
        state.seconds = round(time.monotonic() - started, 2)

    async def _load_asr(self) -> str:
        await asyncio.gather(asyncio.to_thread(self.recognizer.load), asyncio.to_thread(self.listening.load))
        return self.recognizer.name

    async def _load_llm(self) -> str:
        return await self.model.load()

    async def _load_tts(self) -> str:
        """Load the voices and speak one clause, so that a service out of reach is known before the first turn."""
        await asyncio.to_thread(self.synthesizer.load)
        persona = self.opening_persona
        trial = SpeechRequest(persona.greeting, persona.language, self.opening_voice.engines)
        async with aclosing(self.synthesizer.synthesize(trial)) as events:
            async for event in events:
                if isinstance(event, SpeechNotice):
                    self.states["tts"].code, self.states["tts"].detail = event.code, event.message
                elif isinstance(event, SpeechChunk):
                    break
        return self.synthesizer.name
