"""Decode the bytes of a web page: its text, its charset, and whether the page declared another one.

The order is that of browsers: byte order mark, charset of the HTTP header, declaration in the page, detection. A
declared charset is used if it decodes the page. A page that is valid UTF-8 beyond ASCII is UTF-8, whatever it declares:
text of other charsets is almost never valid UTF-8. No byte vanishes: those without a meaning become U+FFFD and are
counted.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

HEAD_BYTES = 8192
"""The part of a page in which it declares its charset. The HTML standard demands 1024 bytes."""
META = re.compile(rb"""<meta\b[^>]{0,1000}?\bcharset\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:+-]{1,40})""", re.IGNORECASE)
XML = re.compile(rb"""\s*<\?xml\b[^>]{0,200}?\bencoding\s{0,9}=\s{0,9}["']([\w.:+-]{1,40})["']""", re.IGNORECASE)
HTTP = re.compile(r"""\bcharset\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:+-]{1,40})""", re.IGNORECASE)
COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
WITHOUT_MARK = ((b"<\0", "utf-16-le"), (b"\0<", "utf-16-be"))
WIDER = {"gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs", "iso8859-11": "cp874"}
"""Charset -> the one with more characters that browsers mean by it."""
LABELS = {
    "x-mac-cyrillic": "mac_cyrillic",
    "cp932": "cp932",
    "cp936": "gb18030",
    "cp949": "cp949",
    "cp950": "big5hkscs",
}
"""Labels that Resiliparse's table lacks."""
MULTIBYTE = ("gb18030", "cp932", "cp949", "big5hkscs", "euc_jp", "iso2022_jp")
MAX_DAMAGE = 0.05
"""Share of the characters beyond ASCII that a declared charset may fail to decode. A wrong charset fails at far more; a
few broken bytes are no reason to detect another one."""
WINDOWS = {
    "iso8859-1": "cp1252",
    "iso8859-2": "cp1250",
    "iso8859-4": "cp1257",
    "iso8859-7": "cp1253",
    "iso8859-9": "cp1254",
    "iso8859-13": "cp1257",
    "iso8859-15": "cp1252",
}
"""Charset of ISO -> the one of Windows that has letters for the bytes 80 to 9F, which are controls in ISO's."""
KOI8_U = re.compile(rb"[\xc0-\xff][\xa4\xa6\xa7\xad\xb4\xb6\xb7\xbd]|[\xa4\xa6\xa7\xad\xb4\xb6\xb7\xbd][\xc0-\xff]")
"""Ukrainian letters of KOI8-U beside others. In KOI8-R these bytes draw boxes."""
REPLACED = "\ufffd"


@dataclass(frozen=True, kw_only=True)
class DecodedPage:
    text: str
    charset: str
    """Python's name of the charset that decoded the page: "utf-8", "cp1252", "gb18030", …"""
    origin: str
    """Origin of the charset: "bom", "http", "meta" or "detected"."""
    disagrees: bool
    """Whether the header or the page declares a charset that is unknown, does not decode the page, or is refuted by
    valid UTF-8. Declarations after the one that is used are not compared."""
    replaced: int
    """Characters U+FFFD in place of bytes without a meaning in the charset."""


def decode_page(body: bytes, content_type: str | None = None) -> DecodedPage:
    """Return the text of a page and its charset.

    `body` is decompressed. `content_type` is the value of the HTTP header, such as "text/html; charset=windows-1251",
    or None. Raises nothing: each body has a text. Takes linear time.
    """
    for mark, charset in MARKS:
        if body.startswith(mark):
            return _page(body[len(mark) :], charset, "bom", disagrees=False)
    utf8, is_whole = _valid_utf8(body)
    decoded = utf8 if is_whole else None
    disagrees = False
    for origin, label in (("http", charset_in_header(content_type)), ("meta", charset_in_page(body))):
        if label is None:
            continue
        declared = charset_of_label(label)
        if origin == "meta" and declared in ("utf-16-le", "utf-16-be"):
            declared = "utf-8"  # the declaration itself was read as ASCII
        if declared and not _is_refuted(declared, utf8):
            page = _page(body, declared, origin, disagrees=disagrees, utf8=decoded)
            if _is_sound(page):
                return page
        disagrees = True
    wide = next((name for start, name in WITHOUT_MARK if body.startswith(start)), None)
    is_utf8 = utf8 is not None and (not utf8.isascii() or b"\x1b" not in body)
    charset = wide or ("utf-8" if is_utf8 else _detected(body))
    return _page(body, charset, "detected", disagrees=disagrees, utf8=decoded)


def charset_in_header(content_type: str | None) -> str | None:
    """Return the charset that a header Content-Type declares, as it is written; None without one."""
    match = HTTP.search(content_type or "")
    return match[1] if match else None


def charset_in_page(body: bytes) -> str | None:
    """Return the charset that a page declares in <meta> or <?xml?>, as it is written; None without one."""
    head = COMMENT.sub(b"", body[:HEAD_BYTES])
    match = META.search(head) or XML.match(head)
    return match[1].decode("ascii", "replace") if match else None


def charset_of_label(label: str) -> str | None:
    """Return Python's name of the charset that browsers mean by a label, as cp1252 by "latin1"; None if unknown."""
    from resiliparse.parse.encoding import map_encoding_to_html5

    name = map_encoding_to_html5(label, fallback_utf8=False)
    return LABELS.get(label.lower()) if name is None else WIDER.get(name, name)


def _valid_utf8(body: bytes) -> tuple[str | None, bool]:
    """Return the text of a body in UTF-8, and whether it is whole: its last character may be cut. None for others."""
    try:
        return body.decode(), True
    except UnicodeDecodeError as error:
        return body[: error.start].decode() if error.reason == "unexpected end of data" else None, False


def _beyond_ascii(text: str) -> int:
    return 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))


def _is_refuted(declared: str, utf8: str | None) -> bool:
    """Whether a page with characters beyond ASCII in valid UTF-8, `utf8`, cannot be in another, declared charset.

    Two to three characters of GBK can be valid UTF-8.
    """
    if declared == "utf-8" or utf8 is None:
        return False
    return _beyond_ascii(utf8) >= (4 if declared in MULTIBYTE else 1)


def _page(body: bytes, charset: str, origin: str, *, disagrees: bool, utf8: str | None = None) -> DecodedPage:
    """`utf8` is the body in UTF-8 if it is known, so that it is decoded once."""
    if charset == "utf-8" and utf8 is not None:
        return DecodedPage(text=utf8, charset=charset, origin=origin, disagrees=disagrees, replaced=0)
    try:
        text, replaced = body.decode(charset), 0
    except UnicodeDecodeError:
        text = body.decode(charset, "replace")
        replaced = text.count(REPLACED) - (body.count(REPLACED.encode()) if charset == "utf-8" else 0)
    return DecodedPage(text=text, charset=charset, origin=origin, disagrees=disagrees, replaced=replaced)


def _is_sound(page: DecodedPage) -> bool:
    """Whether a declared charset decodes a page, but for its last character and a few others."""
    damage = page.replaced - page.text.endswith(REPLACED)
    return damage <= 0 or damage <= MAX_DAMAGE * _beyond_ascii(page.text)


def _detected(body: bytes) -> str:
    """Return the charset by uchardet's statistics, corrected where bytes decide between two that are nearly equal."""
    from resiliparse.parse.encoding import detect_encoding

    # Without html5_compatible, as that returns utf-8 for what it does not know: cp949, for one.
    detected = detect_encoding(body, html5_compatible=False)
    charset = detected
    if detected is not None and detected not in WINDOWS:
        charset = charset_of_label(detected) or detected
    if charset == "koi8-r" and KOI8_U.search(body):
        return "koi8-u"
    if charset in WINDOWS and (charset == "iso8859-1" or re.search(rb"[\x80-\x9f]", body)):
        return WINDOWS[charset]
    if charset == "utf-8" and not _is_sound(_page(body, charset, "detected", disagrees=False)):
        return "cp1252"
    return charset if charset and _is_known(charset) else "cp1252"


def _is_known(charset: str) -> bool:
    try:
        codecs.lookup(charset)
    except LookupError:
        return False
    return True
