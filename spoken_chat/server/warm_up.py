"""What a model server does before the first turn: the prefixes are read and every kernel has run once."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import Final

from PIL import Image

from spoken_chat.conversation import Conversation, Exchange, ImagePart
from spoken_chat.errors import ChatError
from spoken_chat.images import prepare_image
from spoken_chat.llm import Message, TextDelta
from spoken_chat.llm.cached_prefix import CachedPrefix
from spoken_chat.llm.openai_chat import OpenAIChat
from spoken_chat.persona import Persona
from spoken_chat.server.padding import padding_for
from spoken_chat.settings import Settings

HELLO: Final = {"zh": "你好！", "en": "Hello!"}
AGAIN: Final = {
    "zh": ("嗯，你在干嘛呢？", "那挺好的，我先去忙一下，回头再跟你聊。"),
    "en": ("What are you doing?", "I see!"),
}
LOOK: Final = {"zh": "你看，这是什么？", "en": "Look, what is this?"}

COMMON_SHAPES: Final = ((4, 3), (3, 4), (16, 9), (9, 16), (1, 1))
"""Width to height of what cameras and screens make; each is one number of image tokens."""

ENOUGH_WORDS: Final = 6
"""Pieces of a reply that are waited for: by then every kernel of a reply has run."""


async def read_prefix(chat: OpenAIChat, persona: Persona, block: int | None) -> None:
    """Have a vLLM server read the prefix of `persona`, and note how much of it a warm cache holds.

    `block`: tokens of the blocks that a prefix is cached in whole ones of, to pad it to them; None pads nothing.
    Raises ChatError.
    """
    messages = opening(persona)
    padding = ""
    if block is not None:
        padding = await padding_for(chat, messages, await chat.count(messages, opened=False), block)
    chat.prefixes.hold(persona.prefix, CachedPrefix(None, padding))
    await chat.read(messages)
    spoken = [*messages[:-1], {"role": "user", "content": HELLO[persona.language]}]
    usage = await chat.read(spoken)  # finds what a turn will find
    if usage is not None:
        chat.prefixes.hold(persona.prefix, CachedPrefix(usage.cached_tokens, padding))


async def warm_up(chat: OpenAIChat, persona: Persona, settings: Settings) -> None:
    """A first turn, a turn with history, and one with an image of each common size. Raises ChatError."""
    talk = Conversation()
    language = persona.language

    def prompt(text: str, image: ImagePart | None = None) -> list[Message]:
        return talk.messages(persona.prefix, text, image, persona.examples)

    await _answer(chat, prompt(HELLO[language]))
    talk.add(Exchange(HELLO[language], persona.greeting))
    for text in AGAIN[language]:
        await _answer(chat, prompt(text))
        talk.add(Exchange(text, persona.greeting))
    if chat.vision is False:
        return
    try:
        for image in common_images(settings):
            await _answer(chat, prompt(LOOK[language], image))
    except ChatError as error:
        if error.code != "llm_no_vision":  # it serves text: the client knows that now
            raise


def opening(persona: Persona) -> list[Message]:
    """The prompt of a first turn up to where the user's words come: the same for everybody."""
    return Conversation().messages(persona.prefix, "", None, persona.examples)


def common_images(settings: Settings) -> Iterator[ImagePart]:
    """One image of each common shape, as large as the settings let it be; the smallest one too."""
    for width, height in COMMON_SHAPES:
        yield _image(width * 120, height * 120, settings)
    yield _image(160, 120, settings)


def _image(width: int, height: int, settings: Settings) -> ImagePart:
    file = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).convert("RGB").save(file, "PNG")
    return prepare_image(
        file.getvalue(),
        min_pixels=settings.image_min_pixels,
        max_pixels=settings.image_max_pixels,
        max_bytes=settings.image_max_bytes,
    ).part


async def _answer(chat: OpenAIChat, messages: Sequence[Message]) -> None:
    """The beginning of one reply."""
    pieces = 0
    async with aclosing(chat.stream(messages)) as events:
        async for event in events:
            pieces += isinstance(event, TextDelta)
            if pieces == ENOUGH_WORDS:
                return
