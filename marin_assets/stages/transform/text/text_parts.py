"""Make texts of the content of a file: decode it, extract the text of HTML, and divide it at its marks."""

from __future__ import annotations

import codecs
import re
from functools import cache

from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, extractor_named, reject_page
from marin_assets.stages.transform.text.text_rejections import Rejected
from marin_assets.step.values import unwrap_versioned_value

HTML = (".html", ".htm")
MAX_CHARACTERS = 10_000_000
"""Limit of one document, as of a page of HTML. The longest books have half of it. Its line of JSON has at most 60 MB,
and stages read lines of up to 64 MiB."""
REASONS = ("binary", "unknown_encoding", "empty", "no_text", "too_long", "too_many_attributes", "too_deep")


def texts_of(
    name: str, content: bytes, *, extractor: str, split_at: str | None, split_before: str | None
) -> list[str] | Rejected:
    """Return the texts between the marks, with the empty ones, at least one of them not empty; or the reason to reject
    the file. The name's end shows what the content is."""
    text = decode_text(content)
    if isinstance(text, str) and text.strip() and name.lower().endswith(HTML):
        text = _extract(text, extractor)
    if isinstance(text, Rejected):
        return text
    texts = divide(text, split_at=split_at, split_before=split_before)
    if max(map(len, texts)) > MAX_CHARACTERS:
        return Rejected("too_long")
    return texts if any(map(str.strip, texts)) else Rejected("empty")


def decode_text(content: bytes) -> str | Rejected:
    """Return UTF-8, or UTF-16 with a byte order mark, as text with "\\n" as line ends; Rejected for other content."""
    if content.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return Rejected("unknown_encoding")
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if not wide and b"\0" in content:
        return Rejected("binary")
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        return Rejected("unknown_encoding")
    return Rejected("binary") if "\0" in text else text.replace("\r\n", "\n").replace("\r", "\n")


def divide(text: str, *, split_at: str | None, split_before: str | None) -> list[str]:
    """Return the texts between the marks, without empty lines around them; the text as it is if it has no mark.

    `split_at`: lines that equal it, but for blanks around it, are the marks, and in no text. `split_before`: lines that
    begin with a match of it begin a text.
    """
    if split_at is None and split_before is None:
        return [text]
    separator, heading = (split_at or "").strip(), re.compile(split_before or "")
    parts: list[list[str]] = [[]]
    for line in text.split("\n"):
        if split_at is not None and line.strip() == separator:
            parts.append([])
            continue
        if split_before is not None and heading.match(line):
            parts.append([])
        parts[-1].append(line)
    if split_before is not None and not any(map(str.strip, parts[0])):
        del parts[0]  # before the first heading
    return [text] if len(parts) < 2 else ["\n".join(lines).strip("\n") for lines in parts]


def _extract(page: str, extractor: str) -> str | Rejected:
    """Return the Markdown of a page, or Rejected for one that would exhaust the parser, and one without text."""
    if reason := reject_page(page, _limits()):
        return Rejected(reason)
    text = extractor_named(extractor)(page)
    return text if text.strip() else Rejected("no_text")


@cache
def _limits() -> HtmlToMarkdownConfig:
    return unwrap_versioned_value(HtmlToMarkdownConfig(pages_path="", output_path=""))
