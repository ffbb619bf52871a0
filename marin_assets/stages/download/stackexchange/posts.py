"""One row of a table of posts as a post, or the reason why it is none.

    <row Id="5" PostTypeId="2" ParentId="4" CreationDate="2012-01-04T09:12:33.123" Score="3" Body="&lt;p&gt;…"
     OwnerUserId="7" ContentLicense="CC BY-SA 3.0" />
    <row Id="4" PostTypeId="1" AcceptedAnswerId="5" … Title="…" Tags="&lt;sql&gt;&lt;index&gt;" AnswerCount="1" … />

Tags are "<sql><index>", and "|sql|index|" in newer dumps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from marin_assets.documents.jsonl.lines import TooLong

DAMAGES = ("row_too_long", "bad_row", "bad_post")
"""A row of more than 64 MiB; one that is no XML; one without a number as its id, type, score or parent, or a question
without a title."""
QUESTION, ANSWER = 1, 2
MAX_ID = 2**31
"""Ids of the dumps are of 32 bits."""
NUMBER = re.compile(r"-?[0-9]{1,10}")
TAG = re.compile(r"[^<>|\s]+")


class RowError(Exception):
    """The row is no element of XML."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Post:
    """A question or an answer."""

    thread: int
    """The id of the question."""
    is_answer: bool
    id: int
    score: int
    body: str
    title: str = ""
    tags: tuple[str, ...] = ()
    accepted: int = 0
    """The id of the accepted answer; 0 without one."""
    date: str = ""
    author: str = ""
    """The number of the user, or the name of one whose account is gone; "" if the dump states none."""
    license: str = ""
    rejected: bool = False
    """Whether it is a question that was rejected. Its answers need to know that it exists."""


def post_of(row: bytes | TooLong) -> Post | tuple[str, str]:
    """Return the post of a row; or its reason, of DAMAGES or "other_type", and a detail for the log."""
    if isinstance(row, TooLong):
        return "row_too_long", "more than 64 MiB"
    try:
        fields = attributes(row)
    except RowError as error:
        return "bad_row", str(error)
    id, kind, score = (_number(fields.get(name)) for name in ("Id", "PostTypeId", "Score"))
    if id is None or kind is None or score is None or not 0 < id < MAX_ID:
        shown = {name: fields.get(name) for name in ("Id", "PostTypeId", "Score")}
        return "bad_post", f"{shown!r:.200}"
    if kind not in (QUESTION, ANSWER):
        return "other_type", ""
    parent = _number(fields.get("ParentId")) if kind == ANSWER else id
    if parent is None or not 0 < parent < MAX_ID:
        return "bad_post", f"answer {id} has the ParentId {fields.get('ParentId')!r:.40}"
    title = " ".join(fields.get("Title", "").split())
    if kind == QUESTION and not title:
        return "bad_post", f"question {id} has no Title"
    return Post(
        thread=parent,
        is_answer=kind == ANSWER,
        id=id,
        score=score,
        body=fields.get("Body", ""),
        title=title,
        tags=tuple(TAG.findall(fields.get("Tags", ""))),
        accepted=_number(fields.get("AcceptedAnswerId")) or 0,
        date=fields.get("CreationDate", ""),
        author=fields.get("OwnerUserId") or fields.get("OwnerDisplayName", ""),
        license=fields.get("ContentLicense", ""),
    )


def attributes(row: bytes) -> dict[str, str]:
    """Return the attributes of an element of XML. Raises RowError."""
    from xml.parsers import expat

    fields: dict[str, str] = {}
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = lambda name, values: fields.update(values)
    try:
        parser.Parse(row, False)
        parser.Parse(b"" if row.rstrip().endswith(b"/>") else b"</row>", True)
    except expat.ExpatError as error:
        raise RowError(f"{error}: {row[:60]!r}") from error
    return fields


def _number(text: Any) -> int | None:
    return int(text) if isinstance(text, str) and NUMBER.fullmatch(text) else None
