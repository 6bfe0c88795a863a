"""Settings, engines, web app: `python app.py` serves the page."""

from __future__ import annotations

import argparse
import logging
import sys

import uvicorn

from spoken_chat import settings as knobs
from spoken_chat.engines import Engines
from spoken_chat.errors import ChatError
from spoken_chat.web import create_app


class AnnouncingServer(uvicorn.Server):
    """Prints the page's address once it answers."""

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets=sockets)  # type: ignore[arg-type]
        for server in self.servers:
            for socket in server.sockets:
                host, port = socket.getsockname()[:2]
                print(f"Spoken Chat is on http://{host}:{port}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Serve the app until it is told to stop; 2 with one sentence when it cannot start."""
    parser = argparse.ArgumentParser(prog="app.py", description="Serve the spoken-chat page.")
    knobs.add_arguments(parser)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    for chatty in ("httpx", "httpx2", "httpcore2", "faster_whisper"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    try:
        settings = knobs.from_arguments(parser.parse_args(arguments))
        app = create_app(Engines(settings))
    except ChatError as error:
        print(error.message, file=sys.stderr)
        return 2
    config = uvicorn.Config(app, host=settings.host, port=settings.port, log_level="warning")
    server = AnnouncingServer(config)
    server.run()
    return 0 if server.started else 2


if __name__ == "__main__":
    sys.exit(main())
