"""What was said: finished turns, the history as the model sees it, and its token budget. Imports nothing of ours."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MESSAGE_OVERHEAD = 8
"""Tokens a chat template puts around one message, rounded up."""


@dataclass(frozen=True)
class ImagePart:
    """An image as it travels: a data URL, and how many tokens the model makes of it."""

    data_url: str
    tokens: int


@dataclass(frozen=True)
class Exchange:
    """One finished turn: what the user said and what they heard of the reply."""

    user_text: str
    reply: str
    image: ImagePart | None = None


def estimate_tokens(text: str) -> int:
    """A cautious guess of how many tokens `text` has: one for each CJK character, one for three others."""
    wide = sum(1 for char in text if ord(char) >= 0x2E80)
    return wide + math.ceil((len(text) - wide) / 3)


def user_message(text: str, image: ImagePart | None) -> dict[str, Any]:
    """The user's message in the OpenAI form; the image comes before the text, as the model was trained."""
    if image is None:
        return {"role": "user", "content": text}
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": image.data_url}}]
    if text:
        parts.append({"type": "text", "text": text})
    return {"role": "user", "content": parts}


@dataclass
class Conversation:
    """The finished turns of one person, and which of them the model still sees.

    When the history outgrows `budget` tokens, its images are replaced by `image_word`, all at once; when that is not
    enough, it is cut to half the budget, at once rather than one turn at a time: every such change empties the server's
    prefix cache for what stands behind it. Of a prompt's images at most `most_images` are sent; when there are more,
    the older half is replaced.
    """

    budget: int = 8000
    exchanges: list[Exchange] = field(default_factory=list)
    first_visible: int = 0
    images_from: int = 0
    """Images of exchanges before this one are only a word."""
    most_images: int = 4
    image_word: str = "[image]"

    def add(self, exchange: Exchange) -> None:
        """Keep a finished turn."""
        self.exchanges.append(exchange)

    def replace(self, exchange: Exchange, reply: str) -> Exchange | None:
        """Give `exchange` another reply, or take it out of the history when `reply` is empty; returns the new one.

        An exchange that is no longer there stays away.
        """
        for index, known in enumerate(self.exchanges):
            if known is exchange:
                if not reply:
                    del self.exchanges[index]
                    self.first_visible -= index < self.first_visible
                    self.images_from -= index < self.images_from
                    return None
                self.exchanges[index] = dataclasses.replace(exchange, reply=reply)
                return self.exchanges[index]
        return None

    def clear(self) -> None:
        """Forget everything."""
        self.exchanges.clear()
        self.first_visible = self.images_from = 0

    def messages(
        self, prefix: str, text: str, image: ImagePart | None, examples: Sequence[tuple[str, str]] = ()
    ) -> list[dict[str, Any]]:
        """The prompt of the next turn: `prefix` unchanged and first, visible history, then this turn.

        `examples`, (user, reply) each, belong to the persona: always the same, they stand right behind the prefix and
        are cached with it.
        """
        shown = [Exchange(user, reply) for user, reply in examples]
        fixed = _cost(prefix) + _cost(text) + (image.tokens if image else 0) + sum(map(_exchange_cost, shown))
        self._fit_images(self.most_images - (image is not None))
        if fixed + sum(self._costs()[self.first_visible :]) > self.budget:
            self.images_from = len(self.exchanges)
            costs = self._costs()
            if fixed + sum(costs[self.first_visible :]) > self.budget:
                self._cut(costs, max(0, self.budget - fixed) // 2)
        messages: list[dict[str, Any]] = [{"role": "system", "content": prefix}]
        for exchange in [*shown, *self._as_sent()[self.first_visible :]]:
            messages.append(user_message(exchange.user_text, exchange.image))
            messages.append({"role": "assistant", "content": exchange.reply})
        messages.append(user_message(text, image))
        return messages

    def hide_images(self) -> bool:
        """Replace every image of the history by a word, after a server said there are too many.

        False when none is left to replace.
        """
        if not any(exchange.image for exchange in self._as_sent()[self.first_visible :]):
            return False
        self.images_from = len(self.exchanges)
        return True

    def shed(self) -> bool:
        """Hide the older half of what the model sees, after a server said the prompt is too long.

        False when nothing is left to hide.
        """
        visible = len(self.exchanges) - self.first_visible
        if visible == 0:
            return False
        self.first_visible += (visible + 1) // 2
        return True

    def _as_sent(self) -> list[Exchange]:
        """The exchanges with the word in the place of the images that are not sent any more."""
        return [
            dataclasses.replace(one, user_text=f"{self.image_word} {one.user_text}".strip(), image=None)
            if one.image is not None and index < self.images_from
            else one
            for index, one in enumerate(self.exchanges)
        ]

    def _costs(self) -> list[int]:
        return [_exchange_cost(exchange) for exchange in self._as_sent()]

    def _fit_images(self, most: int) -> None:
        """Replace the older half of the history's images when there are more than `most`."""
        start = max(self.first_visible, self.images_from)
        seen = [index for index, one in enumerate(self.exchanges) if index >= start and one.image is not None]
        if len(seen) > most:
            kept = max(0, most) // 2
            self.images_from = seen[-kept] if kept else seen[-1] + 1

    def _cut(self, costs: Sequence[int], target: int) -> None:
        while self.first_visible < len(costs) and sum(costs[self.first_visible :]) > target:
            self.first_visible += 1


def _cost(text: str) -> int:
    return estimate_tokens(text) + MESSAGE_OVERHEAD


def _exchange_cost(exchange: Exchange) -> int:
    image = exchange.image.tokens if exchange.image else 0
    return _cost(exchange.user_text) + _cost(exchange.reply) + image


def heard_text(clauses: Sequence[tuple[str, float]], heard_seconds: float) -> str:
    """What a listener heard of `clauses`, each (text, seconds of its audio), after `heard_seconds` of sound.

    Whole clauses first; within the last one, by proportion of its audio, cut back to a whole word. A clause without
    sound was not heard, unless one behind it was.
    """
    heard: list[str] = []
    silent: list[str] = []
    left = heard_seconds
    for text, seconds in clauses:
        if seconds == 0:
            silent.append(text)
            continue
        share = min(1.0, left / seconds)
        part = _whole_words(text, math.floor(len(text) * share))
        if part:
            heard += [*silent, part]
            silent.clear()
        left -= seconds
        if left <= 0:
            break
    return "".join(heard).rstrip()


def _whole_words(text: str, length: int) -> str:
    """The first `length` characters of `text`, without a Latin word cut in two."""
    if length >= len(text):
        return text
    cut = length
    while cut > 0 and _is_latin_word(text[cut - 1]) and _is_latin_word(text[cut]):
        cut -= 1
    return text[:cut]


def _is_latin_word(char: str) -> bool:
    return char.isalnum() and ord(char) < 0x2E80
