"""Answers of a server: the bytes of a range, checked against the listing, and their body as it arrives."""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Collection, Iterator
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from marin_assets.stages.download.web.faults import LONGEST_STATED_WAIT_S, Fault

if TYPE_CHECKING:
    import requests

BLOCK_BYTES = 2**20
CONNECT_S = 30.0
STALL_S = 30.0
"""A connection that sends less than LEAST_BYTES_PER_S in this time is ended."""
LEAST_BYTES_PER_S = 1000
IDENTITY = ("identity",)
RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


def checked_start(
    answer: requests.Response, size_bytes: int | None, start: int, *, whole: bool, encodings: Collection[str] = IDENTITY
) -> int:
    """The number of bytes to skip. Raises Fault if the answer is not the range, and not a whole file to read from.

    `encodings`: those with which the file itself may be stored.
    """
    if answer.headers.get("Content-Encoding", "identity") not in encodings:
        raise Fault("wrong_answer", f"the content is encoded: {answer.headers['Content-Encoding']!r:.60}")
    if answer.status_code == 206:
        given = answer.headers.get("Content-Range", "")
        match = RANGE.fullmatch(given)
        if match is None or int(match[1]) != start:
            raise Fault("wrong_range", f"the server sent the range {given!r:.60}, expected one from {start}")
        size = match[3]
        skip = 0
    else:
        size = answer.headers.get("Content-Length", "*")
        skip = start
    if size_bytes is not None and size.isdecimal() and int(size) != size_bytes:
        raise Fault("wrong_size", f"the server has {size} bytes, expected {size_bytes} by the listing")
    if answer.status_code == 200 and not whole:
        raise Fault("range_ignored", wait_s=0.0)
    return skip


def stated_wait_s(answer: requests.Response) -> float | None:
    """The seconds of `Retry-After`, which may be a date; None if it is not stated."""
    after = answer.headers.get("Retry-After", "").strip()
    if after.isdecimal():
        return min(float(after), LONGEST_STATED_WAIT_S)
    try:
        return min(max(0.0, parsedate_to_datetime(after).timestamp() - time.time()), LONGEST_STATED_WAIT_S)
    except ValueError:
        return None


def drain(answer: requests.Response) -> None:
    """Read the short body of a redirect, so that its connection can be used again."""
    size = 0
    for block in body_of(answer):
        size += len(block)
        if size > BLOCK_BYTES:
            return


def body_of(answer: requests.Response) -> Iterator[bytes]:
    """Blocks as they arrive, to the end. Raises Fault for a connection that ends early or sends too slowly."""
    import urllib3

    began_s, received = time.monotonic(), 0
    while True:
        try:
            block = answer.raw.read1(BLOCK_BYTES, decode_content=False)
        except urllib3.exceptions.ReadTimeoutError:
            raise Fault("slow", f"nothing came for {STALL_S:g} s") from None
        except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError) as error:
            raise Fault("cut", f"the answer ended early ({type(error).__name__})") from None
        if not block:
            return
        yield block
        received += len(block)
        elapsed_s = time.monotonic() - began_s
        if elapsed_s >= STALL_S:
            if received < LEAST_BYTES_PER_S * elapsed_s:
                raise Fault("slow", f"{received} bytes came in {elapsed_s:.0f} s")
            began_s, received = time.monotonic(), 0


def no_cookies() -> Any:
    from http.cookiejar import DefaultCookiePolicy

    return DefaultCookiePolicy(allowed_domains=[])
