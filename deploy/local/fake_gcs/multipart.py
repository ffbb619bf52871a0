"""The parts of a multipart body, without copying the large one: line ends may be CRLF or LF, as clients differ."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from fake_gcs.refusals import invalid


@dataclass(frozen=True, kw_only=True)
class Part:
    headers: dict[str, str]
    """Names in lower case."""
    data: memoryview


def parts_of(body: bytearray, content_type: str, most: int | None = None) -> list[Part]:
    """Raises RefusalError for a body that does not match its content type.

    `most` parts are searched if it is given, so that a large last one need not be searched through.
    """
    match = re.search(r'boundary="?([^";]+)"?', content_type)
    if not match:
        raise invalid("Missing multipart boundary in Content-Type header.")
    view = memoryview(body).toreadonly()
    delimiters = _delimiters(body, match[1].encode(), most)
    return [_part(view[before[1] : after[0]]) for before, after in pairwise(delimiters)]


def _delimiters(body: bytearray, boundary: bytes, most: int | None) -> list[tuple[int, int]]:
    """Begin and end of each line that divides parts; the line end in front of it belongs to it."""
    first = re.match(rb"\r?\n?--" + re.escape(boundary) + rb"[ \t]*(\r?\n)", body)
    if not first:
        raise invalid("Malformed multipart body.")
    newline = first[1]  # what the content ends with before a delimiter is no part of one with another line end
    spans, mark = [first.span()], newline + b"--" + boundary
    while True:
        behind = spans[-1][1] - len(newline)
        start = body.rfind(mark + b"--", behind) if len(spans) == most else body.find(mark, behind)
        if start < 0:
            raise invalid("Missing end boundary in multipart body.")
        end = start + len(mark)
        if body[end : end + 2] == b"--":
            return [*spans, (start, end)]
        spans.append((start, body.index(newline, end) + len(newline)))


def _part(part: memoryview) -> Part:
    head = re.match(rb"(?:[^\r\n]+\r?\n)*\r?\n", part)
    if not head:
        raise invalid("Malformed multipart body.")
    lines = head[0].decode("latin-1").splitlines()
    fields = (line.partition(":") for line in lines if line)
    return Part(headers={name.strip().lower(): text.strip() for name, _, text in fields}, data=part[head.end() :])
