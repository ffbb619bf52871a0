"""Responses of WARC files become pages; every other record is counted by its reason."""

from __future__ import annotations

import gzip
import logging
import random
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from crawls import Read, documents_of, reasons
from fastwarc.stream_io import Lz4Writer
from warc_files import (
    DATE,
    MODULES,
    OK,
    crawl_records,
    digest_of,
    html_page,
    info_record,
    member,
    members,
    page_records,
    record_id,
    response,
    url_of,
    warc_record,
    with_length,
)

from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

HTML = b"<html><body><p>Owls hunt at night.</p></body></html>"
URL = "https://example.org/owls"


def write(folder: Path, content: bytes, name: str = "a.warc.gz") -> Path:
    path = folder / "crawl" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_page_has_its_text_and_where_it_comes_from(tmp_path: Path, read: Read) -> None:
    write(tmp_path, members(crawl_records()))
    counts, pages = read(tmp_path / "crawl")
    assert [page.text for page in pages] == [html_page(module).decode() for module in MODULES]
    assert reasons(counts) == {"other_type": 1 + 2 * len(MODULES)}
    assert counts["files"] == 1
    assert counts["with_languages"] == len(MODULES)
    offset = len(member(info_record())) + len(member(page_records("abc")[0]))
    assert pages[0].id == record_id((url_of("abc"), OK + html_page("abc"))).strip("<>").removeprefix("urn:uuid:")
    assert pages[0].source == "crawl"
    assert pages[0].metadata == {
        "url": url_of("abc"),
        "date": DATE,
        "status": 200,
        "mime": "text/html",
        "charset": "utf-8",
        "digest": digest_of(html_page("abc")),
        "file": "a.warc.gz",
        "offset": offset,
        "charset_detected": "UTF-8",
        "languages": ["eng"],
        "language_shares": [0.97],
        "languages_reliable": True,
    }


def test_pages_are_read_by_html_to_markdown(tmp_path: Path, read: Read) -> None:
    write(tmp_path, members(crawl_records(["abc", "glob"])))
    read(tmp_path / "crawl")
    config = HtmlToMarkdownConfig(pages_path=str(tmp_path / "pages0"), output_path=str(tmp_path / "text"))
    counts = html_to_markdown(unwrap_versioned_value(config))
    assert counts["pages_kept"] == 2
    texts = documents_of(tmp_path / "text")
    assert {text.metadata["url"] for text in texts} == {url_of("abc"), url_of("glob")}
    assert "Abstract Base Classes" in texts[0].text


@pytest.mark.parametrize("shard_bytes", [1, 3000, 20_000, 10**6])
def test_the_pages_do_not_depend_on_the_division(tmp_path: Path, read: Read, shard_bytes: int) -> None:
    for number in range(3):
        write(tmp_path, members(crawl_records(MODULES[number * 4 : number * 4 + 4])), f"{number}.warc.gz")
    write(tmp_path, b"".join(crawl_records(["wave"])), "plain.warc")
    whole = read(tmp_path / "crawl", shard_bytes=10**9)
    counts, pages = read(tmp_path / "crawl", shard_bytes=max(shard_bytes, 700))
    assert pages == whole[1]
    assert counts == whole[0]


def test_the_pages_around_damage_do_not_depend_on_the_division(tmp_path: Path, read: Read) -> None:
    draw, records = random.Random(3), crawl_records(MODULES[:6])
    for _ in range(40):
        content = bytearray(members(records))
        at = draw.randrange(len(content) - 2000)
        content[at : at + draw.choice((1, 1, 1500))] = b"?" * draw.choice((1, 5))
        write(tmp_path, bytes(content) + bytes(draw.choice((0, 9))))
        whole = read(tmp_path / "crawl", max_damaged_fraction=1)
        assert read(tmp_path / "crawl", max_damaged_fraction=1, shard_bytes=draw.randrange(700, 5000)) == whole


def test_a_response_at_the_end_of_a_range_has_the_languages_of_the_record_behind_it(tmp_path: Path, read: Read) -> None:
    path = write(tmp_path, members(page_records("abc")))
    first_two = sum(len(member(record)) for record in page_records("abc")[:2])
    for shard_bytes in range(300, first_two):
        if round(path.stat().st_size / shard_bytes) == 2:
            break
    counts, (page,) = read(path, shard_bytes=shard_bytes)
    assert page.metadata["languages"] == ["eng"]
    assert counts["records"] == 3


def test_a_damaged_member_costs_one_record_and_is_named(
    tmp_path: Path, read: Read, caplog: pytest.LogCaptureFixture
) -> None:
    records = crawl_records(MODULES[:10])
    content = bytearray(members(records))
    offset = sum(len(member(record)) for record in records[:2])
    content[offset + 900] ^= 4
    write(tmp_path, bytes(content))
    with pytest.raises(CrawlError, match=r"1 of the 31 records of '.*crawl' are damaged \(1 damaged_record\)"):
        read(tmp_path / "crawl")
    with caplog.at_level(logging.WARNING):
        counts, pages = read(tmp_path / "crawl", max_damaged_fraction=0.1)
    assert f"'a.warc.gz' at byte {offset}: a record is lost (damaged_record" in caplog.text
    assert [page.metadata["url"] for page in pages] == list(map(url_of, MODULES[1:10]))
    assert reasons(counts) == {"damaged_record": 1, "other_type": 21}


@pytest.mark.parametrize("lost_bytes", [1, 5, 100])
def test_a_cut_file_is_an_error_unless_it_is_allowed(tmp_path: Path, read: Read, lost_bytes: int) -> None:
    write(tmp_path, members(crawl_records(["abc", "glob"]))[:-lost_bytes])
    with pytest.raises(ShardError, match=r"The file 'a\.warc\.gz' at byte \d+ is damaged and has no record after it"):
        read(tmp_path / "crawl")
    counts, pages = read(tmp_path / "crawl", allow_cut_files=True, max_damaged_fraction=0.5)
    assert len(pages) == 2
    assert reasons(counts) == {"cut_record": 1, "other_type": 4}
    assert "languages" not in pages[1].metadata


def test_zeros_after_the_last_record_are_damage(tmp_path: Path, read: Read) -> None:
    write(tmp_path, members(crawl_records(["abc"])) + bytes(512))
    with pytest.raises(CrawlError, match="1 damaged_record"):
        read(tmp_path / "crawl")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (response(URL, HTML), "no_http_header"),
        (response(URL, b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n" + HTML), "status"),
        (response(URL, OK + HTML, mime="application/pdf"), "mime"),
        (response(URL, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n%PDF-1.4 \x00\x01", mime=None), "mime"),
        (response(URL, b"HTTP/1.1 200 OK\r\n\r\nplain text", mime=None), "mime"),
        (response(URL, OK + b" \r\n"), "empty"),
        (response(URL, OK), "empty"),
        (response(URL, OK + b"x" * 10_000_001), "too_large"),
        (
            response(URL, OK[:-2] + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(bytes(20_000_000), mtime=0)),
            "too_large",
        ),
        (response("", OK + HTML), "no_url"),
        (response(URL, OK + HTML, WARC_Segment_Number="1"), "segmented"),
        (warc_record("revisit", OK + HTML, {"WARC-Target-URI": URL}), "other_type"),
        (warc_record("resource", HTML, {"WARC-Target-URI": URL}), "other_type"),
        (warc_record("", OK + HTML, {"WARC-Target-URI": URL}), "other_type"),
        (with_length(response(URL, OK + HTML), lambda size: size + 1000), "wrong_length"),
        (with_length(response(URL, OK + HTML), lambda size: size - 10), "wrong_length"),
        (with_length(response(URL, OK + HTML), lambda _: "many"), "no_warc_header"),
        (b"<html>", "no_warc_header"),
    ],
)
def test_each_other_record_has_one_reason_and_costs_no_other(
    tmp_path: Path, read: Read, record: bytes, reason: str
) -> None:
    write(tmp_path, members([*crawl_records(["abc"]), record, *crawl_records(["glob"])]))
    counts, pages = read(tmp_path / "crawl", max_damaged_fraction=0.5)
    assert [page.metadata["url"] for page in pages] == [url_of("abc"), url_of("glob")]
    expected = {"other_type": 6}
    expected[reason] = expected.get(reason, 0) + 1
    assert reasons(counts) == expected


@pytest.mark.parametrize(
    ("record", "note", "text"),
    [
        (response(URL, OK[:-2] + b"Content-Encoding: br\r\n\r\n" + HTML), "encoding_ignored", HTML.decode()),
        (response(URL, OK[:-2] + b"Transfer-Encoding: chunked\r\n\r\n" + b"5\r\n<html"), "encoding_cut", "<html"),
        (response(URL, b"HTTP/1.1 200 OK\n\n" + HTML, mime=None), "mime_sniffed", HTML.decode()),
        (response(URL, OK + HTML[:20], WARC_Truncated="length"), "cut_pages", HTML[:20].decode()),
        (response(URL, OK + "Eulen é am Abend".encode("cp1252")), "charset_disagrees", "Eulen é am Abend"),
        (response(URL, OK + ("é" * 20).encode() + b"\xff"), "characters_replaced", "é" * 20 + "\ufffd"),
    ],
)  # fmt: skip
def test_an_oddity_of_a_page_is_counted_and_the_page_is_kept(
    tmp_path: Path, read: Read, record: bytes, note: str, text: str
) -> None:
    write(tmp_path, member(record))
    counts, (page,) = read(tmp_path / "crawl")
    assert counts[note] == 1
    assert page.text == text


def test_a_record_without_an_id_has_the_file_and_the_offset_as_its_id(tmp_path: Path, read: Read) -> None:
    record = response(URL, OK + HTML).replace(b"WARC-Record-ID", b"X-Record-ID")
    write(tmp_path, members([info_record(), record]))
    _, (page,) = read(tmp_path / "crawl")
    assert page.id == f"a.warc.gz@{len(member(info_record()))}"


@pytest.mark.parametrize("kind", ["", ".zst", ".lz4", ".gz"])
def test_files_of_other_compressions_are_read(tmp_path: Path, read: Read, kind: str) -> None:
    content = b"".join(crawl_records(MODULES[:5]))
    path = write(tmp_path, b"", f"a.warc{kind}")
    if kind == ".lz4":
        with Lz4Writer(str(path)) as writer:
            writer.write(content)
    else:
        path.write_bytes({"": content, ".zst": zstandard.compress(content), ".gz": gzip.compress(content)}[kind])
    counts, pages = read(tmp_path / "crawl", shard_bytes=2000)
    assert [page.text for page in pages] == [html_page(module).decode() for module in MODULES[:5]]
    assert counts["records"] == 16
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ShardError, match="is damaged and has no record after it"):
        read(tmp_path / "crawl")


def test_a_file_that_is_no_warc_file_is_refused_by_its_first_bytes(tmp_path: Path, read: Read) -> None:
    path = write(tmp_path, b"<html>")
    with pytest.raises(ShardError, match=r"The file 'a\.warc\.gz' begins with b'<html>', expected a WARC file"):
        read(path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/b.txt").write_text("x")
    with pytest.raises(CrawlError, match=r"No WARC file exists below '.*': it has 'b\.txt'"):
        read(tmp_path / "other")


def test_a_warc_file_in_a_record_is_no_page_and_no_border(tmp_path: Path, read: Read) -> None:
    inner = members(crawl_records(["abc"]))
    outer = gzip.compress(response(URL, OK + inner, mime="application/warc"), compresslevel=0)
    content = members(crawl_records(["glob"])) + outer + members(crawl_records(["copy"]))
    path = write(tmp_path, content)
    _, pages = read(path)
    assert [page.metadata["url"] for page in pages] == [url_of("glob"), url_of("copy")]
    middle = content.index(inner)
    for parts in range(2, 40):
        borders = [len(content) * part // parts for part in range(1, parts)]
        if any(middle < border < middle + len(inner) - 300 for border in borders):
            with pytest.raises(ShardError, match="a WARC file in a WARC file"):
                read(path, shard_bytes=len(content) // parts)
            break
    else:
        raise AssertionError("no division has a border within the record")


def test_a_list_of_paths_names_the_files(tmp_path: Path, read: Read) -> None:
    names = [f"crawl-data/segments/{number}/warc/{number}.warc.gz" for number in range(6)]
    for number, name in enumerate(names):
        write(tmp_path, members(crawl_records([MODULES[number]])), name)
    base = str(tmp_path / "crawl")
    lists = [tmp_path / "warc.paths.gz", tmp_path / "warc.paths"]
    lists[0].write_bytes(gzip.compress("\n".join(names).encode()))
    lists[1].write_text("\n".join(reversed(names)) + "\n\n")
    for path in lists:
        _, pages = read(path, base_url=base)
        assert [page.metadata["file"] for page in pages] == names
    samples = [read(path, base_url=base, max_files=2)[1] for path in lists]
    assert len(samples[0]) == 2
    assert samples[0] == samples[1]
    assert read(tmp_path / "crawl", max_files=2)[0]["files"] == 2


def test_a_list_that_does_not_exist_is_one_sentence(tmp_path: Path, read: Read) -> None:
    with pytest.raises(CrawlError, match=r"The list '.*paths\.gz' does not exist"):
        read(tmp_path / "warc.paths.gz")


def test_files_without_a_page_are_refused(tmp_path: Path, read: Read) -> None:
    """As WET files: an output without pages would be taken for complete."""
    write(tmp_path, member(warc_record("conversion", b"Owls hunt at night.")))
    with pytest.raises(CrawlError, match=r"is kept \(1 other_type\)\. .* Read WET files with read_wet"):
        read(tmp_path / "crawl")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a/../../b.warc.gz\n", r"has the path 'a/\.\./\.\./b\.warc\.gz', expected one below its base"),
        (b"https://elsewhere.org/b.warc.gz\n", "expected one below its base"),
        (b"\n", "has no paths"),
        (gzip.compress(b"a.warc.gz\n", mtime=0)[:-3], "is damaged, cut or no text"),
        (b"\xff\xfe", "is damaged, cut or no text"),
        (b"missing.warc.gz\n", r"missing\.warc\.gz' does not exist, expected a file of the crawl"),
    ],
)
def test_a_list_that_cannot_be_used_is_a_sentence(tmp_path: Path, read: Read, content: bytes, sentence: str) -> None:
    (tmp_path / "warc.paths.gz").write_bytes(content)
    with pytest.raises(CrawlError, match=sentence):
        read(tmp_path / "warc.paths.gz", base_url=str(tmp_path))


def test_a_list_that_is_a_bomb_is_a_sentence(tmp_path: Path, read: Read) -> None:
    (tmp_path / "warc.paths.gz").write_bytes(gzip.compress(b"a") + gzip.compress(bytes(2**28)))
    with pytest.raises(CrawlError, match=r"is damaged, cut or no text .*it has more than"):
        read(tmp_path / "warc.paths.gz", base_url=str(tmp_path))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"shard_bytes": 0}, "shard_bytes is 0"),
        ({"max_damaged_fraction": 2.0}, "max_damaged_fraction is 2.0"),
        ({"max_files": 0}, "max_files is 0"),
        ({"output_format": ".csv"}, "csv"),
    ],
)
def test_a_wrong_field_is_refused(tmp_path: Path, read: Read, fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read(tmp_path, **fields)


FLAT = """
import sys
from marin_assets.stages.download.crawl.read_warc import ReadWarcConfig, read_warc
from marin_assets.step.values import unwrap_versioned_value
read_warc(unwrap_versioned_value(ReadWarcConfig(input_path=sys.argv[1], output_path=sys.argv[2])))
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.long
def test_memory_stays_flat_over_ten_times_the_input(tmp_path: Path) -> None:
    kilobytes = []
    for copies in (20, 200):
        write(tmp_path, members(crawl_records(copies=copies)), f"{copies}/a.warc.gz")
        command = [sys.executable, "-c", FLAT, str(tmp_path / f"crawl/{copies}"), str(tmp_path / f"out{copies}")]
        kilobytes.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    assert kilobytes[1] < kilobytes[0] + 20_000


def test_a_crawl_in_a_bucket_is_read(any_prefix: str, tmp_path: Path, read: Read) -> None:
    for name, content in {"a.warc.gz": members(crawl_records()), "b.warc": b"".join(crawl_records(["abc"]))}.items():
        write(tmp_path, content, name)
        write_bytes(join(any_prefix, "crawl", name), content)
    write_bytes(join(any_prefix, "warc.paths"), b"b.warc\na.warc.gz\n")
    whole = read(tmp_path / "crawl")
    assert read(join(any_prefix, "crawl"), shard_bytes=5000) == whole
    assert read(join(any_prefix, "warc.paths"), base_url=join(any_prefix, "crawl")) == whole
