"""What of a streamed reply is meant for the listener: thinking and the persona's mood tag are taken out.

Both filters are pure, give the same output however the stream is cut, and hold back only what may still turn out to
be a tag: a reply that does not begin with a bracket flows at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_OPEN_THINK: Final = "<think>"
_CLOSE_THINK: Final = "</think>"

_OPENING: Final = "[【(（［"
_CLOSING: Final = "]】)）］"
_MOST_SPACES: Final = 4
"""More spaces than this inside a bracket and it is not a tag; so that the text held back is bounded."""


class ThinkFilter:
    """Drops `<think>…</think>`, in any case of letters, and the white space at the start of the reply.

    A block that never closes swallows the rest: nothing else tells where it ends. A `</think>` without its opening
    tag (chat templates that open the block themselves) is dropped alone: what stands before it was given out already
    when it arrived, and holding every reply back until its end to be sure would cost the whole streaming. So such
    thinking is heard unless the server's own parser takes it out.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._thinking = False
        self._started = False

    def feed(self, text: str) -> str:
        """The reply's text that is certain once `text` has arrived."""
        self._pending += text
        given = []
        while self._pending:
            tags = (_CLOSE_THINK,) if self._thinking else (_OPEN_THINK, _CLOSE_THINK)
            at, tag = _first_tag(self._pending, tags)
            if not self._thinking:
                given.append(self._pending[:at])
            self._pending = self._pending[at + len(tag) :]
            if not tag:
                break
            self._thinking = tag == _OPEN_THINK
        return self._begun("".join(given))

    def finish(self) -> str:
        """What was held back at the end of the reply."""
        rest = "" if self._thinking else self._pending
        self._pending = ""
        return self._begun(rest)

    def _begun(self, text: str) -> str:
        if not self._started:
            text = text.lstrip()
            self._started = bool(text)
        return text


def _first_tag(text: str, tags: tuple[str, ...]) -> tuple[int, str]:
    """Where the first of `tags` is in `text`; else, with an empty tag, where what may become one begins."""
    lowered = _lowered(text)
    at = lowered.find("<")
    while at >= 0:
        for tag in tags:
            if lowered.startswith(tag, at):
                return at, tag
            if tag.startswith(lowered[at:]):
                return at, ""
        at = lowered.find("<", at + 1)
    return len(text), ""


def _lowered(text: str) -> str:
    """`text` with A to Z in lower case and of the same length, which str.lower() does not promise."""
    return "".join(char.lower() if char.isascii() else char for char in text)


class TagReader:
    """Reads the mood tag a reply should begin with, such as `[happy]`, and keeps every tag of the set out of the text.

    Square, round and full-width brackets count, with spaces inside, in any case of letters. A bracket with anything
    else in it is text, also at the start (`[sigh]`).
    """

    def __init__(self, tags: Iterable[str]) -> None:
        self._tags = {tag.casefold(): tag for tag in tags}
        self._pending = ""
        self._after_space = True
        self._skips_space = True
        self.tag: str | None = None
        """The tag the reply began with, as it is written in the set."""
        self.compliant: bool | None = None
        """Whether the reply began with a tag of the set; None until that is known."""

    def feed(self, text: str) -> str:
        """The reply's text that is certain once `text` has arrived."""
        self._pending += text
        return self._read(ended=False)

    def finish(self) -> str:
        """What was held back at the end of the reply."""
        return self._read(ended=True)

    def _read(self, ended: bool) -> str:
        given = ""
        while self._pending:
            if self._pending[0] not in _OPENING:
                plain = next((at for at, char in enumerate(self._pending) if char in _OPENING), len(self._pending))
                given += self._take(plain)
                continue
            length, tag = self._match(self._pending)
            if tag is not None:
                self._drop(length, tag)
            elif length or ended:
                given += self._take(1)
            else:
                break
        return given

    def _take(self, length: int) -> str:
        """The next `length` characters as text, without the white space that a dropped tag leaves over."""
        text, self._pending = self._pending[:length], self._pending[length:]
        if self._skips_space:
            text = text.lstrip()
        if text:
            self._skips_space = False
            self._after_space = text[-1].isspace()
            self.compliant = bool(self.compliant)
        return text

    def _drop(self, length: int, tag: str) -> None:
        self._pending = self._pending[length:]
        self._skips_space = self._after_space
        if self.compliant is None:
            self.tag, self.compliant = tag, True

    def _match(self, text: str) -> tuple[int, str | None]:
        """Length and name of the tag that `text` begins with: (1, None) if none, (0, None) if not yet known."""
        inner = text[1:]
        word = inner.lstrip(" ")
        if len(inner) - len(word) > _MOST_SPACES:
            return 1, None
        end = next((at for at, char in enumerate(word) if char in _CLOSING), None)
        if end is not None:
            named = word[:end].rstrip(" ")
            tag = self._tags.get(named.casefold())
            if tag is None or end - len(named) > _MOST_SPACES:
                return 1, None
            return len(text) - len(word) + end + 1, tag
        begun = word.rstrip(" ")
        spaces = len(word) - len(begun)
        if spaces > _MOST_SPACES or not any(known.startswith(begun.casefold()) for known in self._tags):
            return 1, None
        return 0, None
