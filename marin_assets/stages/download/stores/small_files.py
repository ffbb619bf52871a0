"""Lists and files of checksums, read whole and unpacked; and samples of names."""

from __future__ import annotations

import hashlib
import threading
import zlib
from collections.abc import Sequence

from marin_assets.stages.download.stores.access import StoreAccess, filesystem_for, is_web
from marin_assets.stages.download.stores.source_file import MissingFileError, SourceError
from marin_assets.stages.download.web.tally import Tally
from marin_resources.storage.files import read_bytes
from marin_resources.storage.paths import is_local

MOST_BYTES = 2**27


def read_text(path: str, access: StoreAccess, output_path: str) -> str:
    """The text of a file in any store, plain or compressed with gzip. Raises SourceError, and FileNotFoundError.

    `output_path`: the output of the step, whose requests share its limits.
    """
    content = _content(path, access, output_path)
    try:
        return (gunzipped(content, MOST_BYTES) if content.startswith(b"\x1f\x8b") else content).decode("utf-8-sig")
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise SourceError(
            f"{path!r} is damaged, cut or no text ({type(error).__name__}: {error}). Download it again."
        ) from error


def gunzipped(content: bytes, most_bytes: int) -> bytes:
    """The text of one or several gzip members, of at most `most_bytes`. Raises zlib.error, and EOFError if cut."""
    text = b""
    while content:
        inflate = zlib.decompressobj(31)
        text += inflate.decompress(content, most_bytes + 1 - len(text))
        if len(text) > most_bytes:
            raise EOFError(f"it has more than {most_bytes} bytes")
        if not inflate.eof:
            raise EOFError("its end is missing")
        content = inflate.unused_data
    return text


def sample(names: Sequence[str], most: int | None) -> list[str]:
    """At most so many of the names, chosen by their hash alone: a list in another order has the same. Sorted."""
    if most is None or len(names) <= most:
        return sorted(names)
    return sorted(sorted(names, key=_hash)[:most])


def share(names: Sequence[str], fraction: float) -> list[str]:
    """The names whose hash is in the first `fraction` of all hashes: a longer list keeps them. Sorted."""
    return sorted(name for name in names if int.from_bytes(_hash(name)[:8], "big") < fraction * 2**64)


def _hash(name: str) -> bytes:
    return hashlib.sha256(name.encode(errors="surrogatepass")).digest()


def _content(path: str, access: StoreAccess, output_path: str) -> bytes:
    if is_web(path):
        from marin_assets.stages.download.stores.web import WebReader

        return WebReader(access, output_path, Tally(), threading.Event()).content(path, MOST_BYTES)
    try:
        if is_local(path):
            return read_bytes(path)
        fs, place = filesystem_for(path, access)
        size_bytes = fs.size(place)
        if size_bytes is not None and size_bytes > MOST_BYTES:
            raise SourceError(f"{path!r} has {size_bytes} bytes, expected a list of at most {MOST_BYTES}.")
        content: bytes = fs.cat_file(place)
        return content
    except FileNotFoundError:
        raise MissingFileError(f"{path!r} does not exist, expected a list. Correct the path.") from None
    except (IsADirectoryError, PermissionError) as error:
        raise SourceError(f"{path!r} cannot be read ({error}), expected a list. Correct the path.") from error
