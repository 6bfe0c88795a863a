"""What can go wrong between us and the model server, each in one sentence with a stable code."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final

import httpx2

from spoken_chat.errors import ChatError

_OVERFLOW: Final = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum (context|model) length|available context size"
    r"|longer than the (model's )?(maximum|context)|context (length|window) exceeded|max_model_len",
    re.IGNORECASE,
)
"""vLLM, llama.cpp, SGLang and OpenAI: in the code, the type or the message."""

_TOO_MANY_IMAGES: Final = re.compile(r"at most [1-9]\d* image", re.IGNORECASE)
"""vLLM, of a prompt with more images than it was started for."""

_NO_VISION: Final = re.compile(
    r"not a multimodal model|at most 0 image|image input is not supported|not support image"
    r"|image_url is only supported|support image input",
    re.IGNORECASE,
)
"""vLLM (two wordings), llama.cpp, OpenAI and its relays."""

_QUOTED_LENGTH: Final = 200


class Faults:
    """Makes the errors of one server: `address` is named in them, `secret` never appears."""

    def __init__(self, address: str, secret: str) -> None:
        self._address = address
        self._secret = secret

    def unreachable(self, error: BaseException) -> ChatError:
        """No connection, or none that holds until the answer begins."""
        causes = _chain(error)
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            what = "its host name cannot be resolved; check the address and the network"
        elif any(isinstance(cause, ssl.SSLError) for cause in causes):
            what = "the TLS handshake failed; check that the address should begin with https and its certificate"
        elif any(isinstance(cause, httpx2.TimeoutException) for cause in causes):
            what = "it did not accept a connection in time; check that it runs and the address is right"
        elif any(isinstance(cause, httpx2.ConnectError) for cause in causes):
            what = "it refused the connection; check that it runs and the address is right"
        else:
            return self._error(
                "llm_dropped",
                f"The model server at {self._address} closed the connection before it answered; try again.",
            )
        return self._error("llm_unreachable", f"The model server at {self._address} cannot be reached: {what}.")

    def refused(self, status: int, body: object, model: str, served: Sequence[str] | None = None) -> ChatError:
        """An error answer: HTTP `status`, and its error object. `served` is what the server lists, None if unknown."""
        error: Mapping[str, Any] = body if isinstance(body, dict) else {"message": body or ""}
        said = self._quoted(error.get("message"))
        wording = " ".join(str(error.get(name, "")) for name in ("code", "type", "message"))
        if status in (401, 403):
            return self._error(
                "llm_key", f"The model server at {self._address} refused the key; set the right one with --api-key."
            )
        if _NO_VISION.search(wording):
            return self._error("llm_no_vision", f"The model {model} cannot see images; send the text alone.")
        if _TOO_MANY_IMAGES.search(wording):
            return self._error(
                "llm_too_many_images", f"The model {model} takes no more images in one prompt{said}; send fewer."
            )
        if _OVERFLOW.search(wording):
            return self._error(
                "llm_context_overflow",
                f"The conversation no longer fits the model's context{said}; start a new one or shorten the message.",
            )
        if status == 404 and served is not None:
            return self.model_missing(model, served)
        if status == 404:
            return self._error(
                "llm_not_openai",
                f"There is no OpenAI-compatible server at {self._address}: it answered 404; check the base URL.",
            )
        if status == 429:
            return self._error(
                "llm_busy", f"The model server at {self._address} takes no more requests now{said}; try again soon."
            )
        if status >= 500:
            return self._error(
                "llm_server_error",
                f"The model server at {self._address} failed with status {status}{said}; try again.",
                status=status,
            )
        return self._error(
            "llm_refused",
            f"The model server at {self._address} refused the request with status {status}{said}; check the settings.",
            status=status,
        )

    def too_long(self, tokens: int, room: int) -> ChatError:
        """The prompt leaves no room for the reply, as we found before the server was asked."""
        return self._error(
            "llm_context_overflow",
            f"The conversation no longer fits the model's context ({tokens} tokens, and there is room for {room}); "
            "start a new one or shorten the message.",
        )

    def model_missing(self, model: str, served: Sequence[str]) -> ChatError:
        """The server does not have `model`; it has `served`."""
        if not served:
            sentence = f"The model server at {self._address} serves no model; load one there."
        else:
            names = ", ".join(served)
            sentence = (
                f"The model server at {self._address} does not serve {model}; it serves {names}: choose with --model."
            )
        return self._error("llm_model_missing", sentence, model=model)

    def timeout(self, seconds: float) -> ChatError:
        """No token came at all."""
        return self._error(
            "llm_timeout",
            f"The model server at {self._address} sent nothing for {seconds:g} s; try again, or see if it is busy.",
        )

    def stalled(self, seconds: float) -> ChatError:
        """Tokens came, then none."""
        return self._error(
            "llm_stalled",
            f"The model server at {self._address} stopped in the middle of the reply for {seconds:g} s; try again.",
        )

    def dropped(self) -> ChatError:
        """The connection closed before the reply was complete."""
        return self._error(
            "llm_dropped",
            f"The connection to the model server at {self._address} broke before the reply was complete; try again.",
        )

    def malformed(self, what: str) -> ChatError:
        """An answer that is not a stream of chat completion chunks."""
        return self._error(
            "llm_malformed",
            f"The model server at {self._address} sent an answer that cannot be read ({self._cleaned(what)}); "
            "check that it speaks the OpenAI protocol.",
        )

    def empty(self) -> ChatError:
        """A stream that ended well without any text."""
        return self._error("llm_empty", "The model answered with no text; say it again, or in other words.")

    def _error(self, code: str, sentence: str, **details: str | int | float) -> ChatError:
        return ChatError(code, sentence, address=self._address, **details)

    def _quoted(self, message: object) -> str:
        """` (what the server said)`, or nothing."""
        text = self._cleaned(message if isinstance(message, str) else "").rstrip(".")
        return f" ({text})" if text else ""

    def _cleaned(self, text: str) -> str:
        line = " ".join(text.split())
        if self._secret:
            line = line.replace(self._secret, "***")
        return line if len(line) <= _QUOTED_LENGTH else line[: _QUOTED_LENGTH - 1] + "…"


def _chain(error: BaseException | None) -> list[BaseException]:
    """`error` and all that caused it."""
    causes: list[BaseException] = []
    while error is not None and error not in causes:
        causes.append(error)
        error = error.__cause__ or error.__context__
    return causes
