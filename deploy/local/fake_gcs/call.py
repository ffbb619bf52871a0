"""One request as the routes see it, and what they answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
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
