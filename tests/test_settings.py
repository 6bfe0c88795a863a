"""Settings come from the environment and the command line, and a bad one is told in a sentence."""

from __future__ import annotations

import argparse

import pytest

from spoken_chat import settings as knobs
from spoken_chat.errors import ChatError
from spoken_chat.settings import unknown_variables


def parse(*arguments: str) -> knobs.Settings:
    parser = argparse.ArgumentParser()
    knobs.add_arguments(parser)
    return knobs.from_arguments(parser.parse_args(arguments))


def test_the_environment_sets_and_the_command_line_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPOKEN_CHAT_LLM_BASE_URL", "http://one/v1")
    monkeypatch.setenv("SPOKEN_CHAT_LLM_MODEL", "qwen36")
    settings = parse("--base-url", "http://two/v1")
    assert (settings.llm_base_url, settings.llm_model) == ("http://two/v1", "qwen36")


def test_each_setting_has_an_option_of_its_own_name() -> None:
    parser = argparse.ArgumentParser()
    knobs.add_arguments(parser)
    text = parser.format_help()
    for name in knobs.Settings.model_fields:
        assert "--" + name.replace("_", "-") in text


def test_every_setting_is_described() -> None:
    assert all(field.description for field in knobs.Settings.model_fields.values())


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--port", "many"], "--port"),
        (["--temperature", "9"], "--temperature"),
        (["--tts-engine", "x"], "--tts-engine"),
    ],
)
def test_a_bad_value_is_told_with_the_option_it_came_from(arguments: list[str], named: str) -> None:
    with pytest.raises(ChatError) as caught:
        parse(*arguments)
    assert named in caught.value.message
    assert "\n" not in caught.value.message


def test_a_bad_value_in_the_environment_is_told_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPOKEN_CHAT_PORT", "-5")
    with pytest.raises(ChatError, match="SPOKEN_CHAT_PORT"):
        parse()


def test_a_key_is_never_printed() -> None:
    settings = parse("--api-key", "sk-secret")
    assert "sk-secret" not in repr(settings)
    assert "sk-secret" not in str(settings.model_dump())


def test_the_key_of_the_model_server_and_the_key_of_our_own_clients_have_options_of_their_own() -> None:
    settings = parse("--api-key", "sk-theirs", "--realtime-key", "ours")
    assert settings.llm_api_key.get_secret_value() == "sk-theirs"
    assert settings.api_key.get_secret_value() == "ours"
    assert parse("--llm-api-key", "sk-theirs").api_key.get_secret_value() == ""


def test_a_variable_that_looks_like_a_setting_and_is_none_is_told() -> None:
    environment = {"SPOKEN_CHAT_PROT": "1", "SPOKEN_CHAT_PORT": "1", "PORT": "1", "SPOKEN_CHAT_Q": "1"}
    assert unknown_variables(environment) == [
        "SPOKEN_CHAT_PROT is not a setting, and is ignored; SPOKEN_CHAT_PORT is.",
        "SPOKEN_CHAT_Q is not a setting, and is ignored.",
    ]
