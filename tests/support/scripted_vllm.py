"""A scripted vLLM: the scripted server with what only a vLLM has, counting tokens as one per character.

Its prefix cache works in blocks: a prompt takes from it what an earlier one began with.
"""

from __future__ import annotations

import json
from typing import Any

from spoken_chat.bench.scripted_server import Answer, Piece, Request, ScriptedServer, json_answer, model_list
from tests.support.openai_server import say, usage_event

NAME = "qwen36"
OPENING = "<assistant>"


class ScriptedVllm(ScriptedServer):
    """`window`: context tokens. `block`: in whose multiples a prefix is cached. `metrics`: what `/metrics` answers."""

    def __init__(self, *answers: Answer, window: int = 12_288, block: int = 16, name: str = NAME) -> None:
        models = model_list({"id": name, "owned_by": "vllm", "max_model_len": window})
        super().__init__(*(answers or [say("[happy] ", "Hello.")]), models=models)
        self.block = block
        self.metrics = ""
        self.read: list[str] = []
        """Prompts that were read for the cache alone."""
        self.prompts: list[str] = []
        """Every prompt, as the template makes it."""
        self.others = {
            "/tokenize": self._tokenize,
            "/metrics": lambda _: text_answer(self.metrics) if self.metrics else None,
            "/version": lambda _: json_answer({"version": "0.31.0"}),
            "/health": lambda _: json_answer({}),
            "/v1/chat/completions": self._chat,
        }

    def _tokenize(self, request: Request) -> Answer:
        prompt = rendered(request.body["messages"], opened=request.body.get("add_generation_prompt", True))
        return json_answer({"count": len(prompt), "tokens": [ord(char) for char in prompt], "max_model_len": 0})

    def _chat(self, request: Request) -> Answer | None:
        body = request.body
        prompt = rendered(body["messages"], opened=body.get("add_generation_prompt", True))
        cached = max((common(prompt, one) for one in self.prompts), default=0) // self.block * self.block
        self.prompts.append(prompt)
        usage = {
            "prompt_tokens": len(prompt),
            "completion_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        if body.get("stream"):
            self.usage = usage_event(len(prompt), 2, cached)
            return say("[happy] ", "Hello.", usage=self.usage)
        if "stream_options" in body:
            return json_answer({"error": {"message": "Stream options need a stream", "code": 400}}, status=400)
        self.read.append(prompt)
        return json_answer({"choices": [{"index": 0, "message": {"content": "x"}}], "usage": usage})


def text_answer(text: str) -> Answer:
    """A plain-text document."""
    return Answer((Piece(text.encode()),), content_type="text/plain; version=0.0.4")


def rendered(messages: list[dict[str, Any]], *, opened: bool) -> str:
    """`messages` as a chat template makes them; content that is no text stands as JSON."""
    text = "".join(
        f"<{one['role']}>{one['content'] if isinstance(one['content'], str) else json.dumps(one['content'])}\n"
        for one in messages
    )
    return text + (OPENING if opened else "")


def common(one: str, other: str) -> int:
    """How many characters the two begin with together."""
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
