"""Pictures as PNG, whole ones and fake ones, made without a library."""

import base64
import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
END = (b"IEND", b"")


def chunk(kind: bytes, content: bytes, checksum: int | None = None) -> bytes:
    """Return a chunk of a PNG."""
    checksum = zlib.crc32(kind + content) if checksum is None else checksum
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def header(width: int = 1, height: int = 1, bits: int = 8, colours: int = 2) -> tuple[bytes, bytes]:
    """Return the type and content of a header."""
    return b"IHDR", struct.pack(">2I5B", width, height, bits, colours, 0, 0, 0)


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
