"""WARC records of an exchange: request and response, each a gzip member of its own (WARC 1.0, ISO 28500)."""

from __future__ import annotations

import base64
import gzip
import hashlib
import uuid
from collections.abc import Mapping

from marin_assets.stages.download.fetch.exchange import Answer

GZIP_LEVEL = 6


def records_of(answer: Answer) -> bytes:
    """The response and the request of an answer, as two gzip members."""
    url, response_id = answer.url.url, _id_of("response", answer)
    _, _, body = answer.response.partition(b"\r\n\r\n")
    response = {
        "WARC-Type": "response",
        "WARC-Record-ID": response_id,
        "WARC-Date": answer.date,
        "WARC-Target-URI": url,
        "WARC-IP-Address": answer.address,
        "Content-Type": "application/http; msgtype=response",
        "WARC-Payload-Digest": digest(body),
    }
    request = {
        "WARC-Type": "request",
        "WARC-Record-ID": _id_of("request", answer),
        "WARC-Concurrent-To": response_id,
        "WARC-Date": answer.date,
        "WARC-Target-URI": url,
        "Content-Type": "application/http; msgtype=request",
    }
    return member(response, answer.response) + member(request, answer.request)


def warcinfo(name: str, date: str, fields: Mapping[str, str]) -> bytes:
    """The first record of a file: the crawler and its contact."""
    block = "".join(f"{field}: {value}\r\n" for field, value in fields.items()).encode()
    headers = {
        "WARC-Type": "warcinfo",
        "WARC-Record-ID": f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{name} {date}')}>",
        "WARC-Date": date,
        "WARC-Filename": name,
        "Content-Type": "application/warc-fields",
    }
    return member(headers, block)


def member(headers: Mapping[str, str], block: bytes) -> bytes:
    """One record as one gzip member, with its length and digest."""
    complete = {**headers, "WARC-Block-Digest": digest(block), "Content-Length": str(len(block))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in complete.items())
    return gzip.compress(f"WARC/1.0\r\n{lines}\r\n".encode() + block + b"\r\n\r\n", GZIP_LEVEL, mtime=0)


def digest(data: bytes) -> str:
    return f"sha1:{base64.b32encode(hashlib.sha1(data).digest()).decode()}"


def _id_of(kind: str, answer: Answer) -> str:
    """An id of what is recorded: an address may answer twice within a second, the precision of a date."""
    name = f"{kind} {answer.date} {answer.url.url} {digest(answer.response)}"
    return f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, name)}>"
