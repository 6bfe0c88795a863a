"""Weights that travel in packages: found without importing them, joined and checked once, also by many at a time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spoken_chat.errors import ChatError
from spoken_chat.settings import ROOT
from spoken_chat.weights import copied, joined, package_file

PARTS = (("weights_part_one", "data/model.part1"), ("weights_part_two", "data/model.part2"))
CONTENTS = (b"first half " * 200_000, b"second half" * 100)  # the first is longer than a block
SHA256 = hashlib.sha256(b"".join(CONTENTS)).hexdigest()

_JOIN_IN_A_PROCESS = """
import sys
from pathlib import Path
from spoken_chat.weights import joined

sys.stdin.readline()
print(joined([("weights_part_one", "data/model.part1"), ("weights_part_two", "data/model.part2")],
             Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two installed data packages that may not be imported; the folder they are in."""
    site = tmp_path / "site"
    for (package, name), content in zip(PARTS, CONTENTS, strict=True):
        file = site / package / name
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
        (site / package / "__init__.py").write_text("raise RuntimeError('a data package was imported')\n")
    monkeypatch.syspath_prepend(site)
    return site


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "deep" / "model.bin"


def all_at_once(work: Callable[[], object], workers: int = 8) -> None:
    """Run `work` in threads that start together; what one raises is raised."""
    barrier = threading.Barrier(workers)

    def together() -> None:
        barrier.wait()
        work()

    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(together) for _ in range(workers)]:
            done.result()


def beside(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir())


def test_a_file_of_a_package_is_found_without_importing_it(packages: Path) -> None:
    assert package_file(*PARTS[0]) == packages / "weights_part_one" / "data" / "model.part1"


@pytest.mark.parametrize(("package", "name"), [("weights_nowhere", "x"), ("weights_part_one", "data/other")])
@pytest.mark.usefixtures("packages")
def test_a_missing_package_or_file_is_named_with_what_to_do(package: str, name: str) -> None:
    with pytest.raises(ChatError) as caught:
        package_file(package, name)
    assert caught.value.code == "weights_missing"
    assert package in caught.value.message
    assert "make install" in caught.value.message


@pytest.mark.usefixtures("packages")
def test_parts_are_joined_in_order_when_the_hash_is_right(target: Path) -> None:
    assert joined(PARTS, target, SHA256) == target
    assert target.read_bytes() == b"".join(CONTENTS)
    assert beside(target) == ["model.bin"]


@pytest.mark.usefixtures("packages")
def test_what_was_joined_once_is_not_joined_again(target: Path) -> None:
    joined(PARTS, target, SHA256)
    written = target.stat()
    assert joined((("weights_nowhere", "x"),), target, "no hash") == target
    assert (target.stat().st_mtime_ns, target.stat().st_ino) == (written.st_mtime_ns, written.st_ino)


@pytest.mark.usefixtures("packages")
def test_a_wrong_hash_leaves_nothing_behind(target: Path) -> None:
    with pytest.raises(ChatError) as caught:
        joined(PARTS, target, hashlib.sha256(b"other").hexdigest())
    assert caught.value.code == "weights_damaged"
    assert "model.bin" in caught.value.message
    assert beside(target) == []


@pytest.mark.usefixtures("packages")
def test_a_missing_part_leaves_nothing_behind(target: Path) -> None:
    with pytest.raises(ChatError) as caught:
        joined((*PARTS, ("weights_nowhere", "x")), target, SHA256)
    assert caught.value.details == {"package": "weights_nowhere"}
    assert not target.parent.exists()


@pytest.mark.usefixtures("packages")
def test_threads_that_join_at_once_all_get_the_whole_file(target: Path) -> None:
    def join() -> None:
        assert joined(PARTS, target, SHA256).read_bytes() == b"".join(CONTENTS)

    all_at_once(join)
    assert beside(target) == ["model.bin"]


def test_processes_that_join_at_once_all_get_the_whole_file(packages: Path, target: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    command = [sys.executable, "-c", _JOIN_IN_A_PROCESS, str(target), SHA256]
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True) for _ in range(3)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate()[0].strip() for process in processes] == [str(target)] * 3
    assert target.read_bytes() == b"".join(CONTENTS)
    assert beside(target) == ["model.bin"]


def test_a_file_is_copied_once(packages: Path, target: Path) -> None:
    assert copied(*PARTS[1], target) == target
    (packages / "weights_part_two" / "data" / "model.part2").write_bytes(b"changed")
    assert copied(*PARTS[1], target).read_bytes() == CONTENTS[1]
    assert beside(target) == ["model.bin"]


@pytest.mark.usefixtures("packages")
def test_a_copy_of_a_missing_file_leaves_nothing_behind(target: Path) -> None:
    with pytest.raises(ChatError):
        copied("weights_part_one", "data/other", target)
    assert not target.exists()
    assert not target.parent.exists() or beside(target) == []


@pytest.mark.usefixtures("packages")
def test_threads_that_copy_at_once_all_get_the_whole_file(target: Path) -> None:
    def copy() -> None:
        assert copied(*PARTS[0], target).read_bytes() == CONTENTS[0]

    for _ in range(5):
        target.unlink(missing_ok=True)
        all_at_once(copy)
        assert beside(target) == ["model.bin"]


@pytest.mark.parametrize("make", [lambda at: joined(PARTS, at, SHA256), lambda at: copied(*PARTS[0], at)])
@pytest.mark.usefixtures("packages")
def test_a_cache_that_cannot_be_written_is_told_with_the_way_to_another(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(ChatError) as caught:
        make(tmp_path / "cache" / "model.bin")
    assert caught.value.code == "cache_unwritable"
    assert str(tmp_path / "cache") in caught.value.message
    assert "--cache-dir" in caught.value.message
