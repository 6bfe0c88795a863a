"""An image goes out as the model's processor wants it, or is refused with one sentence before any request."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from spoken_chat import images
from spoken_chat.errors import ChatError
from spoken_chat.images import PreparedImage, fit_size, prepare_image

LIMITS = {"min_pixels": 50_176, "max_pixels": 200_704}
RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def prepare(source: bytes | Path, **changes: Any) -> PreparedImage:
    return prepare_image(source, **{**LIMITS, "max_bytes": 20_000_000, **changes})


def encode(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def sent_bytes(prepared: PreparedImage) -> bytes:
    head, _, data = prepared.data_url.partition(",")
    assert head == "data:image/jpeg;base64"
    return base64.b64decode(data, validate=True)


def sent(prepared: PreparedImage) -> Image.Image:
    image = Image.open(io.BytesIO(sent_bytes(prepared)))
    assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (prepared.width, prepared.height))
    return image


def colour(image: Image.Image, across: float = 0.5, down: float = 0.5) -> tuple[int, ...]:
    pixel = image.getpixel((int(image.width * across), int(image.height * down)))
    assert isinstance(pixel, tuple)
    return pixel


def near(one: tuple[int, ...], other: tuple[int, ...], tolerance: int = 6) -> bool:
    return all(abs(a - b) <= tolerance for a, b in zip(one, other, strict=True))


def code_of(source: bytes | Path, **changes: Any) -> str:
    with pytest.raises(ChatError) as caught:
        prepare(source, **changes)
    assert "\n" not in caught.value.message
    assert caught.value.message.endswith(".")
    return caught.value.code


def corners(width: int = 600, height: int = 300) -> Image.Image:
    """Red top left, green top right, blue below."""
    image = Image.new("RGB", (width, height), BLUE)
    image.paste(RED, (0, 0, width // 2, height // 2))
    image.paste(GREEN, (width // 2, 0, width, height // 2))
    return image


def png_of_claimed_size(width: int, height: int, content: bytes = b"") -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(content)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


# Sizes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # Worked out by hand from the algorithm in transformers' image_processing_qwen2_vl.smart_resize, factor 32.
        ((512, 384), (512, 384)),
        ((500, 400), (512, 384)),
        ((4032, 3024), (512, 384)),
        ((3024, 4032), (384, 512)),
        ((1920, 1080), (576, 320)),
        ((1000, 1000), (448, 448)),
        ((100, 100), (224, 224)),
        ((17, 17), (224, 224)),
        ((240, 240), (256, 256)),
        ((6000, 32), (6016, 32)),
        ((300, 17), (960, 64)),
    ],
)
def test_sizes_are_those_of_the_models_own_processor(source: tuple[int, int], expected: tuple[int, int]) -> None:
    assert fit_size(*source, **LIMITS) == expected


@settings(deadline=None)
@given(
    width=st.integers(17, 60_000),
    height=st.integers(17, 60_000),
    min_pixels=st.integers(1024, 400_000),
    room=st.integers(4, 40),
)
def test_any_size_becomes_multiples_of_32_within_bounds_and_then_stays(
    width: int, height: int, min_pixels: int, room: int
) -> None:
    limits = {"min_pixels": min_pixels, "max_pixels": min_pixels * room}
    try:
        size = fit_size(width, height, **limits)
    except ChatError as error:
        # Rounding can double how narrow an image is, not more; a side vanishes where a strip of 32 would be too large.
        narrow = max(width, height) / min(width, height)
        reasons = {"image_too_narrow": narrow > 100, "image_too_small": narrow * 32 * 32 >= limits["max_pixels"]}
        assert reasons[error.code]
        return
    assert size[0] % 32 == size[1] % 32 == 0
    assert min(size) >= 32
    narrow = max(width, height) / min(width, height)
    if narrow * 32 * 32 <= min_pixels:
        assert min_pixels <= size[0] * size[1] <= limits["max_pixels"]
        assert fit_size(*size, **limits) == size


@settings(deadline=None)
@given(width=st.integers(17, 60_000), height=st.integers(17, 60_000))
def test_with_the_apps_own_bounds_every_accepted_shape_is_within_them(width: int, height: int) -> None:
    try:
        size = fit_size(width, height, **LIMITS)
    except ChatError:
        assume(False)
        raise
    assert LIMITS["min_pixels"] <= size[0] * size[1] <= LIMITS["max_pixels"]
    assert fit_size(*size, **LIMITS) == size
    assert fit_size(height, width, **LIMITS) == size[::-1]


def test_tokens_are_one_for_each_32_by_32_pixels() -> None:
    prepared = prepare(encode(Image.new("RGB", (4032, 3024))))
    assert (prepared.width, prepared.height, prepared.tokens) == (512, 384, 192)
    assert (prepared.source_width, prepared.source_height) == (4032, 3024)
    assert prepared.part.tokens == 192
    assert prepared.part.data_url == prepared.data_url
    assert len(sent_bytes(prepared)) < 20_000


# Pixels --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_the_image_is_sent_upright_as_a_viewer_shows_it(orientation: int, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encode(corners(), kind, exif=exif)
    shown = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    prepared = prepare(data)
    image = sent(prepared)
    for across in (0.25, 0.75):
        for down in (0.25, 0.75):
            assert near(colour(image, across, down), colour(shown, across, down), 12)
    assert (prepared.source_width, prepared.source_height) == shown.size
    assert (image.width > image.height) == (shown.width > shown.height)


def test_a_square_image_is_turned_too() -> None:
    exif = Image.Exif()
    exif[0x0112] = 3
    assert near(colour(sent(prepare(encode(corners(400, 400), "JPEG", exif=exif))), 0.75, 0.75), RED, 12)


def test_nothing_of_the_metadata_is_sent() -> None:
    exif = Image.Exif()
    exif[0x010E] = "secret place"
    exif[0x0112] = 6
    image = sent(prepare(encode(corners(), "JPEG", exif=exif, comment=b"secret words", icc_profile=b"secret profile")))
    assert not image.getexif()
    assert not {"comment", "icc_profile", "exif"} & set(image.info)


def with_alpha(mode: str) -> Image.Image:
    """The left half opaque grey, the right half transparent."""
    image = Image.new("RGBA", (400, 400), (0, 0, 0, 0))
    image.paste((100, 100, 100, 255), (0, 0, 200, 400))
    return image.convert(mode)


@pytest.mark.parametrize(("mode", "kind"), [("RGBA", "PNG"), ("LA", "PNG"), ("RGBA", "WEBP"), ("RGBA", "TIFF")])
def test_transparent_becomes_white(mode: str, kind: str) -> None:
    options = {"lossless": True} if kind == "WEBP" else {}
    image = sent(prepare(encode(with_alpha(mode), kind, **options)))
    assert near(colour(image, 0.25), (100, 100, 100))
    assert near(colour(image, 0.75), WHITE)


@pytest.mark.parametrize("mode", ["P", "L", "RGB"])
@pytest.mark.parametrize("kind", ["PNG", "GIF"])
def test_a_transparent_colour_becomes_white(mode: str, kind: str) -> None:
    if mode == "P":
        image = Image.new("P", (400, 400), 1)
        image.putpalette([100, 100, 100, 20, 20, 20])
        image.paste(0, (0, 0, 200, 400))
        data = encode(image, kind, transparency=1)
    else:
        image = Image.new(mode, (400, 400), 20 if mode == "L" else (20, 20, 20))
        image.paste(100 if mode == "L" else (100, 100, 100), (0, 0, 200, 400))
        if kind == "GIF":
            pytest.skip("a GIF is always a palette")
        data = encode(image, kind, transparency=20 if mode == "L" else (20, 20, 20))
    seen = sent(prepare(data))
    assert near(colour(seen, 0.25), (100, 100, 100))
    assert near(colour(seen, 0.75), WHITE)


@pytest.mark.parametrize(
    ("mode", "kind", "value", "seen"),
    [
        ("1", "PNG", 1, WHITE),
        ("L", "PNG", 90, (90, 90, 90)),
        ("CMYK", "JPEG", (0, 255, 255, 0), RED),
        ("CMYK", "TIFF", (0, 255, 255, 0), RED),
        ("LAB", "TIFF", (128, 128, 128), (119, 119, 119)),
        ("I;16", "PNG", 90 * 257, (90, 90, 90)),
        ("I;16", "TIFF", 90 * 257, (90, 90, 90)),
        ("I", "TIFF", 90, (90, 90, 90)),
        ("F", "TIFF", 0.5, (128, 128, 128)),
        ("RGB", "BMP", (10, 200, 30), (10, 200, 30)),
    ],
)
def test_any_mode_is_sent_as_rgb_with_the_same_look(mode: str, kind: str, value: Any, seen: tuple[int, ...]) -> None:
    data = encode(Image.new(mode, (400, 300), value), kind)
    assert near(colour(sent(prepare(data))), seen, 8)


def test_a_tiff_of_brightness_and_colour_difference_is_read() -> None:
    data = encode(Image.new("YCbCr", (400, 304), (76, 85, 255)), "TIFF", compression="jpeg")
    assert near(colour(sent(prepare(data))), RED, 8)


def test_a_deep_image_keeps_its_range_from_black_to_white() -> None:
    ramp = np.linspace(-5.0, 1000.0, 400, dtype=np.float32)[None, :].repeat(300, axis=0)
    ramp[0, 0] = np.nan
    image = sent(prepare(encode(Image.fromarray(ramp), "TIFF")))
    assert near(colour(image, 0.002), (0, 0, 0), 10)
    assert near(colour(image, 0.5), (127, 127, 127), 10)
    assert near(colour(image, 0.998), WHITE, 10)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_an_animation_is_seen_as_its_first_frame(kind: str) -> None:
    frames = [Image.new("RGB", (300, 300), shade) for shade in (RED, GREEN, BLUE)]
    data = encode(frames[0], kind, save_all=True, append_images=frames[1:])
    assert near(colour(sent(prepare(data))), RED, 12)


def test_strips_leave_no_seam_and_no_shift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "_STRIP_PIXELS", 20_000)
    across, down = np.meshgrid(np.linspace(0, 255, 3001), np.linspace(0, 255, 2003))
    source = Image.fromarray(np.stack([across, down, across], axis=2).astype(np.uint8))
    prepared = prepare(encode(source))
    wanted = source.resize((prepared.width, prepared.height), Image.Resampling.LANCZOS)
    assert np.abs(np.asarray(sent(prepared)).astype(int) - np.asarray(wanted).astype(int)).max() <= 4


# Refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"hello",
        b"\x00" * 4096,
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%PDF-1.7\n",
        b"\x00\x00\x00\x18ftypheic",
    ],
    ids=["text", "zeros", "SVG", "PDF", "HEIC"],
)
def test_what_is_no_image_is_refused(data: bytes) -> None:
    with pytest.raises(
        ChatError, match=r"not an image this app can read \(PNG, JPEG, WebP, GIF, BMP, TIFF\)"
    ) as caught:
        prepare(data)
    assert caught.value.code == "image_unreadable"


@pytest.mark.parametrize("kind", ["PPM", "ICO", "TGA", "EPS"])
def test_formats_beyond_the_safe_list_are_not_tried(kind: str) -> None:
    assert code_of(encode(Image.new("RGB", (64, 64)), kind)) == "image_unreadable"


def test_an_empty_or_missing_file_is_refused(tmp_path: Path) -> None:
    assert code_of(b"") == "image_empty"
    assert code_of(tmp_path / "nothing.png") == "image_missing"
    assert code_of(tmp_path) == "image_missing"


def test_a_file_over_the_limit_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.png"
    path.write_bytes(b"x" * 1001)
    monkeypatch.setattr(Path, "open", lambda *_a, **_k: pytest.fail("the file was opened"))
    assert code_of(path, max_bytes=1000) == "image_too_large"
    assert code_of(b"x" * 1001, max_bytes=1000) == "image_too_large"


def test_a_file_at_the_limit_is_read_from_its_path(tmp_path: Path) -> None:
    data = encode(corners())
    path = tmp_path / "fits.png"
    path.write_bytes(data)
    assert prepare(path, max_bytes=len(data)) == prepare(data)


@pytest.mark.parametrize("side", [10_001, 13_000, 20_000, 200_000])
def test_a_decompression_bomb_is_refused_by_its_header(side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "_decoded", lambda *_: pytest.fail("it was decoded"))
    assert code_of(png_of_claimed_size(side, side)) == "image_too_many_pixels"


def test_a_long_strip_is_refused() -> None:
    assert code_of(encode(Image.new("RGB", (20 * 201, 20)))) == "image_too_narrow"
    assert code_of(encode(Image.new("RGB", (20, 20 * 201)))) == "image_too_narrow"


def test_a_strip_that_rounding_makes_too_long_is_refused_before_the_server_does() -> None:
    with pytest.raises(ChatError) as caught:
        fit_size(47, 9400, min_pixels=1024, max_pixels=1_000_000)
    assert caught.value.code == "image_too_narrow"


def test_a_side_that_would_round_to_nothing_is_refused() -> None:
    assert code_of(encode(Image.new("RGB", (300, 16)))) == "image_too_small"
    assert code_of(encode(Image.new("RGB", (1, 1)))) == "image_too_small"
    assert code_of(encode(Image.new("RGB", (40 * 199, 40)))) == "image_too_small"


def test_the_advice_for_a_narrow_image_is_right() -> None:
    with pytest.raises(ChatError) as caught:
        fit_size(40 * 199, 40, **LIMITS)
    needed = caught.value.details["needed"]
    assert isinstance(needed, int)
    assert fit_size(40 * 199, needed, **LIMITS)[1] == 32


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_a_file_cut_short_is_refused(kind: str) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (300, 300, 3), dtype=np.uint8)
    data = encode(Image.fromarray(noise), kind)
    assert code_of(data[: len(data) // 2]) in ("image_damaged", "image_unreadable")


@pytest.mark.parametrize("kind", ["PNG", "BMP"])
def test_an_image_without_pixels_is_refused(kind: str) -> None:
    data = bytearray(png_of_claimed_size(0, 100) if kind == "PNG" else encode(Image.new("RGB", (64, 64)), kind))
    if kind == "BMP":
        data[18:22] = b"\0\0\0\0"
    assert code_of(bytes(data)) in ("image_empty", "image_unreadable", "image_damaged")


@settings(deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_prepared_or_refused_but_never_breaks_the_app(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"]))
    exif = Image.Exif()
    exif[0x0112] = 6
    options = {"exif": exif} if kind in ("PNG", "JPEG", "WEBP", "TIFF") else {}
    content = bytearray(encode(corners(64, 48), kind, **options))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        prepared = prepare(bytes(content))
    except ChatError as error:
        assert error.code.startswith("image_")
    else:
        assert prepared.tokens == prepared.width * prepared.height // 1024
