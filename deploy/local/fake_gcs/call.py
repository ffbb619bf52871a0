"""One request as the routes see it, the parts of a multipart body, and what the routes answer."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fake_gcs.refusals import invalid


class Call:
    """A request whose body is read at first use: a large one is never in memory twice."""

    def __init__(self, method: str, target: str, headers: Mapping[str, str], pieces: AsyncIterator[bytes]) -> None:
        parts = urlsplit(target)
        self.method, self.target, self.headers, self.pieces = method, target, headers, pieces
        self.path = parts.path
        self.query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        self._body: bytearray | None = None

    async def read(self) -> bytearray:
        """The whole body."""
        if self._body is None:
            self._body = bytearray()
            async for piece in self.pieces:
                self._body += piece
        return self._body

    async def read_json(self) -> dict[str, Any]:
        """The body as a JSON object; an empty one is {}."""
        body = await self.read()
        try:
            value = json.loads(body) if body else {}
        except ValueError:
            raise invalid("Parse Error") from None
        if not isinstance(value, dict):
            raise invalid("Parse Error")
        return value

    def wants_media(self) -> bool:
        """Whether the answer is an object's content, and an error therefore plain text."""
        return self.method == "GET" and (self.query.get("alt") == "media" or self.path.startswith("/download/"))


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | bytearray | memoryview = b""


def json_answer(call: Call, value: dict[str, Any]) -> Answer:
    """`value`, or its part that the parameter `fields` selects (names at the top alone; nested values come whole)."""
    if call.query.get("fields"):
        selected = _top_names(call.query["fields"])
        value = value if "*" in selected else {name: value[name] for name in value if name in selected}
    return Answer(headers={"Content-Type": "application/json; charset=UTF-8"}, body=json.dumps(value).encode())


def _top_names(fields: str) -> set[str]:
    names, depth = [""], 0
    for character in fields:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            names.append("")
        else:
            names[-1] += character
    return {name.partition("(")[0].partition("/")[0].strip() for name in names}


def json_or_text(call: Call, body: bytes) -> Mapping[str, str]:
    """The content type of a refusal."""
    if call.wants_media():
        return {"Content-Type": "text/html; charset=UTF-8"}
    return {"Content-Type": "application/json; charset=UTF-8"} if body else {}


@dataclass(frozen=True, kw_only=True)
class Part:
    headers: dict[str, str]
    """Names in lower case."""
    data: memoryview


def parts_of(body: bytearray, content_type: str, most: int | None = None) -> list[Part]:
    """The parts of a multipart body, without copying the large one: line ends may be CRLF or LF, as clients differ.

    Raises RefusalError for a body that does not match its content type. `most` parts are searched if it is given, so
    that a large last one need not be searched through.
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
