"""The address of a model server: as it was typed, as the client wants it, as it may be shown."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import httpx2

from spoken_chat.errors import ChatError


def normalise_base_url(url: str) -> str:
    """`url` as the client wants it, with `/v1` added where it has no path. Raises ChatError for a malformed one."""
    text = url.strip()
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        httpx2.URL(text)
    except (ValueError, httpx2.InvalidURL):
        usable = False
    if not usable or parts.query or parts.fragment:
        raise ChatError(
            "llm_base_url",
            f"The address {text!r} is not one of a model server; write it as http://127.0.0.1:8000/v1.",
            url=text,
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return parts._replace(path=path or "/v1").geturl()


def server_root(base_url: str) -> str:
    """`base_url` without its `/v1`: where a server keeps what is not part of the OpenAI protocol."""
    return base_url.rstrip("/").removesuffix("/v1")


def shown_address(base_url: str) -> str:
    """`base_url` as it may be shown: without a user name and password."""
    parts = urlsplit(base_url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def is_loopback(base_url: str) -> bool:
    """Whether the server runs on this machine."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
