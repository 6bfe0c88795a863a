"""Images in: bounded as the model server bounds them, and refused with one sentence where they cannot be used.

The size arithmetic is that of the model's own processor, `smart_resize` in transformers'
`models/qwen2_vl/image_processing_qwen2_vl.py` (Qwen3-VL uses it too, with a factor of 32: patches of 16 pixels, merged
2 x 2). Its result stays itself under that function, so the server does not scale our image a second time.

Memory: an image is decoded at its own size, four bytes per pixel at most, so 400 MB at the limit of 100 megapixels
(less for a JPEG, whose decoder scales down while it reads); everything after that works on strips of about a megapixel.
One image is decoded at a time, so that several listeners do not multiply this.
"""

from __future__ import annotations

import base64
import io
import math
import struct
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image, ImageCms, ImageOps
from PIL.ImageFile import ImageFile

from spoken_chat.conversation import ImagePart
from spoken_chat.errors import ChatError

PATCH: Final = 32
"""Side in pixels of what becomes one token: 16-pixel patches, merged 2 x 2."""

MAX_ASPECT: Final = 200
"""Longest side over shortest side that the model's processor accepts."""

MAX_SOURCE_PIXELS: Final = 100_000_000
"""Pixels of the largest image that is decoded at all; a few kB of PNG can claim billions."""

JPEG_QUALITY: Final = 90
FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")

_STRIP_PIXELS: Final = 1 << 20
_SUPERSAMPLING: Final = 2
"""Cheap averaging stops at this many times the final size; the good filter does the rest."""

_ORIENTATION: Final = 0x0112
_SIDEWAYS: Final = (5, 6, 7, 8)
_BROKEN: Final = (
    OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, TypeError, OverflowError, struct.error, zlib.error
)  # fmt: skip
"""What Pillow's decoders raise on damaged data, as its own fuzzers accept."""

_decoding = threading.Lock()


@dataclass(frozen=True)
class PreparedImage:
    """An image ready to send.

    `data_url` holds a JPEG without metadata, `width` x `height` pixels. `tokens` is what the model makes of the pixels;
    the two marks around an image belong to the message, as its role does. `source_width` x `source_height` is the
    original as a viewer shows it, so after rotation.
    """

    data_url: str
    width: int
    height: int
    tokens: int
    source_width: int
    source_height: int

    @property
    def part(self) -> ImagePart:
        """The image as a conversation keeps it."""
        return ImagePart(self.data_url, self.tokens)


def fit_size(width: int, height: int, *, min_pixels: int, max_pixels: int, patch: int = PATCH) -> tuple[int, int]:
    """The (width, height) in pixels that the model's processor gives an image, both multiples of `patch`.

    Each side is rounded to the nearest multiple; where the area is then out of bounds, the original is scaled to the
    bound and its sides are rounded inwards. Where `max_pixels` >= 4 * `min_pixels` the result is within both for every
    aspect ratio. Raises ChatError where the processor would refuse, or a side would become 0.
    """
    if min(width, height) < 1:
        raise ChatError("image_empty", "The image has no pixels; choose another one.")
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise _too_narrow(width, height)
    columns, rows = round(width / patch), round(height / patch)
    if not columns or not rows:
        raise _too_small(width, height, patch // 2 + 1)
    if columns * rows * patch**2 > max_pixels:
        shrink = math.sqrt(width * height / max_pixels)
        columns, rows = math.floor(width / shrink / patch), math.floor(height / shrink / patch)
        if not columns or not rows:
            raise _too_small(width, height, math.ceil(shrink * patch))
    elif columns * rows * patch**2 < min_pixels:
        grow = math.sqrt(min_pixels / (width * height))
        columns, rows = math.ceil(width * grow / patch), math.ceil(height * grow / patch)
    if max(columns, rows) > MAX_ASPECT * min(columns, rows):
        # Rounding made it narrower than the original, and the server would refuse what we send.
        raise _too_narrow(width, height)
    return columns * patch, rows * patch


def prepare_image(
    source: bytes | Path, *, min_pixels: int, max_pixels: int, max_bytes: int, patch: int = PATCH
) -> PreparedImage:
    """Make `source` (a file's content, or its path) ready for the model; blocks, so call it in a worker thread.

    Any mode becomes RGB, transparency becomes white, EXIF rotation is applied, an animation gives its first frame, and
    metadata is dropped. Raises ChatError when the image cannot be used.
    """
    data = _content(source, max_bytes)
    with _decoding, _open(data) as image:
        width, height = image.size
        if width * height > MAX_SOURCE_PIXELS:
            raise _too_many_pixels()
        size = fit_size(width, height, min_pixels=min_pixels, max_pixels=max_pixels, patch=patch)
        upright = _decoded(image, size)
    if upright.size != size:
        width, height = height, width
    return PreparedImage(
        data_url=f"data:image/jpeg;base64,{base64.b64encode(_jpeg(upright)).decode('ascii')}",
        width=upright.width,
        height=upright.height,
        tokens=(upright.width // patch) * (upright.height // patch),
        source_width=width,
        source_height=height,
    )


def _too_narrow(width: int, height: int) -> ChatError:
    return ChatError(
        "image_too_narrow",
        f"The image of {width} x {height} pixels is too narrow for the model, which takes one side up to {MAX_ASPECT} "
        "times the other; crop it.",
        width=width,
        height=height,
    )


def _too_small(width: int, height: int, needed: int) -> ChatError:
    return ChatError(
        "image_too_small",
        f"The image of {width} x {height} pixels is too small on one side for the model, which needs at least "
        f"{needed} pixels there; choose a larger or less narrow one.",
        width=width,
        height=height,
        needed=needed,
    )


def _too_many_pixels() -> ChatError:
    limit = MAX_SOURCE_PIXELS // 1_000_000
    return ChatError(
        "image_too_many_pixels", f"The image has more than {limit} megapixels; make it smaller.", megapixels=limit
    )


def _content(source: bytes | Path, max_bytes: int) -> bytes:
    """The bytes of `source`, never more than one byte over the limit in memory."""
    too_large = ChatError(
        "image_too_large",
        f"The image file is larger than {max_bytes / 1_000_000:g} MB; choose a smaller one.",
        megabytes=max_bytes / 1_000_000,
    )
    if isinstance(source, bytes):
        data = source
    else:
        if not source.is_file():
            raise ChatError("image_missing", f"There is no image file {source.name}; check the path.", file=source.name)
        try:
            if source.stat().st_size > max_bytes:
                raise too_large
            with source.open("rb") as file:
                data = file.read(max_bytes + 1)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ChatError(
                "image_missing", f"The image file {source.name} cannot be read ({reason}); check it.", file=source.name
            ) from error
    if len(data) > max_bytes:
        raise too_large
    if not data:
        raise ChatError("image_empty", "The image file is empty; choose another one.")
    return data


def _open(data: bytes) -> ImageFile:
    """Read the header only."""
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _too_many_pixels() from error
    except _BROKEN as error:
        raise ChatError(
            "image_unreadable", "The file is not an image this app can read (PNG, JPEG, WebP, GIF, BMP, TIFF)."
        ) from error


def _decoded(image: ImageFile, size: tuple[int, int]) -> Image.Image:
    """RGB pixels of `size` before rotation, then rotated as the EXIF data says."""
    try:
        # Lets a JPEG decoder scale down while it reads; other formats ignore it.
        image.draft("RGB", (size[0] * _SUPERSAMPLING, size[1] * _SUPERSAMPLING))
        image.load()
        small = _shrunk(image, size)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _too_many_pixels() from error
    except _BROKEN as error:
        raise ChatError("image_damaged", "The image file is damaged or cut short; choose another one.") from error
    small.getexif()[_ORIENTATION] = _orientation(image)
    return ImageOps.exif_transpose(small)


def _orientation(image: ImageFile) -> int:
    """The EXIF orientation of a loaded image, 1 (upright) where there is none that can be read."""
    try:
        value = image.getexif().get(_ORIENTATION, 1)
    except _BROKEN:
        return 1
    return value if isinstance(value, int) else 1


def _shrunk(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """`image` as RGB at `size`, strip by strip, so that no second full-size copy is ever made."""
    width, height = image.size
    factor = max(1, min(width // size[0], height // size[1]) // _SUPERSAMPLING)
    levels = _levels(image)
    averaged = Image.new("RGB", (-(-width // factor), -(-height // factor)))
    for top, strip in _strips(image, factor):
        averaged.paste(_rgb(strip, levels).reduce(factor), (0, top // factor))
    # The last row and column of an uneven division stand for fewer pixels; the box leaves the missing part out.
    return averaged.resize(size, Image.Resampling.LANCZOS, box=(0, 0, width / factor, height / factor))


def _strips(image: Image.Image, factor: int = 1) -> Iterator[tuple[int, Image.Image]]:
    """Horizontal strips of about `_STRIP_PIXELS`, each from its first row, in heights divisible by `factor`."""
    step = max(1, _STRIP_PIXELS // (image.width * factor)) * factor
    for top in range(0, image.height, step):
        yield top, image.crop((0, top, image.width, min(image.height, top + step)))


def _is_deep(mode: str) -> bool:
    """Whether a pixel of `mode` is one number of more than 8 bits."""
    return mode in ("I", "F") or mode.startswith("I;")


def _levels(image: Image.Image) -> tuple[float, float]:
    """The values shown as black and as white, for a mode of more than 8 bits.

    The full scale of the data where it can be told (0 to 1 for fractions, 8 or 16 bits), its extremes otherwise.
    """
    if not _is_deep(image.mode):
        return 0.0, 255.0
    if image.mode.startswith("I;16"):
        return 0.0, 65535.0
    low, high = math.inf, -math.inf
    for _, strip in _strips(image):
        values = np.asarray(strip)
        finite = values[np.isfinite(values)]
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    scales = (1.0, 255.0, 65535.0) if image.mode == "F" else (255.0, 65535.0)
    if 0 <= low <= high <= scales[-1]:
        return 0.0, next(scale for scale in scales if high <= scale)
    return (low, high) if low < high else (0.0, scales[0])


def _rgb(image: Image.Image, levels: tuple[float, float]) -> Image.Image:
    """Any mode as RGB; transparent pixels become white, as the model server paints them."""
    if _is_deep(image.mode):
        black, white = levels
        scaled = (np.asarray(image, dtype=np.float64) - black) * (255 / (white - black))
        return Image.fromarray(np.clip(np.nan_to_num(scaled).round(), 0, 255).astype(np.uint8)).convert("RGB")
    if image.has_transparency_data:
        pixels = image.convert("RGBA")
        ground = Image.new("RGBA", pixels.size, "white")
        return Image.alpha_composite(ground, pixels).convert("RGB")
    if image.mode == "LAB":
        lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
        return ImageCms.applyTransform(image, ImageCms.buildTransform(lab, srgb, "LAB", "RGB")) or image
    return image.convert("RGB")


def _jpeg(image: Image.Image) -> bytes:
    out = io.BytesIO()
    # Full colour resolution: small coloured text stays readable.
    image.save(out, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    return out.getvalue()
