"""`python -m spoken_chat` as a person runs it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import wave
from pathlib import Path

import pytest

from spoken_chat.settings import ROOT
from tests.support import openai_server as servers
from tests.support.speech import english_question

METRICS = {
    "asr_ms", "ttft_ms", "ms_per_token", "llm_turn_ms", "first_audio_ms", "prompt_tokens", "cached_tokens",
    "completion_tokens",
}  # fmt: skip


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spoken_chat", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip


async def run_beside(server: servers.ScriptedServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command while the scripted server answers from this process."""
    given = ["--base-url", server.base_url, "--model", servers.MODEL, "--tts-engine", "kokoro"]
    return await asyncio.to_thread(run, *arguments, *given)


@pytest.mark.engines
def test_a_spoken_turn_with_the_embedded_engines_prints_one_json_object(tmp_path: Path) -> None:
    question, words = english_question(tmp_path)
    out = tmp_path / "reply.wav"
    done = run("turn", str(question), "--json", "--out", str(out), "--tts-engine", "kokoro")
    assert done.returncode == 0, done.stderr
    turn = json.loads(done.stdout)
    assert words in turn["transcript"].lower()
    assert turn["reply"]
    assert turn["spoken"]
    assert set(turn["metrics"]) >= METRICS
    for name in METRICS:
        assert turn["metrics"][name] is not None
    assert turn["engines"]["tts"] == "kokoro"
    marks = turn["marks"]
    assert marks["asr_done"] <= marks["request_sent"] <= marks["first_content"] <= marks["tts_first_byte"]
    with wave.open(str(out)) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (24_000, 1, 2)
        assert sound.getnframes() > 12_000


@pytest.mark.engines
async def test_a_typed_turn_against_a_server_reports_what_was_not_measured_as_null() -> None:
    answer = servers.say("[happy] Hello to ", "you today.", usage=b"")
    async with servers.ScriptedServer(answer) as server:
        done = await run_beside(server, "turn", "hello", "--json", "--persona", "robin")
        assert done.returncode == 0, done.stderr
        turn = json.loads(done.stdout)
        assert (turn["transcript"], turn["reply"], turn["mood"]) == ("hello", "Hello to you today.", "happy")
        assert turn["metrics"]["asr_ms"] is None
        assert turn["metrics"]["completion_tokens"] is None
        body = server.chats[-1].body
        assert body["chat_template_kwargs"] == {"enable_thinking": False}


@pytest.mark.engines
async def test_a_server_fault_is_one_sentence_on_stderr_and_status_2() -> None:
    good = servers.say("Hello.")
    async with servers.ScriptedServer(good, servers.refuse(500)) as server:
        done = await run_beside(server, "turn", "hello")
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1
        assert done.stdout == ""


@pytest.mark.engines
async def test_text_received_before_a_connection_breaks_is_printed_all_the_same() -> None:
    async with servers.ScriptedServer(servers.drop_mid_stream("[happy] Hello there, ", "my friend.")) as server:
        done = await run_beside(server, "turn", "hello", "--json", "--persona", "robin")
        assert done.returncode == 2
        turn = json.loads(done.stdout)
        assert (turn["reply"], turn["status"]) == ("Hello there, my friend.", "failed")
        assert turn["error"]["code"] == "llm_dropped"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["turn", "missing.wav"], "missing.wav"),
        (["turn", "/tmp"], "folder"),
        (["turn", "  "], "nothing to send"),
        (["turn", ""], "nothing to send"),
        (["turn", "hi", "--image", "missing.png"], "missing.png"),
        (["turn", "hi", "--persona", "nobody"], "nobody"),
        (["turn", "hi", "--port", "x"], "--port"),
        (["turn", "hi", "--out", "/nowhere/at/all.wav"], "/nowhere/at"),
        (["turn"], "FILE_OR_TEXT"),
        (["turn", "hi", "--base-url", "http://127.0.0.1:9"], "127.0.0.1:9"),
    ],
)
def test_bad_input_is_one_sentence_on_stderr_and_status_2(arguments: list[str], part: str) -> None:
    done = run(*arguments, "--tts-engine", "kokoro")
    assert done.returncode == 2
    assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.engines
def test_silence_is_said_to_be_silence(tmp_path: Path) -> None:
    path = tmp_path / "silence.wav"
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(bytes(64_000))
    done = run("turn", str(path), "--tts-engine", "kokoro")
    assert done.returncode == 2
    assert "Nothing was heard" in done.stderr


def test_doctor_says_which_engines_would_be_used() -> None:
    done = run("doctor", "--json")
    report = json.loads(done.stdout)
    said = {finding["subject"]: finding for finding in report["findings"]}
    assert report["able"] is True
    assert done.returncode == 0
    assert "faster-whisper" in said["asr"]["text"]
    assert "SmolLM2" in said["llm"]["text"]
    assert {"cache", "personas", "voice", "edge-tts", "port"} <= set(said)


def test_doctor_names_what_is_missing(tmp_path: Path) -> None:
    done = run("doctor", "--gguf", str(tmp_path / "none.gguf"))
    assert done.returncode == 1
    assert "none.gguf" in done.stdout


@pytest.mark.parametrize("command", [["turn"], ["doctor"], ["bench", "asr"], ["bench", "overhead"]])
def test_every_command_has_help_that_lists_the_settings(command: list[str]) -> None:
    done = run(*command, "--help")
    assert done.returncode == 0
    assert "--base-url" in done.stdout
