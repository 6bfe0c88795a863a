"""One server for the tests of a module; after each test, nothing may be left on it."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.realtime import Wire, wire


@pytest.fixture(scope="module")
def one_server() -> Iterator[Wire]:
    with wire() as running:
        yield running


@pytest.fixture
async def server(one_server: Wire) -> AsyncIterator[Wire]:
    one_server.engines.script()
    yield one_server
    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(one_server.registry.close(), one_server.loop))
    await one_server.nothing_left()
