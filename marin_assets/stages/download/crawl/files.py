"""The files of a crawl: those of a folder or bucket, or those that a list of paths names.

    crawl-data/CC-MAIN-2024-22/segments/1715971059139.85/warc/CC-MAIN-20240517233122-20240518023122-00000.warc.gz

A list has a path on each line and ends with ".paths" or ".paths.gz". Its paths begin below a base: a URL, a bucket or a
folder.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from marin_assets.stages.download.crawl.crawl_file import CrawlFile
from marin_assets.stages.download.stores.small_files import gunzipped, sample
from marin_assets.stages.download.warc.record import CrawlError
from marin_resources.storage.files import REQUESTS_AT_ONCE, read_bytes, stored_file, stored_files
from marin_resources.storage.paths import join

LISTS = (".paths", ".paths.gz")
SUFFIXES = tuple(f"{kind}{compression}" for kind in (".warc", ".wet") for compression in ("", ".gz", ".zst", ".lz4"))
MAX_LIST_BYTES = 2**27
NAMED = 5


def crawl_files(
    path: str,
    base_url: str,
    *,
    max_files: int | None = None,
    max_connections: int,
    kind: str = "WARC",
    suffixes: tuple[str, ...] = SUFFIXES,
    expected: str = ".warc.gz, .warc, .warc.zst, .warc.lz4 or .warc.wet.gz",
) -> tuple[list[CrawlFile], int]:
    """Return the files in the order of their names, and the number of ignored ones.

    `max_files`: as many of a list or a folder, chosen by the hash of the name, so a list in another order has the same.
    `suffixes` are those of the files of a `kind`, and `expected` names them in an error.
    Raises CrawlError for a list or a folder without one, FileNotFoundError for a path that does not exist.
    """
    if path.lower().endswith(LISTS):
        names = _listed(path, max_connections)
        chosen = sample(names, max_files)
        return located(chosen, base_url, max_connections), 0
    if is_web(path):
        return [file_at(path, max_connections)], 0
    stored = stored_files(path)
    by_name = {file.name: file for file in stored if file.name.lower().endswith(suffixes)}
    if not by_name:
        others = ", ".join(repr(file.name) for file in stored[:NAMED]) or "no file"
        raise CrawlError(
            f"No {kind} file exists below {path!r}: it has {others}. Expected names that end with {expected}, or a "
            "list of paths, .paths.gz. Correct the path."
        )
    files = [
        CrawlFile(name=name, path=by_name[name].path, size_bytes=by_name[name].size_bytes, stored=by_name[name])
        for name in sample(sorted(by_name), max_files)
    ]
    return files, len(stored) - len(by_name)


def is_web(path: str) -> bool:
    return path.startswith(("http://", "https://"))


def _listed(path: str, max_connections: int) -> list[str]:
    """The paths of a list, without repetition, in order. Raises CrawlError."""
    content = content_of(path, max_connections, noun="list")
    try:
        text = (gunzipped(content, MAX_LIST_BYTES) if content.startswith(b"\x1f\x8b") else content).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise CrawlError(
            f"The list {path!r} is damaged, cut or no text ({type(error).__name__}: {error}). Download it again."
        ) from error
    names = [line.strip() for line in text.splitlines() if line.strip()]
    unsafe = next((name for name in names if ".." in name.split("/") or name.startswith("/") or "://" in name), None)
    if unsafe is not None:
        raise CrawlError(f"The list {path!r} has the path {unsafe!r:.200}, expected one below its base. Correct it.")
    if not names:
        raise CrawlError(f"The list {path!r} has no paths, expected one on each line. Correct it.")
    return sorted(set(names))


def content_of(path: str, max_connections: int, *, noun: str) -> bytes:
    """The content of a small file in a store or on a server. Raises CrawlError, in which it is a `noun`."""
    if not is_web(path):
        try:
            return read_bytes(path)
        except FileNotFoundError:
            raise CrawlError(f"The {noun} {path!r} does not exist. Correct the path.") from None
    from marin_assets.stages.download.crawl.web import WebClient

    with WebClient(max_connections) as client:
        return client.content(path, MAX_LIST_BYTES)


def file_at(url: str, max_connections: int) -> CrawlFile:
    """The file of an address, which may have escapes and a query. Raises CrawlError and DownloadError."""
    from marin_assets.stages.download.crawl.web import WebClient

    with WebClient(max_connections) as client:
        return client.at(url)


def located(names: Sequence[str], base: str, max_connections: int) -> list[CrawlFile]:
    """The files below a base, with their sizes, by one request each. Raises CrawlError and DownloadError."""
    if is_web(base):
        from marin_assets.stages.download.crawl.web import WebClient

        with WebClient(max_connections) as client:
            return client.located(names, base)

    def locate(name: str) -> CrawlFile:
        place = join(base, name)
        try:
            stored = stored_file(place)
        except FileNotFoundError:
            raise CrawlError(
                f"{place!r} does not exist, expected a file of the crawl. Correct base_url or the list, or copy it."
            ) from None
        return CrawlFile(name=name, path=place, size_bytes=stored.size_bytes, stored=stored)

    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        return list(pool.map(locate, names))
