"""The route in the whole app, with the page mounted behind it."""

import json

from websockets.asyncio.client import connect

from tests.support.app import served
from tests.support.realtime import Wire, check, wire


async def test_the_route_is_reached_though_the_page_takes_every_other_path() -> None:
    with served() as app:
        async with connect(app.url.replace("http", "ws") + "/v1/realtime") as raw:
            event = json.loads(await raw.recv())
    check(event)
    assert event["type"] == "session.created"
    assert event["session"]["max_output_tokens"] == app.engines.settings.llm_max_tokens


async def test_a_server_that_stops_lets_its_clients_know() -> None:
    with wire() as server:
        client = server.client()
        connected = await client.__aenter__()
        await connected.next("session.created")
    assert await connected.closed() == 1012
    await client.__aexit__(None, None, None)


async def test_one_client_can_talk_while_another_is_given_a_long_recording_to_hear(server: Wire) -> None:
    async with server.client() as busy, server.client() as other:
        await busy.by_hand()
        for _ in range(10):
            await busy.sound(10.0)
        assert (await other.ask("hello"))["status"] == "completed"
