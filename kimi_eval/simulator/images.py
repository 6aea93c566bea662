"""Image: a picture sent as a data URL, its size read from its header and its price in tokens."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache

MAX_PIXELS = 150_000_000  # A small file that declares more is a decompression bomb.
_DATA_URL = re.compile(r"data:(image/[a-z0-9.+-]+);base64,(.*)", re.DOTALL | re.IGNORECASE)


class UnreadableImage(ValueError):
    """The data URL holds no image that can be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Image:
    """Width and height in pixels; `digest` tells two images apart."""

    width: int
    height: int
    digest: str

    def pads(self) -> int:
        """Image tokens: patches of 14 px merged 2 x 2, never upscaled (vLLM kimi_k3 mm_preprocess)."""
        patches = max(1, (self.width // 14) * (self.height // 14))
        scale = min(1.0, math.sqrt(65_536 / patches), 7168 / self.width, 7168 / self.height)
        width, height = max(1, int(self.width * scale)), max(1, int(self.height * scale))
        return math.ceil(width / 28) * math.ceil(height / 28)


@lru_cache(maxsize=256)
def read_image(url: str) -> Image:
    """The image in a data URL.

    Raises: UnreadableImage.
    """
    match = _DATA_URL.fullmatch(url)
    if match is None:
        raise UnreadableImage("only base64 data URLs of images are supported")
    try:
        data = base64.b64decode(match[2], validate=True)
    except (binascii.Error, ValueError) as problem:
        raise UnreadableImage("invalid base64 in the image data URL") from problem
    width, height = _size(data)
    if width < 1 or height < 1:
        raise UnreadableImage("the image has no pixels")
    if width * height > MAX_PIXELS:
        raise UnreadableImage(f"the image has too many pixels: {width}x{height}")
    return Image(width, height, hashlib.sha256(data).hexdigest()[:16])


def _size(data: bytes) -> tuple[int, int]:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return _png_size(data)
    if data.startswith(b"\xff\xd8"):
        return _jpeg_size(data)
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        width, height = struct.unpack("<HH", data[6:10])
        return width, height
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        return 512, 512
    raise UnreadableImage("unsupported or corrupt image data")


def _png_size(data: bytes) -> tuple[int, int]:
    if len(data) < 33 or data[12:16] != b"IHDR" or zlib.crc32(data[12:29]) != int.from_bytes(data[29:33], "big"):
        raise UnreadableImage("corrupt PNG header")
    width, height = struct.unpack(">II", data[16:24])
    if width * height <= MAX_PIXELS and b"IEND" not in data[-12:]:
        raise UnreadableImage("the PNG is cut short")
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int]:
    position = 2
    while position + 9 <= len(data):
        if data[position] != 0xFF:
            break
        marker = data[position + 1]
        length = int.from_bytes(data[position + 2 : position + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return width, height
        position += 2 + max(length, 2)
    raise UnreadableImage("corrupt JPEG data")
