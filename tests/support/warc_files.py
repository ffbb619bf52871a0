"""WARC and WET files for tests: real pages of HTML, written as Common Crawl writes them.

A page is a request, a response and a metadata record, each a gzip member of its own. The pages are pydoc's, of modules
of the standard library.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib
import json
import pydoc
import re
import uuid
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from urllib.parse import urlsplit

DATE = "2024-05-18T01:58:10Z"
MODULES = (
    "abc", "bisect", "calendar", "colorsys", "contextlib", "copy", "csv", "dataclasses", "fnmatch", "glob", "heapq",
    "keyword", "locale", "netrc", "operator", "pprint", "queue", "reprlib", "sched", "shelve", "stat", "string",
    "textwrap", "timeit", "token", "types", "wave", "weakref", "zipapp",
)  # fmt: skip
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"


@cache
def html_page(module: str) -> bytes:
    """Return pydoc's page of a module."""
    return pydoc.html.page(module, pydoc.html.document(importlib.import_module(module))).encode()


def url_of(module: str) -> str:
    return f"https://docs.example.org/{module}.html"


def digest_of(content: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(content).digest()).decode()


def record_id(key: object) -> str:
    return f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, repr(key))}>"


def warc_record(kind: str, block: bytes, headers: dict[str, str] | None = None, *, id: str | None = None) -> bytes:
    """Return the bytes of a record, not compressed."""
    first = {"WARC-Type": kind, "WARC-Date": DATE, "WARC-Record-ID": id or record_id((kind, block, headers))}
    rest = {"Content-Length": str(len(block)), **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**first, **rest}.items())
    return b"WARC/1.0\r\n" + lines.encode() + b"\r\n" + block + b"\r\n\r\n"


def response(url: str, block: bytes, *, mime: str | None = "text/html", **headers: str) -> bytes:
    """Return a response record. Underscores in names of headers stand for hyphens."""
    given = {"Content-Type": "application/http; msgtype=response", "WARC-Target-URI": url}
    if mime is not None:
        given["WARC-Identified-Payload-Type"] = mime
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    return warc_record("response", block, given, id=record_id((url, block)))


def page_records(module: str, language: str = "eng", number: int = 0) -> list[bytes]:
    """Return the request, the response and the metadata of a page."""
    url = url_of(module) if not number else f"{url_of(module)}?n={number}"
    block = OK + html_page(module)
    answer = response(url, block, WARC_Payload_Digest=digest_of(html_page(module)))
    detected = f'{{"reliable":true,"languages":[{{"code-iso-639-3":"{language}","text-covered":0.97}}]}}'
    fields = f"fetchTimeMs: 258\r\ncharset-detected: UTF-8\r\nlanguages-cld2: {detected}\r\n\r\n".encode()
    concurrent = {"WARC-Target-URI": url, "WARC-Concurrent-To": record_id((url, block))}
    return [
        warc_record("request", b"GET / HTTP/1.1\r\nHost: docs.example.org\r\n\r\n", {"WARC-Target-URI": url}),
        answer,
        warc_record("metadata", fields, {"Content-Type": "application/warc-fields", **concurrent}),
    ]


def info_record() -> bytes:
    return warc_record("warcinfo", b"isPartOf: CC-MAIN-2024-22\r\n", {"Content-Type": "application/warc-fields"})


def crawl_records(modules: Sequence[str] = MODULES, *, copies: int = 1) -> list[bytes]:
    """Return the records of a file of the crawl: warcinfo, then three for each page."""
    pages = [page_records(module, number=number) for number in range(copies) for module in modules]
    return [info_record(), *(record for page in pages for record in page)]


def members(records: Iterable[bytes]) -> bytes:
    """Return a gzip file with a member for each record."""
    return b"".join(map(member, records))


def member(record: bytes) -> bytes:
    return gzip.compress(record, mtime=0)


def with_length(record: bytes, change: Callable[[int], object]) -> bytes:
    """Return the record with another Content-Length."""
    return re.sub(rb"(?<=Content-Length: )\d+", lambda match: str(change(int(match[0]))).encode(), record, count=1)


def conversion(url: str, text: str, language: str = "eng") -> bytes:
    """Return the record of a text in a WET file."""
    headers = {
        "WARC-Target-URI": url,
        "WARC-Refers-To": record_id(url),
        "WARC-Identified-Content-Language": language,
        "Content-Type": "text/plain",
    }
    return warc_record("conversion", text.encode(), headers)


def cdx_lines(name: str, content: bytes) -> list[str]:
    """Return the lines of the index for the responses of a gzip WARC file, as Common Crawl writes them."""
    lines, position = [], 0
    while position < len(content):
        inflate = zlib.decompressobj(31)
        head, _, block = inflate.decompress(content[position:]).partition(b"\r\n\r\n")
        length = len(content) - position - len(inflate.unused_data)
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        if fields["WARC-Type"] == "response":
            url = fields["WARC-Target-URI"]
            row = {
                "url": url, "mime": "text/html", "mime-detected": fields.get("WARC-Identified-Payload-Type", ""),
                "status": block.split(b" ")[1].decode(), "digest": fields["WARC-Payload-Digest"].removeprefix("sha1:"),
                "length": str(length), "offset": str(position), "filename": name, "charset": "UTF-8",
                "languages": fields.get("X-Languages", "eng"),
            }  # fmt: skip
            lines.append(f"{surt_of(url)} 20240518015810 {json.dumps(row)}")
        position += length
    return lines


def surt_of(url: str) -> str:
    parts = urlsplit(url)
    host = ",".join(reversed((parts.hostname or "").removeprefix("www.").split(".")))
    return f"{host})" + (parts.path + (f"?{parts.query}" if parts.query else "")).lower()


def index_files(lines: Iterable[str], *, lines_a_member: int = 5, members_a_file: int = 3) -> dict[str, bytes]:
    """Return cluster.idx and the cdx files of sorted lines."""
    rows = sorted(lines)
    files: dict[str, bytes] = {}
    cluster = []
    for number, start in enumerate(range(0, len(rows), lines_a_member)):
        name = f"cdx-{number // members_a_file:05d}.gz"
        part = gzip.compress("".join(f"{row}\n" for row in rows[start : start + lines_a_member]).encode(), mtime=0)
        key, time, _ = rows[start].split(" ", 2)
        cluster.append(f"{key} {time}\t{name}\t{len(files.get(name, b''))}\t{len(part)}\t{number + 1}\n")
        files[name] = files.get(name, b"") + part
    return {**files, "cluster.idx": "".join(cluster).encode()}
