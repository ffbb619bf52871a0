"""The bytes of a page become its text, by what it declares or by detection; a wrong declaration is a fact, no loss."""

from __future__ import annotations

import codecs
import importlib

import pytest

from marin_assets.documents.charset import DecodedPage, decode_page

CHARSETS = {
    "ru": ("cp1251", "koi8_r", "iso8859_5", "cp866"),
    "uk": ("cp1251", "koi8_u", "iso8859_5"),
    "bg": ("cp1251",),
    "pl": ("iso8859_2", "cp1250"),
    "cs": ("iso8859_2", "cp1250"),
    "el": ("iso8859_7", "cp1253"),
    "tr": ("iso8859_9", "cp1254"),
    "de": ("iso8859_1", "cp1252"),
    "fr": ("cp1252",),
    "he": ("iso8859_8", "cp1255"),
    "ja": ("cp932", "euc_jp", "iso2022_jp"),
    "ko": ("cp949",),
    "zh": ("gb18030",),
}
PAIRS = [(language, charset) for language, charsets in CHARSETS.items() for charset in charsets]
LABELS = {"cp932": "Shift_JIS", "cp949": "EUC-KR", "gb18030": "gb2312", "iso8859_1": "latin1", "cp866": "ibm866"}


def page_in(language: str, charset: str, head: str = "") -> tuple[str, bytes]:
    """Return a page of sentences of a language that have all their letters in the charset, and its bytes."""
    sentences = importlib.import_module(f"spacy.lang.{language}.examples").sentences
    lines = [sentence.encode(charset, "ignore").decode(charset) for sentence in sentences]
    page = f"<html><head>{head}<title>{lines[0]}</title></head>\n" + "".join(f"<p>{line}</p>\n" for line in lines * 3)
    return page, page.encode(charset)


def facts(page: DecodedPage) -> tuple[str, str, bool, int]:
    return page.charset, page.origin, page.disagrees, page.replaced


@pytest.mark.parametrize(("language", "charset"), [*PAIRS, ("hi", "utf-8"), ("en", "utf-8"), ("zh", "utf-8")])
def test_a_page_without_a_declaration_is_detected(language: str, charset: str) -> None:
    text, body = page_in(language, charset)
    page = decode_page(body)
    assert page.text == text, page.charset
    assert (page.origin, page.disagrees, page.replaced) == ("detected", False, 0)


@pytest.mark.parametrize(("language", "charset"), PAIRS)
def test_a_declared_charset_is_used_the_headers_before_the_pages(language: str, charset: str) -> None:
    label = LABELS.get(charset, codecs.lookup(charset).name)
    text, body = page_in(language, charset, f'<meta http-equiv="content-type" content="text/html; charset={label}">')
    page = decode_page(body)
    assert (page.text, page.origin, page.disagrees, page.replaced) == (text, "meta", False, 0)
    text, body = page_in(language, charset, "<meta charset=windows-1257>")
    page = decode_page(body, f'text/html; Charset="{label}"')
    assert (page.text, page.origin, page.disagrees, page.replaced) == (text, "http", False, 0)


def test_a_byte_order_mark_decides_before_all_declarations() -> None:
    marks = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
    for mark, charset in marks.items():
        text, body = page_in("pl", charset, "<meta charset=iso-8859-2>")
        page = decode_page(mark + body, "text/html; charset=koi8-r")
        assert (page.text, *facts(page)) == (text, charset, "bom", False, 0)
    text, body = page_in("pl", "utf-16-le")
    assert decode_page(body).text == text
    assert decode_page(body, "text/html; charset=utf-16").text == text


def test_a_declared_charset_that_does_not_decode_the_page_disagrees() -> None:
    text, body = page_in("ru", "cp1251", "<meta charset=utf-8>")
    page = decode_page(body)
    assert (page.text, *facts(page)) == (text, "cp1251", "detected", True, 0)
    text, body = page_in("ja", "euc_jp", "<meta charset=euc-jp>")
    page = decode_page(body, "text/html; charset=utf-8")
    assert (page.text, *facts(page)) == (text, "euc_jp", "meta", True, 0)
    text, body = page_in("de", "cp1252", "<meta charset='no-such-charset'>")
    page = decode_page(body)
    assert (page.text, *facts(page)) == (text, "cp1252", "detected", True, 0)


def test_valid_utf8_refutes_another_charset() -> None:
    """A server that adds iso-8859-1 to every page, and a page of a template in GBK."""
    for language, header in (("fr", "iso-8859-1"), ("zh", "gbk"), ("ru", "windows-1251")):
        text, body = page_in(language, "utf-8", "<meta charset='utf-8'>")
        page = decode_page(body, f"text/html; charset={header}")
        assert (page.text, *facts(page)) == (text, "utf-8", "meta", True, 0)
    assert decode_page(b"<p>plain</p>", "text/html; charset=iso-8859-1").disagrees is False


def test_broken_bytes_are_counted_and_do_not_change_the_charset() -> None:
    text, body = page_in("ru", "utf-8", "<meta charset='utf-8'>")
    page = decode_page(body.replace(b"</p>", b"\xff</p>", 2))
    assert facts(page) == ("utf-8", "meta", False, 2)
    assert page.text.replace("\ufffd", "") == text
    for cut in range(1, 8):  # as a crawler cuts a page at its limit of bytes
        page = decode_page(body[: body.rindex(b"</p>") - cut])
        assert facts(page)[:3] == ("utf-8", "meta", False)
        assert page.replaced <= 1
        assert text.startswith(page.text.rstrip("\ufffd"))


def test_a_declaration_in_a_comment_or_far_below_is_none() -> None:
    text, body = page_in("ru", "cp1251", "<!-- <meta charset=koi8-r> -->")
    assert decode_page(body).text == text
    text, body = page_in("ru", "cp1251", "<!-- " + "x" * 3000 + " --><meta charset=windows-1251>")
    assert facts(decode_page(body)) == ("cp1251", "meta", False, 0)
    assert decode_page(b'<?xml version="1.0" encoding="ISO-8859-2"?><p>\xb1</p>').text.endswith("<p>ą</p>")


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"\0" * 100, bytes(range(256)) * 40, b"<meta charset=" * 5000, b"\x1b$B" * 9]
)
def test_every_body_has_a_text(body: bytes) -> None:
    first = decode_page(body, "text/html; charset=" + "x" * 5000)
    assert first == decode_page(body, "text/html; charset=" + "x" * 5000)
    first.text.encode()
