"""Small dumps of a site of Stack Exchange: a table of posts, and 7z archives of it.

`python stack_dumps.py CONFIG [RUN_BYTES]`: read dumps in a process of its own; the config's fields are JSON. It prints
the counts.
"""

from __future__ import annotations

import io
import json
import random
import sys
from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import quoteattr

import py7zr

BOM = b"\xef\xbb\xbf"
NEWLINES = {"\n": "&#xA;", "\r": "&#xD;", "\t": "&#x9;"}


def question(id: int, *, body: str | None = None, score: int = 10, **fields: Any) -> dict[str, Any]:
    """A row; `fields` replace its own, and None leaves one out."""
    return {
        "Id": id,
        "PostTypeId": 1,
        "CreationDate": "2012-01-04T09:12:33.123",
        "Score": score,
        "ViewCount": 51,
        "Body": f"<p>What is meant by {id}?</p>\n" if body is None else body,
        "OwnerUserId": 7,
        "Title": f"Question {id}",
        "Tags": "<sql><index>",
        "AnswerCount": 1,
        "ContentLicense": "CC BY-SA 3.0",
        **fields,
    }


def answer(id: int, parent: int, *, body: str | None = None, score: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "Id": id,
        "PostTypeId": 2,
        "ParentId": parent,
        "CreationDate": "2012-01-05T09:12:33.123",
        "Score": score,
        "Body": f"<p>It is {id}.</p>\n" if body is None else body,
        "OwnerUserId": 8,
        "ContentLicense": "CC BY-SA 4.0",
        **fields,
    }


def row_of(fields: Mapping[str, Any] | bytes) -> bytes:
    """A line as .NET writes it."""
    if isinstance(fields, bytes):
        return fields
    shown = " ".join(f"{name}={quoteattr(str(value), NEWLINES)}" for name, value in fields.items() if value is not None)
    return f"  <row {shown} />".encode()


def table_of(rows: Iterable[Mapping[str, Any] | bytes], *, root: str = "posts") -> bytes:
    head = [BOM + b'<?xml version="1.0" encoding="utf-8"?>', f"<{root}>".encode()]
    return b"\r\n".join([*head, *map(row_of, rows), f"</{root}>".encode()])


def archive_of(members: Mapping[str, bytes], filters: Any = None, password: str | None = None) -> bytes:
    out = io.BytesIO()
    with py7zr.SevenZipFile(out, "w", filters=filters, password=password) as archive:
        for name, content in members.items():
            archive.writestr(content, name)
    return out.getvalue()


def dump_of(rows: Iterable[Mapping[str, Any] | bytes], filters: Any = None) -> bytes:
    """An archive of a small site: all tables in one."""
    others = {name: table_of([b'  <row Id="1" />'], root=name.lower()) for name in ("Badges", "Users")}
    members = {"Badges.xml": others["Badges"], "Posts.xml": table_of(rows), "Users.xml": others["Users"]}
    return archive_of(members, filters)


def drawn_rows(seed: int, count: int) -> list[dict[str, Any]]:
    """Questions, and answers far from them, in the order of a dump."""
    draw, rows, threads = random.Random(seed), list[dict[str, Any]](), list[int]()
    for id in range(1, count + 1):
        body = f"<p>{draw.randbytes(draw.randrange(20, 300)).hex()}</p>"
        if not threads or draw.random() < 0.4:
            threads.append(id)
            rows.append(question(id, body=body, score=draw.randrange(5, 40)))
        else:
            parent = draw.choice(threads) if draw.random() < 0.9 else count + id
            rows.append(answer(id, parent, body=body, score=draw.randrange(-3, 9)))
    return rows


def main() -> None:
    from marin_assets.stages.download.stackexchange import runs
    from marin_assets.stages.download.stackexchange.read_stackexchange import (
        ReadStackexchangeConfig,
        read_stackexchange,
    )
    from marin_assets.step.values import unwrap_versioned_value

    if len(sys.argv) > 2:
        runs.RUN_BYTES = int(sys.argv[2])
    print(json.dumps(read_stackexchange(unwrap_versioned_value(ReadStackexchangeConfig(**json.loads(sys.argv[1]))))))


if __name__ == "__main__":
    main()
