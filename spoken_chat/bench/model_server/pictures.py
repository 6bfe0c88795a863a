"""Images of the sizes that the page sends: drawn here, so that nothing has to be shipped."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Final

from PIL import Image

from spoken_chat.conversation import ImagePart
from spoken_chat.images import prepare_image

SHAPES: Final = ((1600, 1200), (1200, 1600), (1920, 1080))
"""Width and height of photographs as cameras and screens make them."""

MIN_PIXELS: Final = 50_176
MAX_PIXELS: Final = 200_704


def parts(shapes: Sequence[tuple[int, int]] = SHAPES) -> list[ImagePart]:
    """One image of each shape, prepared as the app prepares it."""
    found = []
    for number, (width, height) in enumerate(shapes):
        drawn = Image.linear_gradient("L").resize((width, height)).rotate(90 * number)
        file = io.BytesIO()
        Image.merge("RGB", (drawn, drawn.transpose(Image.Transpose.FLIP_LEFT_RIGHT), drawn)).save(file, "JPEG")
        prepared = prepare_image(file.getvalue(), min_pixels=MIN_PIXELS, max_pixels=MAX_PIXELS, max_bytes=20_000_000)
        found.append(prepared.part)
    return found
