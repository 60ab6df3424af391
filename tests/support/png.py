"""Pictures as PNG, whole ones and fake ones, made without a library."""

import base64
import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
END = (b"IEND", b"")


def chunk(kind: bytes, content: bytes) -> bytes:
    """Return a chunk of a PNG."""
    end = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + end


def header(width: int = 1, height: int = 1) -> tuple[bytes, bytes]:
    """Return the type and content of a header."""
    return b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)


def pixels(width: int = 1, height: int = 1, colour: bytes = b"\x30\x60\xb0") -> tuple[bytes, bytes]:
    """Return the type and content of the pixels, all of one colour."""
    return b"IDAT", zlib.compress((b"\0" + width * colour) * height)


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    """Return a PNG of some chunks."""
    return SIGNATURE + b"".join(chunk(kind, content) for kind, content in chunks)


def picture(width: int = 1, height: int = 1) -> str:
    """Return a whole picture as base64."""
    made = png(header(width, height), pixels(width, height), END)
    return base64.b64encode(made).decode()


PNG = picture()
