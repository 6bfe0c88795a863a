"""Who may connect: the table in docs/realtime.md, and nothing else."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from spoken_chat.errors import ChatError
from spoken_chat.settings import Settings
from spoken_chat.talk.registry import OpenTalk, TalkRegistry

DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def admit(headers: Mapping[str, str], token: str | None, settings: Settings, registry: TalkRegistry) -> OpenTalk | None:
    """The conversation a page's `token` opens, or None for a program that may open one of its own.

    `headers`: of the request, found in any case. Raises ChatError that says what is missing.
    """
    origin = headers.get("origin")
    if origin is None:
        _check_program(headers.get("authorization"), settings)
        return None if token is None else _conversation(token, registry)
    if not _is_ours(origin, headers.get("host", ""), settings):
        raise ChatError(
            "origin_refused",
            "Pages of this origin may not talk here; name it in SPOKEN_CHAT_ALLOWED_ORIGINS to let them.",
        )
    if token is None:
        raise ChatError("token_missing", "A page shows the token of its conversation; reload the page to get one.")
    return _conversation(token, registry)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an app that listens on `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_program(authorization: str | None, settings: Settings) -> None:
    key = settings.api_key.get_secret_value()
    if not key:
        if is_loopback(settings.host):
            return
        raise ChatError(
            "key_not_set",
            "Programs may only talk to this app from elsewhere when it has a key; set SPOKEN_CHAT_API_KEY there.",
        )
    scheme, _, shown = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not _same(shown.strip(), key):
        raise ChatError("key_wrong", "The key is missing or wrong; send SPOKEN_CHAT_API_KEY as the bearer key.")


def _conversation(token: str, registry: TalkRegistry) -> OpenTalk:
    opened = registry.by_token(token)
    if opened is None or not _same(token, opened.token):
        raise ChatError("session_gone", "This conversation has ended; reload the page to start another.")
    return opened


def _same(shown: str, secret: str) -> bool:
    return hmac.compare_digest(shown.encode("utf-8", "replace"), secret.encode("utf-8"))


def _is_ours(origin: str, host: str, settings: Settings) -> bool:
    """Whether a page of `origin` came from this app, reached as `host`, or from an allowed one.

    The scheme is not compared with our own: behind a proxy that ends TLS we do not know it.
    """
    place = _place(origin)
    if place is None:
        return False
    scheme, name, port = place
    if host and _place(f"{scheme}://{host}") == place:
        return True
    allowed = (one.strip().rstrip("/") for one in settings.allowed_origins.split(","))
    return (scheme, name, port) in [_place(one) for one in allowed if one]


def _place(origin: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an origin; None for what is none, such as `null`."""
    try:
        parts = urlsplit(origin.lower())
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, port if port is not None else DEFAULT_PORTS[parts.scheme]
