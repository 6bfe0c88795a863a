"""What is wrong with a client's event."""

from __future__ import annotations

from spoken_chat.errors import ChatError


class BadEvent(ChatError):
    """A client's event that cannot be obeyed; `param` names the field at fault, where it is one."""

    def __init__(self, code: str, message: str, param: str | None = None, **details: str | int | float) -> None:
        super().__init__(code, message, **details)
        self.param = param
