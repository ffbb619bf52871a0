"""The content of one file, read once from the start to the end, decompressed, with its MD5.

NCBI has beside each file of PubMed one with its digest:

    MD5(pubmed25n0001.xml.gz)= 4f5b1d6c4c1a0b3b4d5c0e6c0f2a9f51
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

from marin_assets.documents.jsonl.lines import decompressed_chunks
from marin_assets.documents.xml.parse import BadXmlError
from marin_assets.stages.download.crawl.block_reader import opened
from marin_assets.stages.download.crawl.crawl_file import CrawlFile
from marin_assets.stages.download.crawl.damage import CutError, count_cut, cut_errors
from marin_assets.stages.download.pubmed.sources import DigestedShard
from marin_assets.stages.download.warc.members import RawFile
from marin_assets.stages.download.warc.record import AbsentError, CrawlError
from marin_resources.storage.files import StoredFile, read_bytes

DIGEST = re.compile(rb"(?:\A|[\s=])([0-9a-fA-F]{32})(?=\s|\Z)")
MAX_DIGEST_BYTES = 4096


@contextmanager
def whole_file(shard: DigestedShard, counts: Counter[str], *, texts: str) -> Iterator[Iterator[bytes]]:
    """The decompressed chunks of a shard's file, gzip by its first bytes or plain, compared with its MD5 at the end.

    The block reads them; what it leaves is read after it. `texts` is the count of what was read, for errors. A damaged
    or cut file, also by the block's own CutError or BadXmlError, raises CrawlError; with `allow_cut_files` it ends the
    block, and adds to `counts` cut_files. So does a wrong MD5 raise. verified_files counts right ones.
    """
    name, connections = shard.file.name, shard.config.max_connections
    expected = _expected_md5(shard.file, shard.md5, max_connections=connections)
    md5 = hashlib.md5(usedforsecurity=False)
    try:
        with opened(shard.file, counts, max_connections=connections) as readable:
            raw = RawFile(readable, 0)
            compression = ".gz" if readable.read_at(0, 2) == b"\x1f\x8b" else ""
            chunks = decompressed_chunks(cast(IO[bytes], _Digested(raw, md5)), compression)
            with cut_errors(raw):
                if not readable.size_bytes:
                    raise CutError("it is empty")
                yield chunks
                for _ in chunks:  # to the checksum of the gzip stream
                    pass
    except (CutError, BadXmlError) as error:
        count_cut(counts, shard.config, name, error, texts=texts)
        return
    if expected not in (None, md5.hexdigest()):
        raise CrawlError(
            f"The file {name!r} has the MD5 {md5.hexdigest()}, expected {expected} by {name + '.md5'!r}. Download both "
            "again."
        )
    counts["verified_files"] += expected is not None


class _Digested:
    """A file that is read forward, and digested."""

    def __init__(self, raw: RawFile, md5: Any) -> None:
        self._raw, self._md5 = raw, md5

    def read(self, size: int = -1) -> bytes:
        data = self._raw.read(size)
        self._md5.update(data)
        return data


def _expected_md5(file: CrawlFile, stored: StoredFile | None, *, max_connections: int) -> str | None:
    """The digest that is stored beside a file, `stored` in a store; None without one. Raises CrawlError."""
    path = f"{file.path}.md5"
    if file.stored is not None:
        content = None if stored is None else read_bytes(stored.path)
    else:
        from marin_assets.stages.download.crawl.web import WebClient

        try:
            with WebClient(max_connections) as client:
                content = client.content(path, MAX_DIGEST_BYTES)
        except AbsentError:
            content = None
    if content is None:
        return None
    digest = DIGEST.search(content[:MAX_DIGEST_BYTES])
    if digest is None:
        raise CrawlError(f"{path!r} has {content[:100]!r}, expected an MD5 of 32 hex digits. Download it again.")
    return digest[1].decode().lower()
