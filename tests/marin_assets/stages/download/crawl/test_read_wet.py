"""Texts of WET files become documents, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls import Read, reasons
from warc_files import DATE, conversion, info_record, member, members, record_id, response, warc_record

from marin_assets.stages.download.warc.record import CrawlError
from marin_resources.ray_tpu.shards.map_shards import ShardError

TEXTS = {f"https://example.org/{number}": f"Ünïcode {number}\n\r\nnext line \t\n" for number in range(40)}


def write(folder: Path, records: list[bytes]) -> Path:
    path = folder / "a.warc.wet.gz"
    path.write_bytes(members([info_record(), *records]))
    return path


def test_each_conversion_is_a_document(tmp_path: Path, read_texts: Read) -> None:
    path = write(tmp_path, [conversion(url, text) for url, text in TEXTS.items()])
    for shard_bytes in (10**6, 500):
        counts, documents = read_texts(path, shard_bytes=shard_bytes)
        assert [document.text for document in documents] == list(TEXTS.values())
        assert reasons(counts) == {"other_type": 1}
    url = next(iter(TEXTS))
    assert documents[0].source == "crawl"
    assert documents[0].metadata == {
        "url": url,
        "date": DATE,
        "languages": ["eng"],
        "refers_to": record_id(url).strip("<>").removeprefix("urn:uuid:"),
        "file": "a.warc.wet.gz",
        "offset": len(member(info_record())),
    }


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (conversion("https://a.org", "texto", "spa,eng"), "language"),
        (conversion("https://a.org", "text", ""), "language"),
        (conversion("https://a.org", " \n"), "empty"),
        (conversion("", "text"), "no_url"),
        (warc_record("conversion", b"\xff", {"WARC-Target-URI": "x", "WARC-Identified-Content-Language": "eng"}),
         "invalid_utf8"),
        (response("https://a.org", b"HTTP/1.1 200 OK\r\n\r\n<p>"), "other_type"),
    ],
)  # fmt: skip
def test_each_other_record_has_one_reason(tmp_path: Path, read_texts: Read, record: bytes, reason: str) -> None:
    path = write(tmp_path, [conversion("https://b.org", "one"), record, conversion("https://c.org", "two")])
    counts, documents = read_texts(path, languages=("eng",))
    assert [document.text for document in documents] == ["one", "two"]
    expected = {"other_type": 1}
    expected[reason] = expected.get(reason, 0) + 1
    assert reasons(counts) == expected


def test_a_cut_file_is_an_error(tmp_path: Path, read_texts: Read) -> None:
    path = write(tmp_path, [conversion(url, text) for url, text in TEXTS.items()])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ShardError, match=r"a\.warc\.wet\.gz' at byte \d+ is damaged and has no record after it"):
        read_texts(path)
    counts, documents = read_texts(path, allow_cut_files=True, max_damaged_fraction=0.1)
    assert len(documents) == len(TEXTS) - 1
    assert reasons(counts) == {"cut_record": 1, "other_type": 1}


def test_files_of_the_other_kind_are_a_sentence(tmp_path: Path, read_texts: Read, read: Read) -> None:
    warc = tmp_path / "a.warc.gz"
    warc.write_bytes(members([info_record(), response("https://a.org", b"HTTP/1.1 200 OK\r\n\r\n<p>")]))
    with pytest.raises(
        CrawlError, match=r"None of the 2 records of '.*a\.warc\.gz' is kept \(2 other_type\).* with read_warc"
    ):
        read_texts(warc)
    wet = write(tmp_path, [conversion("https://a.org", "text")])
    with pytest.raises(
        CrawlError, match=r"None of the 2 records of '.*' is kept \(2 .*\)\. [^.]*HTML\. Read WET files with read_wet"
    ):
        read(wet)
