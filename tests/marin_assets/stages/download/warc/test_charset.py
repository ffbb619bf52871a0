"""The text of a page: BOM, then HTTP, then <meta>, then detection; a charset counts only if the page is valid in it."""

from __future__ import annotations

import codecs

import pytest

from marin_assets.stages.download.warc.charset import decode_page

RUSSIAN = "<p>Совы охотятся ночью, потому что их глаза видят в темноте.</p>" * 5
TEXTS = {
    "shift_jis": "フクロウは夜に狩りをする。目が暗闇で見えるからである。",
    "euc-jp": "フクロウは夜に狩りをする。",
    "iso-2022-jp": "フクロウは夜に狩りをする。",
    "gb18030": "猫头鹰在夜间捕猎。",
    "big5": "貓頭鷹在夜間捕獵。",
    "euc-kr": "올빼미는 밤에 사냥한다.",
    "windows-1251": RUSSIAN,
    "koi8-u": "Сови полюють уночі, їхні очі бачать у темряві.",
    "iso-8859-2": "Sowy polują w nocy, ponieważ widzą w ciemności.",
    "windows-1252": "Hiboux, œuvres et naïveté – « la nuit ».",
    "iso-8859-9": "Baykuşlar gece avlanır, çünkü karanlıkta görürler.",
}


@pytest.mark.parametrize("charset", TEXTS)
def test_a_declared_charset_is_taken_from_http_and_from_the_page(charset: str) -> None:
    page = f'<html><head><meta charset="{charset}"></head><body>{TEXTS[charset]}</body></html>'
    old = f'<meta http-equiv="Content-Type" content="text/html; charset={charset}"><p>{TEXTS[charset]}</p>'
    for text, header in ((page, "text/html"), (old, ""), (TEXTS[charset], f"text/html; charset='{charset.upper()}'")):
        decoded = decode_page(text.encode(charset), header)
        assert decoded.text == text
        assert not decoded.disagrees


def test_a_charset_that_is_not_declared_is_detected() -> None:
    assert decode_page(RUSSIAN.encode("cp1251"), "text/html").text == RUSSIAN
    assert decode_page(RUSSIAN.encode(), "").charset == "utf-8"
    assert decode_page(TEXTS["shift_jis"].encode("shift_jis"), "").text == TEXTS["shift_jis"]


@pytest.mark.parametrize("bom", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
def test_a_byte_order_mark_comes_before_all_declarations(bom: bytes) -> None:
    codec = {3: "utf-8"}.get(len(bom), "utf-16-le" if bom == codecs.BOM_UTF16_LE else "utf-16-be")
    decoded = decode_page(bom + RUSSIAN.encode(codec), "text/html; charset=koi8-r")
    assert (decoded.text, decoded.charset, decoded.disagrees) == (RUSSIAN, codec, False)


@pytest.mark.parametrize("label", ["utf-8", "nonsense", "hex", "zlib", "unicode_escape", "utf-7", "euc-kr"])
def test_a_declared_charset_in_which_the_page_is_not_valid_is_noted_and_the_next_one_is_tried(label: str) -> None:
    page = "<meta charset=koi8-r>" + RUSSIAN
    decoded = decode_page(page.encode("koi8-r"), f"text/html; charset={label}")
    assert (decoded.text, decoded.charset, decoded.disagrees) == (page, "koi8-r", True)


def test_http_comes_before_the_page() -> None:
    page = "<meta charset=koi8-r>" + RUSSIAN
    assert decode_page(page.encode("cp1251"), "text/html; charset=windows-1251").text == page


def test_a_letter_that_a_crawl_has_cut_is_left_out_and_a_broken_one_is_replaced() -> None:
    cut = RUSSIAN.encode()[:34]
    decoded = decode_page(cut, "text/html; charset=utf-8", is_cut=True)
    assert (decoded.text, decoded.disagrees, decoded.is_replaced) == (cut.decode(errors="ignore"), False, False)
    decoded = decode_page(cut + b"</p>" + RUSSIAN.encode(), "text/html; charset=utf-8")
    assert decoded.text.endswith("\ufffd</p>" + RUSSIAN)
    assert (decoded.charset, decoded.disagrees, decoded.is_replaced) == ("utf-8", True, True)


def test_the_form_utf_16_in_a_page_of_bytes_is_utf_8() -> None:
    assert decode_page(b"<meta charset=utf-16>" + RUSSIAN.encode(), "").text.endswith(RUSSIAN)
