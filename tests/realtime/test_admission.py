"""Who may connect: the table of docs/realtime.md, over real connections and as a function."""

import pytest
from pydantic import SecretStr
from starlette.datastructures import Headers
from websockets.asyncio.client import connect

from spoken_chat.errors import ChatError
from spoken_chat.realtime.auth import admit, is_loopback
from spoken_chat.settings import Settings, load
from spoken_chat.talk.registry import TalkRegistry
from tests.support.realtime import ScriptedEngines, Wire, wire


@pytest.fixture(scope="module")
def registry():
    return TalkRegistry(ScriptedEngines(load()))


def settings(**given: object) -> Settings:
    return load(**given)


def refusal(registry: TalkRegistry, headers: dict[str, str], token: str | None = None, **given: object) -> str:
    with pytest.raises(ChatError) as caught:
        admit(Headers(headers), token, settings(**given), registry)
    return caught.value.code


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_on_loopback_without_a_key_a_program_needs_nothing(registry: TalkRegistry, host: str) -> None:
    assert is_loopback(host)
    assert admit(Headers({}), None, settings(host=host), registry) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org", ""])
def test_elsewhere_no_program_gets_in_while_there_is_no_key(registry: TalkRegistry, host: str) -> None:
    assert not is_loopback(host)
    assert refusal(registry, {"authorization": "Bearer any"}, host=host) == "key_not_set"


@pytest.mark.parametrize("shown", [None, "", "secret", "Basic secret", "Bearer", "Bearer other", "Bearer sécret"])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_with_a_key_a_program_must_show_it(registry: TalkRegistry, shown: str | None, host: str) -> None:
    headers = {} if shown is None else {"authorization": shown}
    assert refusal(registry, headers, host=host, api_key=SecretStr("secret")) == "key_wrong"


def test_the_right_key_lets_a_program_in(registry: TalkRegistry) -> None:
    given = settings(host="0.0.0.0", api_key=SecretStr("secret"))
    assert admit(Headers({"authorization": "Bearer secret"}), None, given, registry) is None


@pytest.mark.parametrize(
    "origin, host",
    [
        ("http://127.0.0.1:7860", "127.0.0.1:7860"),
        ("https://chat.example.org", "chat.example.org"),
        ("https://Chat.example.org", "chat.example.org:443"),
        ("http://[::1]:7860", "[::1]:7860"),
        ("https://friend.example", "chat.example.org"),
    ],
)
def test_a_page_of_our_own_or_of_an_allowed_origin_opens_its_conversation(
    registry: TalkRegistry, origin: str, host: str
) -> None:
    opened = registry.open()
    given = settings(host="0.0.0.0", allowed_origins="https://other.example, https://friend.example/")
    assert admit(Headers({"origin": origin, "host": host}), opened.token, given, registry) is opened


@pytest.mark.parametrize(
    "origin, host",
    [
        ("https://evil.example", "127.0.0.1:7860"),
        ("http://127.0.0.1:7861", "127.0.0.1:7860"),
        ("null", "127.0.0.1:7860"),
        ("", "127.0.0.1:7860"),
        ("file://", ""),
        ("http://127.0.0.1:99999", "127.0.0.1:99999"),
        ("http://friend.example", "127.0.0.1:7860"),
        ("https://friend.example.evil.example", "127.0.0.1:7860"),
    ],
)
def test_a_page_of_another_origin_is_refused_even_with_a_token(registry: TalkRegistry, origin: str, host: str) -> None:
    token = registry.open().token
    headers = {"origin": origin, "host": host}
    assert refusal(registry, headers, token, allowed_origins="https://friend.example") == "origin_refused"


def test_a_page_without_its_token_is_refused_whatever_key_it_shows(registry: TalkRegistry) -> None:
    headers = {"origin": "http://localhost:7860", "host": "localhost:7860", "authorization": "Bearer secret"}
    assert refusal(registry, headers, api_key=SecretStr("secret")) == "token_missing"
    assert refusal(registry, headers, "not-a-token") == "session_gone"


def test_a_program_may_open_a_pages_conversation_where_programs_may_connect(registry: TalkRegistry) -> None:
    opened = registry.open()
    assert admit(Headers({}), opened.token, settings(), registry) is opened
    assert refusal(registry, {}, "not-a-token") == "session_gone"
    assert refusal(registry, {}, opened.token, host="0.0.0.0") == "key_not_set"


@pytest.fixture(scope="module")
def one_server():
    with wire(api_key=SecretStr("secret")) as running:
        yield running


async def test_whoever_may_not_is_told_why_and_closed(server: Wire) -> None:
    async with server.client() as client:
        error = (await client.next("error"))["error"]
        assert error["code"] == "key_wrong" and "SPOKEN_CHAT_API_KEY" in error["message"]
        assert await client.closed() == 1008
    await server.nothing_left()


async def test_the_client_connects_with_the_key(server: Wire) -> None:
    server.key = "secret"
    async with server.client() as client:
        assert (await client.ask("hello"))["status"] == "completed"


async def test_a_browser_offers_a_subprotocol_and_gets_it(server: Wire) -> None:
    token = (await server.open()).token
    url = f"ws://{server.address}/v1/realtime?token={token}"
    origin = f"http://{server.address}"
    async with connect(url, origin=origin, subprotocols=["realtime", "other"]) as raw:  # type: ignore[arg-type, list-item]
        assert raw.subprotocol == "realtime"
        assert "session.created" in str(await raw.recv())
