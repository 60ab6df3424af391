"""Read the size of a picture, and refuse all but a plain PNG: a record may come from anybody."""

import struct
import zlib

MAX_PNG = 200_000  # bytes
MAX_SIDE = 2_000  # pixels
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SMALLEST = 12  # bytes of a chunk without content: length, type, checksum
_HEADER = 13  # bytes that an IHDR holds
# By colour type, the bits of a sample (https://www.w3.org/TR/png-3/#11IHDR).
_BITS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
# No animation, and nothing that a viewer would have to unpack besides the pixels.
_KINDS = frozenset(
    b"IHDR PLTE IDAT IEND tRNS gAMA cHRM sRGB sBIT bKGD pHYs tIME tEXt".split()
)  # fmt: skip


def png_size(data: bytes) -> tuple[int, int]:
    """Return a picture's width and height in pixels.

    Args:
        data: the picture, as a PNG.

    Raises:
        ValueError: it is not a PNG, is damaged, holds more than one still picture, or is larger
            than `MAX_PNG` bytes or `MAX_SIDE` pixels.
    """
    if len(data) > MAX_PNG:
        raise ValueError(f"a picture takes at most {MAX_PNG:,} bytes")
    if not data.startswith(_SIGNATURE):
        raise ValueError("the picture is not a PNG")
    kinds, size, place = list[bytes](), (0, 0), len(_SIGNATURE)
    while place < len(data) and kinds[-1:] != [b"IEND"]:
        kind, content, place = _chunk(data, place)
        if (kind == b"IHDR") != (not kinds):
            raise ValueError("a PNG starts with its one header")
        if kind == b"IHDR":
            size = _size(content)
        kinds.append(kind)
    if kinds[-1:] != [b"IEND"] or place != len(data) or b"IDAT" not in kinds:
        raise ValueError("the picture is incomplete, or something follows it")
    return size


def _chunk(data: bytes, start: int) -> tuple[bytes, bytes, int]:
    """Return a chunk's type and content, and where the next one starts."""
    if start + _SMALLEST > len(data):
        raise ValueError("the picture is cut off")
    length, kind = struct.unpack_from(">I4s", data, start)
    end = start + _SMALLEST + length
    if end > len(data):
        raise ValueError("the picture is cut off")
    if kind not in _KINDS:
        raise ValueError("the picture holds more than its pixels")
    if zlib.crc32(data[start + 4 : end - 4]) != struct.unpack_from(">I", data, end - 4)[0]:
        raise ValueError("the picture is damaged")
    return kind, data[start + 8 : end - 4], end


def _size(header: bytes) -> tuple[int, int]:
    if len(header) != _HEADER:
        raise ValueError("the picture's header is damaged")
    width, height, bits, colours, packing, filters, interlacing = struct.unpack(">2I5B", header)
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        raise ValueError(f"a picture's sides take 1 to {MAX_SIDE:,} pixels")
    if bits not in _BITS.get(colours, ()) or packing or filters or interlacing > 1:
        raise ValueError("the picture's header is damaged")
    return width, height
