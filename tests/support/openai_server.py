"""The scripted OpenAI server with the faults that real ones have, by name.

    async with ScriptedServer(say("[happy] ", "Hello.")) as server:
        chat = OpenAIChat(settings, base_url=server.base_url)
        ...
        assert server.chats[0].body["stream"]

Wordings are those of vLLM 0.26, llama.cpp of October 2026 and OpenAI.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spoken_chat.bench.scripted_server import (
    DONE,
    MODEL,
    Answer,
    Ending,
    Piece,
    Request,
    Schedule,
    ScriptedServer,
    delta,
    event,
    json_answer,
    model_list,
    usage_event,
)

__all__ = ["DONE", "MODEL", "Answer", "Ending", "Piece", "Request", "Schedule", "ScriptedServer", "delta", "event"]
__all__ += ["json_answer", "model_list", "usage_event"]

USAGE = usage_event(100, 8, 96)


def say(*texts: str, step: float = 0.0, first: float = 0.0, usage: bytes = USAGE, field: str = "content") -> Answer:
    """A whole reply, one chunk per text: the first after `first` seconds, then one every `step`."""
    pieces = [Piece(delta("", role="assistant"))]
    pieces += [Piece(delta(**_under(field, text)), first + number * step) for number, text in enumerate(texts)]
    return Answer((*pieces, Piece(delta(finish="stop") + usage + DONE, first + max(0, len(texts) - 1) * step)))


def say_bytes(*pieces: bytes, ending: Ending = Ending.COMPLETE, step: float = 0.02) -> Answer:
    """A body of `pieces` as they are, each in a TCP segment of its own."""
    return Answer(tuple(Piece(piece, number * step) for number, piece in enumerate(pieces)), ending=ending)


def reasoning_then_content(thoughts: Sequence[str], texts: Sequence[str], field: str = "reasoning") -> Answer:
    """A model that thinks, with the server's parser filing it under `field`."""
    pieces = [Piece(delta(**_under(field, text))) for text in thoughts] + [Piece(delta(text)) for text in texts]
    return Answer((*pieces, Piece(delta(finish="stop") + USAGE + DONE)))


def split_surrogates() -> Answer:
    """`Hi 😀!` with the emoji JSON-escaped and its two halves in two events."""
    return say_bytes(
        delta("Hi "),
        b'data: {"choices":[{"index":0,"delta":{"content":"\\ud83d"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"\\ude00!"}}]}\n\n',
        delta(finish="stop") + DONE,
    )


def split_character(text: str = "你好😀。") -> Answer:
    """`text` as raw UTF-8 in one event, cut into TCP segments of one byte each."""
    data = delta(text)
    return say_bytes(*(data[at : at + 1] for at in range(len(data))), delta(finish="stop") + USAGE + DONE, step=0.001)


def hang_before_headers() -> Answer:
    """The request is read and nothing is ever sent."""
    return Answer(headers_at=None, ending=Ending.HANG)


def hang_before_first_token() -> Answer:
    """Headers and the role arrive, no text."""
    return Answer((Piece(delta("", role="assistant")),), ending=Ending.HANG)


def hang_mid_stream(*texts: str) -> Answer:
    """Some text, then nothing, on an open connection."""
    return Answer(tuple(Piece(delta(text)) for text in texts), ending=Ending.HANG)


def drop_mid_stream(*texts: str) -> Answer:
    """Some text, then the connection closes inside the body."""
    return Answer(tuple(Piece(delta(text)) for text in texts), ending=Ending.DROP)


def end_without_finish(*texts: str) -> Answer:
    """Some text, then a body that ends well without a finish reason and without `[DONE]`."""
    return Answer(tuple(Piece(delta(text)) for text in texts))


def malformed_event(*texts: str) -> Answer:
    """Some text, then an event that is not JSON."""
    return Answer((*(Piece(delta(text)) for text in texts), Piece(b'data: {"choices": [\n\n')))


def error_in_stream(*texts: str, message: str = "EngineDeadError", code: int = 500) -> Answer:
    """Some text, then an error object as vLLM sends it once the status line is out."""
    error = {"error": {"message": message, "type": "InternalServerError", "code": code}}
    return Answer((*(Piece(delta(text)) for text in texts), Piece(event(error) + DONE)))


def refuse(status: int, message: str = "scripted", **fields: Any) -> Answer:
    """An error answer in the OpenAI form."""
    return json_answer({"error": {"message": message, "code": status, **fields}}, status=status)


def context_overflow_vllm() -> Answer:
    return refuse(
        400,
        "This model's maximum context length is 4096 tokens. However, you requested 220 output tokens and your prompt "
        "contains 5000 input tokens, for a total of 5220 tokens. Please reduce the length of the input prompt or the "
        "number of requested output tokens.",
        type="BadRequestError",
    )


def context_overflow_llama_cpp() -> Answer:
    return refuse(
        400,
        "request (5031 tokens) exceeds the available context size (4096 tokens), try increasing it",
        type="exceed_context_size_error",
        n_prompt_tokens=5031,
        n_ctx=4096,
    )


def context_overflow_openai() -> Answer:
    return json_answer(
        {"error": {"message": "Too long.", "type": "invalid_request_error", "code": "context_length_exceeded"}}, 400
    )


def no_vision_vllm() -> Answer:
    return refuse(400, "scripted is not a multimodal model", type="BadRequestError")


def no_vision_vllm_limit() -> Answer:
    return refuse(400, "At most 0 image(s) may be provided in one prompt.", type="BadRequestError")


def no_vision_llama_cpp() -> Answer:
    return refuse(
        500,
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        type="server_error",
    )


def _under(field: str, text: str) -> dict[str, Any]:
    return {"text": text} if field == "content" else {field: text}
