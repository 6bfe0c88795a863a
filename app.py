"""Settings, engines, web app: `python app.py` serves the page."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # a Ctrl-C while the imports below load ends quietly

import asyncio
import logging
import socket
import sys
from contextlib import suppress

import uvicorn

from spoken_chat import settings as knobs
from spoken_chat.engines import Engines
from spoken_chat.errors import ChatError
from spoken_chat.web import create_app, largest_message

SHUTDOWN_S = 2
"""Open pages hold streams that never end by themselves; this long they may still be served when the app is stopped."""


class PageServer(uvicorn.Server):
    """Prints the page's address once it answers, and ends without a traceback for each page it cuts off."""

    def __init__(self, config: uvicorn.Config, address: str) -> None:
        super().__init__(config)
        self._address = address
        logging.getLogger("uvicorn.error").addFilter(self._worth_printing)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            print(f"Spoken Chat is on {self._address}", flush=True)

    def _worth_printing(self, record: logging.LogRecord) -> bool:
        cut_off = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
        return not (self.should_exit and (cut_off or "graceful shutdown exceeded" in record.getMessage()))


def listen(host: str, port: int) -> socket.socket:
    """A socket for the page. Raises ChatError when the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except (OSError, UnicodeError) as error:  # a host name that cannot be one is a UnicodeError
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else "no host has such a name"
        raise ChatError(
            "address_unusable",
            f"The page cannot listen on {address(host, port)} ({reason}); choose another with --port or --host.",
        ) from None
    return listener


def address(host: str, port: int) -> str:
    """`host`:`port` as it stands in a URL: an IPv6 address goes into brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def main(arguments: list[str] | None = None) -> int:
    """Serve the app until it is told to stop; 2 with one sentence when it cannot start."""
    parser = knobs.OneLineParser(prog="app.py", description="Serve the spoken-chat page.")
    knobs.add_arguments(parser)
    parsed = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        settings = knobs.from_arguments(parsed)
        app = create_app(Engines(settings))
        listener = listen(settings.host, settings.port)
    except ChatError as error:
        print(error.message, file=sys.stderr)
        return 2
    host, port = listener.getsockname()[:2]
    config = uvicorn.Config(
        app,
        log_level="warning",
        timeout_graceful_shutdown=SHUTDOWN_S,
        ws_max_size=largest_message(settings),
        ws_per_message_deflate=False,  # sound hardly shrinks, and the first of it must not wait for that
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with suppress(KeyboardInterrupt):  # how uvicorn hands on the Ctrl-C that it has already obeyed
        PageServer(config, f"http://{address(host, port)}").run(sockets=[listener])
    return 0


if __name__ == "__main__":
    sys.exit(main())
