"""The pages of a piece of an XML dump: those whose <page> begins in it, cut from the text by their tags.

A page's XML is parsed by itself, so damage costs one page; a `<` within a text is written as `&lt;`, so a tag is one.
Pages of a bzip2 stream are held until its checksums are compared: a damaged stream costs its pages and no other.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets.stages.download.wiki.xml_streams import LostStream, Part, StreamEnd, Text

HELD_BYTES = 48 * 2**20
"""A block of bzip2, which has a checksum, inflates to at most 46 MB."""
TAG_BYTES = 256
"""More than a tag has. So many bytes are kept of text without one, as it may end within a tag."""


@dataclass(frozen=True, slots=True)
class PageXml:
    offset: int
    """Offset of the page in a plain file, or of the stream that it begins in."""
    xml: bytes
    reason: str = ""
    """Why it is lost, bad_page or too_large; its XML is then empty."""


@dataclass(frozen=True, slots=True)
class LostPages:
    """Pages that a damaged stream has cost, at least one."""

    stream: LostStream
    pages: int
    yielded: int
    """Pages of the stream that were yielded before."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The file ends early."""

    detail: str


class Splitter:
    """One pass over the parts of a piece. `end`: pages that begin there or behind it are another piece's."""

    def __init__(self, prefix: str, *, end: int, is_plain: bool, most_bytes: int) -> None:
        self._tag = f"<{prefix}page".encode()
        self._start = re.compile(re.escape(self._tag) + rb"(?=[\s>])")
        self._close = f"</{prefix}page>".encode()
        self._root_end = f"</{prefix}mediawiki>".encode()
        self._end, self._is_plain, self._most = end, is_plain, most_bytes
        self._held = b""
        """Text that is not yet divided."""
        self._marks: list[tuple[int, int]] = []
        """Index in `_held`, and the offset of the text from there on."""
        self._page: tuple[int, int] | None = None
        """Index in `_held` and offset of the page that is open."""
        self._done = 0
        """Index in `_held` up to which tags were searched."""
        self._is_skipped = False
        """Whether the page that is open is too large. The start of it is forgotten."""
        self._is_behind = False
        """Whether a page has begun that is another piece's."""

    def pages(self, parts: Iterator[Part]) -> Iterator[PageXml | LostStream | StreamEnd | Cut]:
        """Yield pages, StreamEnd and LostStream of the piece; at the end of a file that lacks its last tag, Cut."""
        for part in parts:
            is_behind = self._is_behind or (not isinstance(part, StreamEnd) and part.offset >= self._end)
            if is_behind and self._page is None and not self._ends_within_tag():
                return
            if isinstance(part, Text):
                self._append(part)
                yield from self._divided()
                self._forget(self._page[0] if self._page else max(self._done, len(self._held) - TAG_BYTES))
                continue
            if isinstance(part, StreamEnd):
                yield part
                continue
            if self._page is not None:
                yield PageXml(self._page[1], b"", "bad_page")
                self._page = None
            if part.offset >= self._end:
                return
            yield part
            self._held, self._marks, self._done = b"", [], 0
            if part.behind is None:
                yield Cut(f"the stream at byte {part.offset} is damaged: {part.detail}")
                return
        if self._page is not None:
            yield PageXml(self._page[1], b"", "bad_page")
            yield Cut("it ends within a page")
        elif self._marks and not self._ends():
            yield Cut(f"it ends without {self._root_end.decode()}")

    def _ends_within_tag(self) -> bool:
        """Whether the text that is held ends with a part of a page's first tag, which then begins in it."""
        return any(self._held.endswith(self._tag[:size]) for size in range(1, len(self._tag) + 1))

    def _ends(self) -> bool:
        """Whether the text ends with the root's end tag, or is a part of it, as a piece may begin within it."""
        last = self._held.strip()
        return self._root_end in last or (bool(last) and self._root_end.endswith(last))

    def _append(self, part: Text) -> None:
        if self._is_plain or not self._marks or self._marks[-1][1] != part.offset:
            self._marks.append((len(self._held), part.offset))
        self._held += part.data

    def _offset_at(self, index: int) -> int:
        at, offset = next(mark for mark in reversed(self._marks) if mark[0] <= index)
        return offset + index - at if self._is_plain else offset

    def _forget(self, size: int) -> None:
        """Forget the first bytes of the text that is held."""
        last = max(i for i, (at, _) in enumerate(self._marks) if at <= size)
        first = (0, self._offset_at(size))
        self._marks = [first, *((at - size, offset) for at, offset in self._marks[last + 1 :])]
        self._held, self._done = self._held[size:], max(0, self._done - size)
        self._page = (self._page[0] - size, self._page[1]) if self._page else None

    def _divided(self) -> Iterator[PageXml]:
        """Yield the pages that are whole."""
        while True:
            if self._page is None:
                match = self._start.search(self._held, self._done)
                if match is None:
                    return
                offset = self._offset_at(match.start())
                if offset >= self._end:
                    self._is_behind = True
                    return
                self._page, self._done, self._is_skipped = (match.start(), offset), match.end(), False
            start, offset = self._page
            close = self._held.find(self._close, self._done)
            other = self._start.search(self._held, self._done, close if close >= 0 else len(self._held))
            if other is not None or close >= 0:
                end = other.start() if other is not None else close + len(self._close)
                is_large = self._is_skipped or end - start > self._most
                reason = "too_large" if is_large else "bad_page" if other is not None else ""
                yield PageXml(offset, b"" if reason else self._held[start:end], reason)
                self._page, self._done = None, end
                continue
            self._done = max(self._done, len(self._held) - TAG_BYTES)
            if self._is_skipped or len(self._held) - start > self._most:
                self._is_skipped, self._page = True, (self._done, offset)
            return


def verified(items: Iterator[PageXml | LostStream | StreamEnd | Cut]) -> Iterator[PageXml | LostPages | Cut]:
    """Yield pages after the end of the stream, or of the block, that they end in; of a damaged stream those before."""
    held: deque[PageXml] = deque()
    size = yielded = 0
    for item in items:
        if isinstance(item, PageXml):
            held.append(item)
            size += len(item.xml)
            while size > HELD_BYTES:
                page = held.popleft()
                size, yielded = size - len(page.xml), yielded + 1
                yield page
            continue
        if isinstance(item, LostStream):
            yield LostPages(item, max(1, len(held)), yielded)
        else:
            yield from held
            if isinstance(item, Cut):
                yield item
        held.clear()
        size = yielded = 0
    yield from held
