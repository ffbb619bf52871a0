"""The text of a page: BOM, then the charset of HTTP, then that of <meta> or the XML declaration, then detection.

A charset counts only if all bytes of the page are valid in it. One that is declared and is not is a fact to count.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
SUPERSETS = {"shift_jis": "cp932", "euc_kr": "cp949", "gbk": "gb18030", "gb2312": "gb18030", "big5": "big5hkscs"}
"""Charsets as browsers decode them: with the letters of their later versions."""
REPLACEMENT = "\ufffd"
LETTERS_A_BROKEN_ONE = 10
"""A page with at least as many letters of UTF-8 beyond ASCII for each broken one is UTF-8: a mistake in one place does
not change the charset of the page."""
PRESCANNED_BYTES = 4096
_META = re.compile(
    rb"<meta\s[^>]{0,500}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w:.-]{1,40})|"
    rb"\A\s{0,99}<\?xml\s[^>]{0,200}?encoding\s{0,9}=\s{0,9}[\"']([\w:.-]{1,40})",
    re.IGNORECASE,
)
_HTTP = re.compile(r"charset\s*=\s*[\"']?\s*([\w:.-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Decoded:
    """The text of a page."""

    text: str
    charset: str
    """The name of the charset in Python, for example "utf-8", "cp1252"."""
    disagrees: bool
    """A charset is declared in which the page is not valid, or which is unknown."""
    is_replaced: bool
    """Bytes without a letter became U+FFFD."""


def decode_page(body: bytes, content_type: str, *, is_cut: bool = False) -> Decoded:
    """Return the text. `content_type` is the header of HTTP; a page that `is_cut` may end within a letter."""
    for bom, charset in BOMS:
        if body.startswith(bom):
            text, is_replaced = _strict_or_replaced(body[len(bom) :], charset, is_cut=is_cut)
            return Decoded(text, charset, is_replaced, is_replaced)
    disagrees = False
    for label in (_http_label(content_type), _meta_label(body)):
        if label is None:
            continue
        codec = _codec_of(label)
        valid = _strict(body, codec, is_cut=is_cut) if codec is not None else None
        if codec is not None and valid is not None:
            return Decoded(valid, codec, disagrees, False)
        disagrees = True
    charset = _detected(body)
    text, is_replaced = _strict_or_replaced(body, charset, is_cut=is_cut)
    return Decoded(text, charset, disagrees, is_replaced)


def _http_label(content_type: str) -> str | None:
    match = _HTTP.search(content_type)
    return match[1] if match else None


def _meta_label(body: bytes) -> str | None:
    match = _META.search(body, 0, PRESCANNED_BYTES)
    if match is None:
        return None
    label = (match[1] or match[2]).decode("latin-1")
    # it was read as letters of one byte, so it is not in UTF-16 (HTML standard, 13.2.3.2)
    return "utf-8" if label.lower().startswith("utf-16") else label


def _codec_of(label: str) -> str | None:
    """Python's codec of a label of the Encoding standard; None for another one, such as "hex"."""
    from resiliparse.parse.encoding import map_encoding_to_html5

    name = map_encoding_to_html5(label, fallback_utf8=False)
    if name is None:
        return None
    name = SUPERSETS.get(name.replace("-", "_"), name)
    try:
        codecs.lookup(name)
    except LookupError:
        return None
    return name


def _detected(body: bytes) -> str:
    from resiliparse.parse.encoding import detect_encoding

    text = body.decode("utf-8", "replace")
    broken = text.count(REPLACEMENT)
    if not broken or sum(not letter.isascii() for letter in text) - broken >= LETTERS_A_BROKEN_ONE * broken:
        return "utf-8"
    return _codec_of(detect_encoding(body) or "windows-1252") or "cp1252"


def _strict(body: bytes, charset: str, *, is_cut: bool) -> str | None:
    try:
        if is_cut:
            return codecs.getincrementaldecoder(charset)().decode(body, final=False)
        return body.decode(charset)
    except (UnicodeDecodeError, ValueError):
        return None


def _strict_or_replaced(body: bytes, charset: str, *, is_cut: bool) -> tuple[str, bool]:
    text = _strict(body, charset, is_cut=is_cut)
    return (body.decode(charset, "replace"), True) if text is None else (text, False)
