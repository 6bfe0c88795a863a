"""Loading an ONNX network: whatever is wrong with its file is one sentence that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from spoken_chat.errors import ChatError
from spoken_chat.networks import load_network
from spoken_chat.tts import kokoro_model
from spoken_chat.tts.kokoro_model import KokoroModel

BAD = [b"", b"not a network", b"\x08\x07", bytes(4096)]


@pytest.mark.parametrize("content", BAD)
def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    with pytest.raises(ChatError) as caught:
        load_network(path, 1, what="The net", mend="fetch it again")
    assert caught.value.code == "weights_damaged"
    assert caught.value.message == f"The net in {path} cannot be loaded; fetch it again."


def test_a_file_that_is_not_there_is_told_the_same_way(tmp_path: Path) -> None:
    with pytest.raises(ChatError, match="fetch it again"):
        load_network(tmp_path / "none.onnx", 1, what="The net", mend="fetch it again")


@pytest.mark.parametrize("content", BAD)
def test_a_damaged_voice_network_says_which_file_to_delete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    path = tmp_path / "voice.onnx"
    path.write_bytes(content)
    monkeypatch.setattr(kokoro_model, "weights_file", lambda _: path)
    with pytest.raises(ChatError, match="delete that file") as caught:
        KokoroModel(tmp_path, tmp_path, 1)
    assert str(path) in caught.value.message
