"""How servers that speak the OpenAI protocol differ: what they say of their model, and which fields they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ModelInfo:
    """What a server says of its model; None where it does not say. `vllm`: whether the server is a vLLM."""

    name: str
    context_tokens: int | None = None
    vision: bool | None = None
    vllm: bool = False


def model_info(entry: dict[str, Any]) -> ModelInfo:
    """An entry of `/v1/models`.

    vLLM gives `max_model_len`; llama.cpp gives `meta.n_ctx` (of one slot) and what the model takes in.
    """
    meta, architecture = entry.get("meta"), entry.get("architecture")
    length = entry.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else None)
    takes = architecture.get("input_modalities") if isinstance(architecture, dict) else None
    return ModelInfo(
        name=str(entry["id"]),
        context_tokens=length if isinstance(length, int) else None,
        vision="image" in takes if isinstance(takes, list) else None,
        vllm=entry.get("owned_by") == "vllm",
    )


@dataclass
class Dialect:
    """Which request fields this server takes: hosted ones refuse what is local servers' own."""

    thinking_switch: bool = True
    completion_tokens_name: bool = False

    def fields(self, max_tokens: int) -> dict[str, Any]:
        """The request fields that depend on the server."""
        fields: dict[str, Any] = {"max_completion_tokens" if self.completion_tokens_name else "max_tokens": max_tokens}
        if self.thinking_switch:
            fields["chat_template_kwargs"] = {"enable_thinking": False}
        return fields

    def adapt(self, status: int, complaint: str) -> bool:
        """Leave out or rename the field that the server complains of; whether there is something to send anew."""
        if status not in (400, 422):
            return False
        if self.thinking_switch and "chat_template_kwargs" in complaint:
            self.thinking_switch = False
            return True
        if not self.completion_tokens_name and "max_tokens" in complaint and "max_completion_tokens" in complaint:
            # vLLM names both fields when the prompt leaves too little room: that is no complaint about the name.
            self.completion_tokens_name = "unsupported" in complaint.lower()
            return self.completion_tokens_name
        return False
