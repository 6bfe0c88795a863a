"""What can go wrong in a way that a person should read about.

Every fault a user may meet becomes a `ChatError`: a stable `code` for programs and translations, and one plain
English sentence that says what happened and what to do. Tracebacks stay in the log.
"""

from __future__ import annotations


class ChatError(Exception):
    """A fault told in one sentence.

    `code` is stable and snake_case; `message` is the English sentence; `details` are the values the sentence holds,
    for programs that do not read sentences.
    """

    def __init__(self, code: str, message: str, **details: str | int | float) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


def package_missing(error: ImportError) -> ChatError:
    """The fault of a package that cannot be imported."""
    name = str(error.name)
    return ChatError(
        "package_missing", f"The package {name} is not installed; run `make install` to get it.", package=name
    )
