"""What a server says of itself, and the address and key it is reached with."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from spoken_chat.errors import ChatError
from spoken_chat.llm.address import normalise_base_url
from spoken_chat.llm.dialect import ModelInfo
from spoken_chat.llm.openai_chat import OpenAIChat
from spoken_chat.settings import Settings
from tests.support import openai_server as scripted
from tests.support.openai_chats import talking_to, text_and_fault
from tests.support.openai_server import Answer


@pytest.mark.parametrize(
    ("entry", "info"),
    [
        ({"id": "qwen36", "owned_by": "vllm", "max_model_len": 12288}, ModelInfo("qwen36", 12288, None, vllm=True)),
        (
            {"id": "smol", "meta": {"n_ctx": 4096}, "architecture": {"input_modalities": ["text"]}},
            ModelInfo("smol", 4096, False),
        ),
        (
            {"id": "vl", "meta": {"n_ctx": 4096}, "architecture": {"input_modalities": ["text", "image"]}},
            ModelInfo("vl", 4096, True),
        ),
        ({"id": "hosted"}, ModelInfo("hosted", None, None)),
    ],
)
async def test_the_server_is_described_as_it_describes_itself(entry: dict[str, Any], info: ModelInfo) -> None:
    async with talking_to(models=scripted.model_list(entry)) as (chat, _):
        assert await chat.connect() == info


async def test_the_chosen_model_is_described_among_several() -> None:
    models = scripted.model_list({"id": "a", "max_model_len": 1}, {"id": "b", "max_model_len": 2})
    async with talking_to(models=models, llm_model="b") as (chat, _):
        assert await chat.describe() == ModelInfo("b", 2)


async def test_vision_and_context_are_known_once_the_server_was_asked() -> None:
    entry = {"id": "vl", "meta": {"n_ctx": 4096}, "architecture": {"input_modalities": ["text", "image"]}}
    async with talking_to(models=scripted.model_list(entry)) as (chat, _):
        before = (chat.vision, chat.context_tokens)
        await chat.connect()
        assert (before, (chat.vision, chat.context_tokens)) == ((None, None), (True, 4096))


async def test_the_settings_override_what_the_server_says() -> None:
    async with talking_to(llm_vision="yes", llm_context_tokens=2048) as (chat, _):
        await chat.connect()
        assert (chat.vision, chat.context_tokens) == (True, 2048)


async def test_a_server_that_refused_an_image_is_known_not_to_see() -> None:
    async with talking_to(scripted.no_vision_vllm()) as (chat, _):
        await text_and_fault(chat)
        assert chat.vision is False


async def test_a_chosen_model_needs_no_list() -> None:
    async with talking_to(models=scripted.refuse(404), llm_model="b") as (chat, _):
        assert await chat.connect() == ModelInfo("b")


@pytest.mark.parametrize(
    ("models", "code"),
    [
        (scripted.refuse(401), "llm_key"),
        (scripted.refuse(404), "llm_not_openai"),
        (scripted.model_list(), "llm_model_missing"),
        (scripted.json_answer(["no"]), "llm_malformed"),
        (Answer((scripted.Piece(b"<html>"),), content_type="text/html"), "llm_malformed"),
    ],
)
async def test_a_list_that_cannot_be_had_is_told_in_one_sentence(models: Answer, code: str) -> None:
    async with talking_to(models=models) as (chat, _):
        with pytest.raises(ChatError) as caught:
            await chat.connect()
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1"),
        (" http://127.0.0.1:8000/v1/ ", "http://127.0.0.1:8000/v1"),
        ("https://host/openai/v1", "https://host/openai/v1"),
        ("https://host/v1/chat/completions", "https://host/v1"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
    ],
)
def test_the_base_url_may_be_given_with_or_without_v1(given: str, used: str) -> None:
    assert normalise_base_url(given) == used


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8000", "ftp://host/v1", "http://", "http://host:port/v1", "http://host:99999", "http://h?k=1"],
)
def test_a_malformed_base_url_is_refused_before_any_request(url: str) -> None:
    with pytest.raises(ChatError) as caught:
        OpenAIChat(Settings(), base_url=url)
    assert caught.value.code == "llm_base_url"


def test_a_key_that_cannot_be_sent_is_refused_without_being_shown() -> None:
    with pytest.raises(ChatError) as caught:
        OpenAIChat(Settings(llm_api_key=SecretStr("sk-钥匙")), base_url="http://127.0.0.1:8000")
    assert caught.value.code == "llm_key"
    assert "钥匙" not in caught.value.message
