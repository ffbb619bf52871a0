"""The rows of a dump: a 7z archive with Posts.xml in it, or that file, plain or compressed.

The file is read once, in bounded memory, and nothing is extracted to a disk. A row is an element "<row … />", whatever
lines it has: in XML a "<" begins an element and is in no attribute. So each row is parsed on its own, and a damaged one
costs no other. Damage within a compressed stream ends it, as nothing after it can be read: the dump is cut there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any, cast

from marin_assets.documents.formats import compression_of
from marin_assets.documents.jsonl.lines import (
    CHUNK_BYTES,
    MAX_LINE_BYTES,
    TOO_LONG,
    TooLong,
    decompressed_chunks,
    require_expansion,
)
from marin_assets.stages.download.crawl.damage import CutError, cut_errors
from marin_assets.stages.download.warc.members import Readable, SeekableFile
from marin_assets.stages.download.warc.record import CrawlError

if TYPE_CHECKING:
    import py7zr

MEMBER = "posts.xml"
MAGIC_7Z = b"7z\xbc\xaf\x27\x1c"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_DICTIONARY_BYTES = 2**30
"""Memory that an archive may claim for its dictionary. 7-Zip's ultra needs 64 MiB, or 256 MiB."""
NAMED = 8
SPACE = tuple(b" \t\r\n/>")


def read_rows(file: Readable, name: str, take: Callable[[bytes | TooLong], None], counts: Counter[str]) -> None:
    """Call `take` with each row of a dump, in order; TOO_LONG in place of one of more than 64 MiB.

    Adds to `counts` ignored_members. Raises CutError for a damaged or cut file, CrawlError for one that is no table of
    posts, and the errors of its store or server.
    """
    raw = SeekableFile(file)
    rows = Rows(name, take)
    with cut_errors(raw):
        if file.read_at(0, len(MAGIC_7Z)) == MAGIC_7Z:
            _read_archive(raw, name, file.size_bytes, rows, counts)
        elif not file.size_bytes or name.lower().endswith(".7z"):
            raise CutError("it is empty" if not file.size_bytes else "it does not begin as a 7z archive")
        else:
            read = 0
            for chunk in decompressed_chunks(cast(IO[bytes], raw), compression_of(name)):
                read += len(chunk)
                require_expansion(name, read, raw.tell())
                rows.feed(chunk)
        rows.close()


def _read_archive(raw: SeekableFile, name: str, size_bytes: int, rows: Rows, counts: Counter[str]) -> None:
    """Feed the table of posts in an archive. Raises CutError, CrawlError, EOFError, OSError, lzma.LZMAError."""
    import py7zr
    from py7zr.exceptions import ArchiveError, PasswordRequired

    try:
        with py7zr.SevenZipFile(cast(IO[bytes], raw)) as archive:
            member = _member(archive, name, size_bytes, counts)
            archive.extract(targets=[member], factory=_writers(rows))
    except PasswordRequired:
        raise CrawlError(f"The archive {name!r} is encrypted, expected one without a password. Decrypt it.") from None
    except (ArchiveError, ValueError, TypeError, KeyError, IndexError, AssertionError) as error:
        # of py7zr, whose headers fail in their own ways; CrawlError is a ValueError
        if isinstance(error, CrawlError) or rows.error is not None:
            raise
        if raw.error is not None:
            raise raw.error from error
        raise CutError(f"{type(error).__name__}: {error}") from error


def _member(archive: py7zr.SevenZipFile, name: str, size_bytes: int, counts: Counter[str]) -> str:
    """The name of the table of posts. Raises CrawlError for an archive without one, or that claims too much memory."""
    members = [info for info in archive.list() if not info.is_directory]
    tables = [info.filename for info in members if info.filename.lower().rpartition("/")[2] == MEMBER]
    if len(tables) != 1:
        others = ", ".join(repr(info.filename) for info in members[:NAMED]) or "no file"
        raise CrawlError(
            f"The archive {name!r} has {len(tables)} members Posts.xml, expected one; it has {others}. Pass an archive "
            "of one site with its posts."
        )
    counts["ignored_members"] += len(members) - 1
    require_expansion(name, sum(info.uncompressed or 0 for info in members), size_bytes)
    streams = archive.header.main_streams
    for folder in streams.unpackinfo.folders if streams is not None else ():
        for coder in folder.coders:
            if (claimed := _dictionary_bytes(coder["method"], coder.get("properties") or b"")) > MAX_DICTIONARY_BYTES:
                raise CrawlError(
                    f"The archive {name!r} claims {claimed:,} bytes of memory for its dictionary, expected at most "
                    f"{MAX_DICTIONARY_BYTES:,}. Compress it again."
                )
    return tables[0]


def _dictionary_bytes(method: bytes, properties: bytes) -> int:
    """The memory that a coder claims, as the format of 7z states it (DOC/Methods.txt of the LZMA SDK)."""
    if method in (b"\x03\x01\x01", b"\x03\x04\x01") and len(properties) >= 5:  # LZMA, PPMd
        return int.from_bytes(properties[1:5], "little")
    if method == b"\x21" and properties:  # LZMA2
        return (2 | properties[0] & 1) << (properties[0] // 2 + 11)
    return 0


def _writers(rows: Rows) -> Any:
    """Return the factory of the files that py7zr writes members to: the rows."""
    from py7zr.io import Py7zIO, WriterFactory

    class Writer(Py7zIO):
        def write(self, s: bytes | bytearray) -> int:
            for start in range(0, len(s), CHUNK_BYTES):  # a block of py7zr may have 128 MB
                rows.feed(bytes(s[start : start + CHUNK_BYTES]))
            return len(s)

        def read(self, size: int | None = None) -> bytes:
            return b""

        def seek(self, offset: int, whence: int = 0) -> int:
            return 0

        def flush(self) -> None:
            """Nothing is held."""

        def size(self) -> int:
            return 0

    class Writers(WriterFactory):
        def create(self, filename: str) -> Py7zIO:
            return Writer()

    return Writers()


class Rows:
    """Divides a table of posts into its rows."""

    def __init__(self, name: str, take: Callable[[bytes | TooLong], None]) -> None:
        self._name, self._take = name, take
        self._pending: list[bytes] = []
        self._length = 0
        self._begun = self._ended = False
        self.error: Exception | None = None
        """The error of `take`, or of a file that is no table of posts."""

    def feed(self, chunk: bytes) -> None:
        """Take the rows that have ended. Raises CrawlError for another file, and the errors of `take`."""
        try:
            for piece in self._pieces(chunk):
                self._element(piece)
        except Exception as error:  # py7zr raises it again, among errors of the archive
            self.error = error
            raise

    def close(self) -> None:
        """Take the last row. Raises CutError if the table has no end."""
        last = self._joined()
        if isinstance(last, bytes) and last.rstrip().endswith(b">"):
            self._element(last)
        if not self._begun:
            raise CutError("it has no element <posts>")
        if not self._ended:
            raise CutError("its end </posts> is missing")

    def _pieces(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """Yield what has ended, each from one "<" to the next."""
        first, *rest = chunk.split(b"<")
        self._append(first)
        for piece in rest:
            if self._pending:
                yield self._joined()
            self._pending, self._length = [b"<"], 1
            self._append(piece)

    def _append(self, part: bytes) -> None:
        self._length += len(part)
        if self._length <= MAX_LINE_BYTES:
            self._pending.append(part)
        else:
            self._pending = [b"".join([*self._pending, part[:64]])[:64]]  # its name is enough

    def _joined(self) -> bytes | TooLong:
        piece = b"".join(self._pending)
        return TOO_LONG if self._length > MAX_LINE_BYTES and _is_row(piece) else piece

    def _element(self, piece: bytes | TooLong) -> None:
        if isinstance(piece, TooLong) or _is_row(piece):
            self._require_begun(piece)
            self._take(piece)
            return
        text = piece.removeprefix(BYTE_ORDER_MARK).strip()
        if text.startswith(b"<posts") and text[6:7] in (b"", b">", b" ", b"/"):
            self._begun = True
            self._ended = text.endswith(b"/>")
        elif text.startswith(b"</posts"):
            self._ended = self._begun
        elif text and not text.startswith((b"<?", b"<!")):
            self._require_begun(piece)  # the rest of a damaged row, which has been counted

    def _require_begun(self, piece: bytes | TooLong) -> None:
        if not self._begun:
            shown = b"<row" if isinstance(piece, TooLong) else piece[:60]
            raise CrawlError(
                f"The file {self._name!r} is no table of posts: it begins with {shown!r}, expected <posts>. Pass "
                "Posts.xml of a dump of Stack Exchange, or an archive with it."
            )


def _is_row(piece: bytes) -> bool:
    return piece.startswith(b"<row") and (len(piece) == 4 or piece[4] in SPACE)
