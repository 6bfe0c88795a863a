"""Every knob of the app, in one typed class, read from `SPOKEN_CHAT_*` and the command line."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn

from pydantic import Field, SecretStr, ValidationError
from pydantic.config import JsonDict
from pydantic_settings import BaseSettings, SettingsConfigDict

from spoken_chat.errors import ChatError

ROOT = Path(__file__).resolve().parent.parent
ENV_PREFIX = "SPOKEN_CHAT_"


def _default_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spoken-chat"


def _knob(default: Any, help_text: str, *, flag: str | None = None, **limits: Any) -> Any:
    """A setting: its default, its one-line description, and its short command-line name where it has one."""
    extra: JsonDict | None = {"flag": flag} if flag else None
    return Field(default=default, description=help_text, json_schema_extra=extra, validate_default=True, **limits)


class Settings(BaseSettings):
    """What the person who runs the app may choose. Times are in seconds unless the name says otherwise."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, env_ignore_empty=True, extra="ignore", frozen=True)

    host: str = _knob("127.0.0.1", "address the page listens on")
    port: int = _knob(7860, "port the page listens on", ge=0, le=65535)
    root_path: str = _knob("", "path the page is served under behind a proxy, such as /chat")
    cache_dir: Path = _knob(_default_cache(), "where joined and fetched model files are kept")

    persona: str = _knob("", "persona to open with (default: zh with a server of yours, en with the embedded model)")
    persona_dir: Path = _knob(ROOT / "persona", "folder with one folder per persona")
    voice: str = _knob("", "voice to open with, by its name in the persona (default: the persona's first)")

    llm_base_url: str = _knob("", "OpenAI-compatible server, such as http://127.0.0.1:8000/v1", flag="--base-url")
    llm_api_key: SecretStr = _knob(SecretStr(""), "key of that server", flag="--api-key")
    llm_model: str = _knob("", "served model name (default: the first the server lists)", flag="--model")
    llm_temperature: float = _knob(
        0.7, "sampling temperature (default: 0.7; 0.3 with the embedded model)", flag="--temperature", ge=0, le=2
    )
    llm_max_tokens: int = _knob(
        220, "longest reply in tokens (default: 220; 96 with the embedded model)", flag="--max-tokens", ge=1
    )
    llm_context_tokens: int | None = _knob(None, "context window in tokens (default: what the server says)", ge=256)
    llm_vision: Literal["auto", "yes", "no"] = _knob("auto", "whether the model sees images")
    llm_connect_timeout: float = _knob(5.0, "longest wait for the server to accept a connection", gt=0)
    llm_first_token_timeout: float = _knob(30.0, "longest wait for the first token", gt=0)
    llm_token_timeout: float = _knob(10.0, "longest wait between two tokens", gt=0)
    llm_gguf: str = _knob(
        "", "model of the embedded server: a .gguf file, or owner/repo:file.gguf on the hub", flag="--gguf"
    )
    llm_threads: int = _knob(
        0, "threads the embedded server writes with (0: all cores but one, so that the voice has one)", ge=0
    )

    llm_engine: Literal["auto", "vllm", "embedded"] = _knob(
        "auto", "who answers without --base-url: a vLLM started here, the embedded model, or what is there"
    )
    llm_keep_warm: float = _knob(
        20.0, "a vLLM server unused for this long reads the persona again while a page is open (0: never)", ge=0
    )
    vllm_python: str = _knob("", "Python that has vLLM (default: .venv-vllm, else this one)")
    vllm_model: str = _knob(
        "low-latency", "what vLLM serves: low-latency, anchor, base (see README), a repository or a folder"
    )
    vllm_port: int = _knob(8000, "port of that server; one that already serves the model there is used", ge=1, le=65535)
    vllm_profile: Literal["auto", "text", "image"] = _knob("auto", "text saves memory (auto: by the card's memory)")
    vllm_context_tokens: int = _knob(12_288, "context window that vLLM serves", ge=1024)
    vllm_max_num_seqs: int = _knob(6, "conversations that vLLM works on at once", ge=1)
    vllm_images: int = _knob(4, "images of one prompt that vLLM sets memory aside for", ge=1)
    vllm_mtp: int = _knob(0, "tokens that the model's own head guesses ahead (0: none)", ge=0, le=8)
    vllm_tensor_parallel: int = _knob(1, "GPUs that the weights are spread over", ge=1)
    vllm_gpu_memory: float | None = _knob(None, "share of the GPU's memory that vLLM may fill", gt=0, le=1)
    vllm_arguments: str = _knob("", "further arguments for vllm serve; they replace those of the recipe")
    vllm_patience: float = _knob(
        3600.0, "longest start of vLLM without a new line in its log; some versions download in silence", gt=0
    )

    asr_model: str = _knob("packaged", "faster-whisper model: packaged, a name such as small, or a folder")
    asr_device: Literal["auto", "cpu", "cuda"] = _knob("auto", "where speech recognition runs")
    asr_threads: int = _knob(0, "threads of speech recognition (0: one per core, at most 8)", ge=0)

    tts_engine: Literal["auto", "edge", "kokoro"] = _knob("auto", "voice engine (auto: edge-tts, else Kokoro)")
    tts_connect_timeout: float = _knob(2.5, "longest wait for the first sound of edge-tts", gt=0)
    tts_step_timeout: float = _knob(2.5, "longest wait between two pieces of sound of edge-tts", gt=0)
    tts_retry_after: float = _knob(60.0, "how long edge-tts is left alone after it failed", ge=0)
    tts_threads: int = _knob(0, "threads of the Kokoro voice (0: one per core, at most 8)", ge=0)

    api_key: SecretStr = _knob(
        SecretStr(""), "bearer key that programs send to /v1/realtime (none needed on loopback)", flag="--realtime-key"
    )
    allowed_origins: str = _knob("", "further origins whose pages may talk, such as https://example.org, by commas")

    turn_detection: Literal["adaptive", "fixed", "manual"] = _knob(
        "adaptive", "how the end of a turn is found: adaptive (smart-turn model), a fixed silence, or by hand"
    )
    silence_wait: float = _knob(0.6, "silence that ends a turn with fixed detection", ge=0.2, le=5)
    silence_wait_finished: float = _knob(0.4, "silence that ends a turn that sounds finished (adaptive)", ge=0.2, le=5)
    silence_wait_unfinished: float = _knob(
        1.5, "silence that ends a turn that does not sound finished (adaptive)", ge=0.2, le=5
    )
    reopen_within: float = _knob(1.0, "speech this soon after a turn's end goes on with the same turn", ge=0, le=5)
    utterance_max_seconds: float = _knob(60.0, "longest hands-free utterance; then it is answered", ge=5, le=300)
    speculation: bool = _knob(True, "start the answer in the pause before the turn's end")
    speculation_most_sessions: int = _knob(4, "no speculation while more conversations than this are active", ge=0)
    partial_transcripts: bool = _knob(True, "captions of what is being said")
    barge_in: bool = _knob(True, "speech over the reply stops it")
    half_duplex: bool = _knob(False, "the microphone is not heard while the reply plays (loudspeakers that echo)")

    image_min_pixels: int = _knob(50_176, "an image is scaled up to at least this many pixels", ge=1024)
    image_max_pixels: int = _knob(200_704, "an image is scaled down to at most this many pixels", ge=1024)
    image_max_bytes: int = _knob(20_000_000, "largest image file accepted", ge=1)
    audio_max_seconds: float = _knob(300.0, "longest utterance accepted", gt=0)
    audio_max_bytes: int = _knob(50_000_000, "largest audio file accepted", ge=1)
    text_max_chars: int = _knob(4000, "longest typed message accepted", ge=1)


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong with the command in one sentence, without the long list of options."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; --help lists what it takes.\n")


def flag_of(name: str) -> str:
    """The command-line option of the setting `name`."""
    extra = Settings.model_fields[name].json_schema_extra
    return str(extra["flag"]) if isinstance(extra, dict) and "flag" in extra else "--" + name.replace("_", "-")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give `parser` one option per setting, so that every command takes every setting."""
    group = parser.add_argument_group("settings", f"each also as {ENV_PREFIX}NAME in the environment")
    short = {flag_of(name) for name in Settings.model_fields}
    for name, info in Settings.model_fields.items():
        long_name = "--" + name.replace("_", "-")
        names = [flag_of(name), *([] if long_name in short else [long_name])]  # --api-key is the model server's
        group.add_argument(
            *names,
            dest=f"setting_{name}",
            metavar=name.upper().rpartition("_")[2],
            help=info.description,
            default=argparse.SUPPRESS,
        )


def from_arguments(arguments: argparse.Namespace) -> Settings:
    """Settings from the environment, overridden by the command line. Raises ChatError with one clear sentence.

    Variables that look like settings and are none are told on stderr.
    """
    given = {
        key.removeprefix("setting_"): value for key, value in vars(arguments).items() if key.startswith("setting_")
    }
    settings = load(**given)
    for sentence in unknown_variables():
        print(sentence, file=sys.stderr)
    return settings


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """One sentence for each variable that looks like a setting and is none."""
    known = [name.upper() for name in Settings.model_fields]
    given = [name.removeprefix(ENV_PREFIX) for name in environment if name.startswith(ENV_PREFIX)]
    sentences = []
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; {ENV_PREFIX}{near[0]} is" if near else ""
            sentences.append(f"{ENV_PREFIX}{name} is not a setting, and is ignored{hint}.")
    return sentences


def load(**given: Any) -> Settings:
    """Settings from the environment, overridden by `given`. Raises ChatError with one clear sentence."""
    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        where = flag_of(name) if name in given else ENV_PREFIX + name.upper()
        value = "" if "key" in name else f" {first['input']!r}"
        raise ChatError("bad_setting", f"The setting {where} cannot be{value}: {first['msg']}.") from None
