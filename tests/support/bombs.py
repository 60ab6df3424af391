"""Bodies that are small on the wire and grow to any size when they are decompressed."""

import gzip
import zlib

_BLOCK = 2**20
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


def deflated(megabytes: int) -> bytes:
    """Return so many megabytes of zeros as raw deflate, a thousandth of the size."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    first = packer.compress(bytes(_BLOCK)) + packer.flush(zlib.Z_FULL_FLUSH)
    return first * megabytes + b"\x03\x00"


def bombs(megabytes: int) -> dict[str, bytes]:
    """Return a bomb for each content coding; what none here can write is only labelled so."""
    once = _GZIP_HEAD + deflated(megabytes)
    return {
        "gzip": once,
        "gzip, gzip": gzip.compress(once),
        "deflate": deflated(megabytes),
        "identity, gzip": once,
    }
