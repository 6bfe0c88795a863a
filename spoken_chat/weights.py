"""Model weights that travel in packages: found without importing them, joined once into the cache, checked by hash."""

from __future__ import annotations

import hashlib
import importlib.util
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

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

    Raises ChatError when a part is missing, the SHA-256 of the whole is not `sha256`, or it cannot be written.
    """
    if target.is_file():
        return target
    sources = [package_file(package, name) for package, name in parts]
    digest = hashlib.sha256()
    with _appearing_whole(target) as out:
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
    return target


def copied(package: str, name: str, target: Path) -> Path:
    """A copy of one package file at `target`, made once. Raises ChatError when it is missing or cannot be written."""
    if target.is_file():
        return target
    source = package_file(package, name)
    with _appearing_whole(target) as out, source.open("rb") as data:
        shutil.copyfileobj(data, out, _BLOCK)
    return target


@contextmanager
def _appearing_whole(target: Path) -> Iterator[BinaryIO]:
    """A file to write that becomes `target` at the end, and leaves nothing when the block fails.

    It lies beside `target` under a name of its own, so that threads and processes may write the same one at once.
    """
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(8)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as out:
            yield out
        temporary.replace(target)
    except OSError as error:
        raise ChatError(
            "cache_unwritable",
            f"The model file {target.name} could not be written to {target.parent} ({error.strerror}); see to its "
            "rights and its free space, or choose another folder with --cache-dir.",
            file=target.name,
        ) from error
    finally:
        with suppress(OSError):  # where the folder cannot be used, there is nothing to take away
            temporary.unlink(missing_ok=True)
