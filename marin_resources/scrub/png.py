"""A PNG picture without its texts: programs write paths, users and commands into them.

In:  the bytes of a picture.   Out: its chunks that are pixels, palette, and colour space. (PNG, third edition, W3C.)
"""

from __future__ import annotations

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEPT = frozenset({b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"sBIT", b"pHYs"})


def without_texts(picture: bytes) -> bytes:
    """The picture without texts and metadata. Raises ValueError for one that is damaged."""
    if not picture.startswith(SIGNATURE):
        raise ValueError("it is no PNG")
    at, kept = len(SIGNATURE), [SIGNATURE]
    while at < len(picture):
        size, kind = int.from_bytes(picture[at : at + 4], "big"), picture[at + 4 : at + 8]
        end = at + 12 + size
        if end > len(picture):
            raise ValueError("it ends too early")
        if kind in KEPT:
            kept.append(picture[at:end])
        at = end
        if kind == b"IEND":
            return b"".join(kept)
    raise ValueError("it ends too early")
