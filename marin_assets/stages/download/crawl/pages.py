"""One response as a page: a document whose text is HTML, or the reason why it is none."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from marin_assets.documents import Document
from marin_assets.stages.download.warc.http_message import BodyTooLargeError, Response, parse_response
from marin_assets.stages.download.warc.record import Record

REASONS = (
    "other_type", "segmented", "too_large", "no_http_header", "status", "mime", "empty", "no_url",
)  # fmt: skip
"""Reasons of a record that is whole: its WARC-Type is another one; it is a part of a larger one; it has more bytes than
max_page_bytes; no HTTP headers, another status, no HTML, no body, no address."""
NOTES = ("encoding_ignored", "encoding_cut", "charset_disagrees", "characters_replaced", "mime_sniffed", "cut_pages")
HTML_TYPES = ("text/html", "application/xhtml+xml")
SNIFFED_BYTES = 1024
_UUID = re.compile(r"<?(?:urn:uuid:)?([^<>]*)>?")
_HTML = re.compile(
    rb"[\s\xef\xbb\xbf]*(?:<\?xml[^>]{0,500}>\s*)?(?:<!--.{0,900}?-->\s*)*<(?:!doctype\s+html|html|head|body|title|meta|link|script|"
    rb"style|iframe|h1|div|font|table|a|b|br|p)[\s/>]",
    re.IGNORECASE | re.DOTALL,
)
"""The beginnings of HTML by the MIME Sniffing standard, section 7.1."""


def page_of(
    record: Record,
    file: str,
    *,
    source: str,
    statuses: tuple[int, ...],
    content_types: tuple[str, ...],
    max_page_bytes: int,
    counts: Counter[str],
) -> Document | str:
    """Return the page of a record, or its reason, one of REASONS. Adds to `counts` what is noted of a page."""
    headers = record.headers
    if record.kind != "response":
        return "other_type"
    if "warc-segment-number" in headers:
        return "segmented"
    if record.block is None:
        return "too_large"
    url = headers.get("warc-target-uri", "").strip("<>")
    if not url:
        return "no_url"
    try:
        response = parse_response(record.block, max_page_bytes)
    except BodyTooLargeError:
        return "too_large"
    if response is None:
        return "no_http_header"
    if statuses and response.status not in statuses:
        return "status"
    identified = headers.get("warc-identified-payload-type", "").partition(";")[0].strip().lower()
    mime = identified or sniff(response)
    if mime not in content_types:
        return "mime"
    from marin_assets.documents.charset import decode_page  # late, for its weight

    decoded = decode_page(response.body, response.headers.get("content-type"))
    if not decoded.text or decoded.text.isspace():
        return "empty"
    counts["mime_sniffed"] += not identified
    counts["cut_pages"] += "warc-truncated" in headers
    counts["charset_disagrees"] += decoded.disagrees
    counts["characters_replaced"] += decoded.replaced
    for note in response.notes:
        counts[note] += 1
    metadata = {
        "url": url,
        "date": headers.get("warc-date", ""),
        "status": response.status,
        "mime": mime,
        "charset": decoded.charset,
        **({"truncated": headers["warc-truncated"]} if "warc-truncated" in headers else {}),
        **({"digest": headers["warc-payload-digest"]} if "warc-payload-digest" in headers else {}),
        "file": file,
        "offset": record.offset,
    }
    return Document(id=id_of(record, file), text=decoded.text, source=source, metadata=metadata)


def id_of(record: Record, file: str) -> str:
    """The UUID of WARC-Record-ID, or another id as it is; without one the file and the offset."""
    match = _UUID.fullmatch(record.headers.get("warc-record-id", "").strip())
    return (match[1] if match else "") or f"{file}@{record.offset}"


def sniff(response: Response) -> str:
    """The MIME type of a body by its first bytes: one of HTML_TYPES, "text/plain" or "application/octet-stream".

    Text counts as the HTML that its HTTP headers declare.
    """
    head = response.body[:SNIFFED_BYTES]
    declared = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if b"\0" in head and not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "application/octet-stream"
    if head.lstrip().startswith(b"<?xml") and b"http://www.w3.org/1999/xhtml" in head:
        return "application/xhtml+xml"
    if _HTML.match(head):
        return "text/html"
    is_text = not any(byte < 32 and byte not in b"\t\n\f\r\x1b" for byte in head)
    if not is_text:
        return "application/octet-stream"
    return declared if declared in HTML_TYPES else "text/plain"


def crawl_notes(record: Record) -> dict[str, Any]:
    """The languages and the charset that the crawler has detected, in the metadata record of a page.

    Fields that cannot be read are left out.
    """
    lines = (record.block or b"").decode("utf-8", "replace").split("\n")
    fields = {name.strip(): value.strip() for name, colon, value in (line.partition(":") for line in lines) if colon}
    notes: dict[str, Any] = {}
    if fields.get("charset-detected"):
        notes["charset_detected"] = fields["charset-detected"]
    try:
        detected = json.loads(fields.get("languages-cld2", "null"))
        if isinstance(detected, Mapping):
            rows = [(str(row["code-iso-639-3"]), float(row["text-covered"])) for row in detected["languages"]]
            notes["languages"] = [code for code, _ in rows]
            notes["language_shares"] = [share for _, share in rows]
            notes["languages_reliable"] = detected["reliable"] is True
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return notes
