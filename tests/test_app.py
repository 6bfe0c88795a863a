"""`app.py` listens where it was told, or says in one sentence why it cannot start."""

from __future__ import annotations

import socket
import warnings
from dataclasses import dataclass, field

import pytest
import uvicorn

import app
from spoken_chat.errors import ChatError
from tests.support.loading import bare_environment


@pytest.fixture(autouse=True)
def only_given_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    bare_environment(monkeypatch)


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


@dataclass
class Served:
    """What would have been served, by a server that ends at once."""

    addresses: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    seen = Served()

    class Server:
        def __init__(self, _: uvicorn.Config, address: str) -> None:
            seen.addresses.append(address)

        def run(self, sockets: list[socket.socket]) -> None:
            for listener in sockets:
                seen.ports.append(listener.getsockname()[1])
                listener.close()

    monkeypatch.setattr(app, "PageServer", Server)
    return seen


def test_a_free_port_is_found_for_port_0() -> None:
    with app.listen("127.0.0.1", 0) as listener:
        host, port = listener.getsockname()
        assert host == "127.0.0.1"
        with socket.create_connection((host, port), timeout=5):
            pass


@needs_ipv6
def test_an_ipv6_address_is_listened_on() -> None:
    with app.listen("::1", 0) as listener:
        host, port = listener.getsockname()[:2]
        assert host == "::1"
        with socket.create_connection((host, port), timeout=5):
            pass


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1:80"), ("::1", "[::1]:80"), ("::", "[::]:80")])
def test_an_address_is_written_as_in_a_url(host: str, shown: str) -> None:
    assert app.address(host, 80) == shown


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=needs_ipv6)])
def test_a_port_in_use_is_named_in_one_sentence_with_what_to_do(host: str) -> None:
    with app.listen(host, 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ChatError) as caught:
            app.listen(host, port)
    message = caught.value.message
    assert caught.value.code == "address_unusable"
    assert app.address(host, port) in message
    assert "--port" in message
    assert "\n" not in message
    app.listen(host, port).close()


@pytest.mark.parametrize("host", ["192.0.2.1", "256.0.0.1", "x" * 70, "a..b"])
def test_a_host_that_is_not_ours_or_is_no_host_is_named(host: str) -> None:
    with pytest.raises(ChatError) as caught:
        app.listen(host, 0)
    assert caught.value.code == "address_unusable"
    assert host in caught.value.message
    assert "None" not in caught.value.message


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--port", "many"], "--port"),
        (["--persona", "nobody"], "nobody"),
        (["--voice", "nobody"], "nobody"),
        (["--persona-dir", "/nowhere"], "/nowhere"),
    ],
)
def test_a_bad_setting_ends_with_one_sentence_and_status_2(
    arguments: list[str], named: str, served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)  # an open socket left behind fails the test
        assert app.main(["--port", "0", *arguments]) == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert named in said
    assert len(said.strip().splitlines()) == 1
    assert served.addresses == []


def test_a_port_in_use_ends_with_one_sentence_and_status_2(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    with app.listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert app.main(["--port", str(port)]) == 2
    said = capsys.readouterr().err
    assert f"127.0.0.1:{port}" in said
    assert len(said.strip().splitlines()) == 1
    assert served.addresses == []


@pytest.mark.parametrize(
    ("host", "start"),
    [("127.0.0.1", "http://127.0.0.1:"), pytest.param("::1", "http://[::1]:", marks=needs_ipv6)],
)
def test_the_page_is_served_on_the_port_that_was_found_and_its_address_can_be_opened(
    host: str, start: str, served: Served
) -> None:
    assert app.main(["--host", host, "--port", "0"]) == 0
    (port,) = served.ports
    assert port > 0
    assert served.addresses == [f"{start}{port}"]
