"""`doctor`: what is installed, which engine each stage would use and why, what is missing and how to get it."""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final, Literal

from spoken_chat import engines
from spoken_chat.asr.cuda import probe
from spoken_chat.asr.whisper_weights import model_folder
from spoken_chat.cores import available_cores
from spoken_chat.errors import ChatError
from spoken_chat.llm.openai_chat import OpenAIChat
from spoken_chat.persona import load_personas
from spoken_chat.server.gguf import model_file
from spoken_chat.server.installed import check_can_serve, find_vllm, gpus
from spoken_chat.settings import ENV_PREFIX, ROOT, Settings
from spoken_chat.tts.kokoro_model import weights_file

Verdict = Literal["ok", "note", "missing"]
EDGE_HOST: Final = ("speech.platform.bing.com", 443)
_REACH_S: Final = 3.0


@dataclass(frozen=True)
class Finding:
    """One line of the report. Only `missing` keeps the app from talking."""

    verdict: Verdict
    subject: str
    text: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Look at everything and print it. 0 when the app can talk, else 1."""
    findings = [
        _python(),
        *_packages(),
        _folder(settings),
        _personas(settings),
        _asr(settings),
        _asr_device(settings),
        _llm(settings),
        *_vllm(settings),
        _voice(settings),
        _online_voice(settings),
        _port(settings),
    ]
    able = all(finding.verdict != "missing" for finding in findings)
    if arguments.json:
        print(json.dumps({"able": able, "findings": [asdict(one) for one in findings]}, ensure_ascii=False))
    else:
        for one in findings:
            print(f"{one.verdict:<8}{one.subject:<14}{one.text}")
        print("\nThe app can talk." if able else "\nThe app cannot talk yet: see the lines marked missing.")
    return 0 if able else 1


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return Finding("ok", "python", f"{version}, {available_cores()} cores")


def _packages() -> list[Finding]:
    """Every package of requirements.txt against the version that is installed."""
    findings = []
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        name, _, wanted = line.partition("#")[0].strip().partition("==")
        if not name:
            continue
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            findings.append(Finding("missing", name, "is not installed; run `make install`"))
            continue
        if found != wanted:
            findings.append(Finding("note", name, f"{found} is installed; {wanted} is what was tested"))
    return findings or [Finding("ok", "packages", "all of requirements.txt, in the tested versions")]


def _folder(settings: Settings) -> Finding:
    try:
        settings.cache_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=settings.cache_dir):
            pass
    except OSError as error:
        advice = f"choose another with {ENV_PREFIX}CACHE_DIR"
        return Finding("missing", "cache", f"{settings.cache_dir} cannot be written ({error.strerror}); {advice}")
    return Finding("ok", "cache", str(settings.cache_dir))


def _personas(settings: Settings) -> Finding:
    def look() -> str:
        return ", ".join(f"{one.id} ({one.language})" for one in load_personas(settings.persona_dir).values())

    return _told("personas", look)


def _asr(settings: Settings) -> Finding:
    choice = engines.choose_asr(settings)
    return _told("asr", lambda: f"{choice.engine}: {choice.why}; weights in {model_folder(settings)}")


def _asr_device(settings: Settings) -> Finding:
    if settings.asr_device == "cpu":
        return Finding("ok", "asr device", "cpu, as asked")
    try:
        found = probe(model_folder(settings))
    except ChatError as error:
        return Finding("note", "asr device", f"not tried: {error.message}")
    if found.works:
        return Finding("ok", "asr device", "cuda: a trial run worked")
    verdict: Verdict = "missing" if settings.asr_device == "cuda" else "ok"
    return Finding(verdict, "asr device", f"cpu: {found.reason}")


def _llm(settings: Settings) -> Finding:
    choice = engines.choose_llm(settings)

    def look() -> str:
        if choice.engine == "embedded":
            return f"embedded llama.cpp with {model_file(settings).name}: {choice.why}"
        if choice.engine == "vllm":
            return f"a vLLM of our own with {settings.vllm_model}: {choice.why}"
        return f"{asyncio.run(_ask(settings))}: {choice.why}"

    return _told("llm", look)


async def _ask(settings: Settings) -> str:
    chat = OpenAIChat(settings)
    try:
        info = await chat.connect()
    finally:
        await chat.aclose()
    window = f", window of {info.context_tokens} tokens" if info.context_tokens else ""
    return f"{info.name}{window}"


def _vllm(settings: Settings) -> list[Finding]:
    """The local vLLM: a note where it is not there or could not serve; missing only where it was asked for."""
    asked = engines.choose_llm(settings).engine == "vllm"
    otherwise: Verdict = "missing" if asked else "note"
    try:
        found = find_vllm(settings.vllm_python)
        if found is None:
            return [Finding(otherwise, "vllm", "is not installed; `make install-gpu` installs it for an NVIDIA GPU")]
        cards = gpus()
        check_can_serve(found, cards, settings.vllm_model, settings.vllm_tensor_parallel)
    except ChatError as error:
        return [Finding(otherwise, "vllm", error.message)]
    shown = ", ".join(f"{card.name} ({card.free_gib:.0f} of {card.total_gib:.0f} GiB free)" for card in cards)
    return [Finding("ok", "vllm", f"{found.version} in {found.python}; {shown or 'on the processor'}")]


def _voice(settings: Settings) -> Finding:
    choice = engines.choose_tts(settings)
    if choice.engine == "edge":
        return Finding("ok", "voice", "edge-tts alone, as asked")
    return _told("voice", lambda: f"{choice.engine}: {choice.why}; local weights in {weights_file(settings.cache_dir)}")


def _online_voice(settings: Settings) -> Finding:
    if settings.tts_engine == "kokoro":
        return Finding("ok", "edge-tts", "not asked for")
    try:
        socket.create_connection(EDGE_HOST, timeout=_REACH_S).close()
    except OSError as error:
        verdict: Verdict = "missing" if settings.tts_engine == "edge" else "note"
        instead = "" if settings.tts_engine == "edge" else "; Kokoro speaks instead"
        return Finding(verdict, "edge-tts", f"its service cannot be reached from here ({error}){instead}")
    return Finding("ok", "edge-tts", "its service can be reached")


def _port(settings: Settings) -> Finding:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((settings.host, settings.port))
        except OSError as error:
            why = os.strerror(error.errno or 0)
            text = f"{settings.host}:{settings.port} cannot be used ({why}); choose another with --port"
            return Finding("note", "port", text)
    return Finding("ok", "port", f"{settings.host}:{settings.port} is free")


def _told(subject: str, look: Callable[[], str]) -> Finding:
    """What `look` finds; its ChatError as a missing part."""
    try:
        return Finding("ok", subject, look())
    except ChatError as error:
        return Finding("missing", subject, error.message)
