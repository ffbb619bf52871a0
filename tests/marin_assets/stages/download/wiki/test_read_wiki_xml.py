"""Pages of XML dumps become documents of wikitext; every other page is counted by its reason."""

from __future__ import annotations

import bz2
import hashlib
import json
import logging
import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import wiki_xml
from crawl_server import CrawlServer
from crawls import Read, documents_of, reasons
from wiki_xml import END, HEAD, INDEX, NAME, drawn_pages, multistream, page, xml_of

from marin_assets.documents import Document
from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.stages.download.wiki.read_wiki_xml import ReadWikiXmlConfig, read_wiki_xml
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join


@pytest.fixture
def read_xml(tmp_path: Path) -> Read:
    """Read dumps; each call has an output of its own."""
    numbers = iter(range(1000))

    def run(source: Path | str, **fields: Any) -> tuple[dict[str, Any], list[Document]]:
        output = tmp_path / f"wikitext{next(numbers)}"
        config = ReadWikiXmlConfig(
            **{"input_path": str(source), "output_path": str(output), "source": "wiki", **fields}
        )
        counts = read_wiki_xml(unwrap_versioned_value(config))
        assert counts["articles"] == counts["pages"] + counts["rejected"]
        assert counts["rejected"] == sum(reasons(counts).values())
        assert not (output / ".marin/wiki").exists()
        documents = documents_of(output)
        assert len(documents) == counts["pages"]
        return counts, documents

    return run


def write(folder: Path, content: bytes | str, name: str = NAME) -> Path:
    path = folder / "dump" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_document_has_its_wikitext_and_what_the_dump_states_of_it(tmp_path: Path, read_xml: Read) -> None:
    write(tmp_path, multistream([page(22, "'''Owl''' & <ref>x</ref>", title="Owl (bird)", version=9)])[0])
    counts, (document,) = read_xml(tmp_path / "dump")
    assert counts["files"] == 1
    assert (document.id, document.source, document.text) == ("enwiki/22", "wiki", "'''Owl''' & <ref>x</ref>")
    assert document.metadata == {
        "url": "https://en.wikipedia.org/wiki/Owl_(bird)",
        "title": "Owl (bird)",
        "language": "en",
        "date": "2024-05-18T01:58:10Z",
        "wiki": "enwiki",
        "version": 9,
        "namespaces": {"6": "File", "14": "Category"},
    }


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (page(5, namespace=14), "namespace"),
        (page(5, extra='<redirect title="Owl" />'), "redirect"),
        (page(5, "#REDIRECT [[Owl]]"), "redirect"),
        (page(5, model="css"), "other_model"),
        (page(5, " "), "no_text"),
        (page(5, "x", attributes=' deleted="deleted"'), "no_text"),
        (page(5, "x" * 100_001), "too_large"),
        (page(5, title=" "), "bad_page"),
        (page(5).replace("<id>5</id>", "<id>five</id>", 1), "bad_page"),
        (page(5).replace("<id>7</id>", ""), "bad_page"),
        (page(5).replace("</title>", "</tile>"), "bad_page"),
        (page(5).replace("bird", "&owl;"), "bad_page"),
        (page(5).replace("</page>", ""), "bad_page"),
        (page(5).replace("bird", "\x01"), "bad_page"),
    ],
)
def test_each_other_page_has_one_reason_and_costs_no_other(
    tmp_path: Path, read_xml: Read, content: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, multistream([page(1), content, page(2)], a_stream=9)[0])
    with caplog.at_level(logging.WARNING):
        counts, documents = read_xml(tmp_path / "dump", max_damaged_fraction=0.5, max_page_bytes=100_000)
    assert [document.id for document in documents] == ["enwiki/1", "enwiki/2"]
    assert reasons(counts) == {reason: 1}
    assert (f"1 pages are lost ({reason}:" in caplog.text) == (reason == "bad_page")


def test_any_division_gives_the_same_documents_with_and_without_an_index(tmp_path: Path, read_xml: Read) -> None:
    content, index, _ = multistream(drawn_pages(40))
    write(tmp_path, content)
    write(tmp_path / "plain", xml_of(drawn_pages(40)), "enwiki.xml")
    whole = read_xml(tmp_path / "dump")[1]
    assert len(whole) == 40
    for _ in range(2):
        for shard_bytes in (900, 4001):
            assert read_xml(tmp_path / "dump", shard_bytes=shard_bytes)[1] == whole
            assert read_xml(tmp_path / "plain/dump", shard_bytes=shard_bytes)[1] == whole
        write(tmp_path, index, INDEX)
    assert read_xml(tmp_path / "dump")[0]["indexed_pages"] == 40


def test_streams_that_begin_within_a_page_are_read_by_any_division(tmp_path: Path, read_xml: Read) -> None:
    xml = xml_of(drawn_pages(60)).encode()
    draw = random.Random(9)
    borders = [0, *sorted(draw.sample(range(1, len(xml)), 40)), len(xml)]
    pairs = pairwise(borders)
    write(tmp_path, b"".join(bz2.compress(xml[start:end]) for start, end in pairs), "a.xml.bz2")
    whole = read_xml(tmp_path / "dump")[1]
    assert len(whole) == 60
    for shard_bytes in (300, 2001):
        assert read_xml(tmp_path / "dump", shard_bytes=shard_bytes)[1] == whole


def test_a_damaged_stream_costs_its_pages(tmp_path: Path, read_xml: Read, caplog: pytest.LogCaptureFixture) -> None:
    content, index, offsets = multistream(drawn_pages(60), a_stream=3)
    damaged = bytearray(content)
    damaged[offsets[4] + 60 : offsets[4] + 64] = b"\0\0\0\0"
    write(tmp_path, bytes(damaged))
    fields = {"max_damaged_fraction": 0.5}
    for shard_bytes in (10**9, 900):
        counts, documents = read_xml(tmp_path / "dump", shard_bytes=shard_bytes, **fields)
        assert [int(document.id.split("/")[1]) for document in documents] == [*range(12), *range(15, 60)]
        assert reasons(counts) == {"lost_stream": 1}
    assert f"'{NAME}' at byte {offsets[4]}: 1 pages are lost (lost_stream: " in caplog.text
    write(tmp_path, index, INDEX)
    for shard_bytes in (10**9, 900):
        counts, _ = read_xml(tmp_path / "dump", shard_bytes=shard_bytes, **fields)
        assert (counts["articles"], reasons(counts)) == (60, {"lost_stream": 3})
    with pytest.raises(CrawlError, match=r"3 of the 60 pages of '.*dump' are damaged \(3 lost_stream\)"):
        read_xml(tmp_path / "dump")


def test_a_file_that_is_cut_anywhere_is_an_error_unless_it_is_allowed(tmp_path: Path, read_xml: Read) -> None:
    draw = random.Random(4)
    content, _, offsets = multistream(drawn_pages(20))
    xml = xml_of(drawn_pages(20)).encode()
    single = bz2.compress(xml)
    cuts = [(NAME, content[:at]) for at in (offsets[3], offsets[-1] + 20, len(content) - 1)]
    cuts += [("a.xml", xml[: draw.randrange(len(HEAD) + 500, len(xml) - 3)]) for _ in range(4)]
    cuts += [("a.xml.bz2", single[:-4]), ("a.xml.bz2", bz2.compress(xml[: -len(END)]))]
    for number, (name, cut) in enumerate(cuts):
        place = write(tmp_path / str(number), cut, name).parent
        with pytest.raises(ShardError, match=rf"The file '{name}' is damaged or cut after [\d,]+ articles \("):
            read_xml(place)
        if number < 7:
            counts, documents = read_xml(place, allow_cut_files=True, max_damaged_fraction=1)
            assert counts["cut_files"] == 1
            assert len(documents) <= 20


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "utf-8-sig"])
def test_the_parser_finds_the_encoding(tmp_path: Path, read_xml: Read, encoding: str) -> None:
    xml = xml_of([page(n, "Käuze é") for n in range(9)])
    declared = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>{xml}'.encode(encoding)
    write(tmp_path, bz2.compress(declared), "a.xml.bz2")
    assert [document.text for document in read_xml(tmp_path / "dump", shard_bytes=100)[1]] == ["Käuze é"] * 9


def test_elements_are_matched_by_their_local_names(tmp_path: Path, read_xml: Read) -> None:
    xml = xml_of([page(1)]).replace("xmlns=", "xmlns:m=").replace("</", "</m:").replace("<", "<m:")
    write(tmp_path, xml.replace("<m:/m:", "</m:"), "a.xml")
    assert [document.id for document in read_xml(tmp_path / "dump")[1]] == ["enwiki/1"]


def test_of_several_revisions_the_newest_is_read(tmp_path: Path, read_xml: Read) -> None:
    first, second = page(1, "old", version=3), page(1, "new", version=8)
    revision = second[second.index("<revision>") : second.index("</page>")]
    write(tmp_path, xml_of([first.replace("</page>", f"{revision}</page>")]), "a.xml")
    assert [document.text for document in read_xml(tmp_path / "dump")[1]] == ["new"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("<feed></feed>", "has the root <feed>, expected <mediawiki>"),
        ("", "does not begin as an XML dump of a wiki"),
        ("<html>busy", "has the root <html>"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><mediawiki>', "declares entities"),
        ('<?xml version="1.0" encoding="owl"?><mediawiki>', "does not begin as an XML dump"),
        ("<mediawiki>" + " " * 5_000_000, "has no page in its first"),
    ],
)
def test_a_file_that_is_no_dump_is_refused(tmp_path: Path, read_xml: Read, content: str, sentence: str) -> None:
    write(tmp_path, content, "a.xml")
    with pytest.raises(ShardError, match=sentence):
        read_xml(tmp_path / "dump")


def test_an_empty_result_and_two_forms_of_one_dump_are_refused(tmp_path: Path, read_xml: Read) -> None:
    write(tmp_path, xml_of([page(1, namespace=3)]), "a.xml")
    with pytest.raises(CrawlError, match=r"None of the 1 articles of '.*' is kept \(1 namespace\)\. Expected articles"):
        read_xml(tmp_path / "dump")
    assert read_xml(tmp_path / "dump", namespaces=())[0]["pages"] == 1
    write(tmp_path, bz2.compress(xml_of([page(1)]).encode()), "b.xml.bz2")
    with pytest.raises(CrawlError, match=r"1 pages occur twice below '.*dump', expected"):
        read_xml(tmp_path / "dump", namespaces=())
    write(tmp_path, b"", "a.xml.bz2")
    with pytest.raises(CrawlError, match=r"The files 'a\.xml' and 'a\.xml\.bz2' have the same pages"):
        read_xml(tmp_path / "dump")
    write(tmp_path / "none", b"", "x-index.txt.bz2")
    with pytest.raises(CrawlError, match="No dump in XML exists below"):
        read_xml(tmp_path / "none/dump")


def test_checksums_are_compared(tmp_path: Path, read_xml: Read) -> None:
    content, index, _ = multistream(drawn_pages(4))
    write(tmp_path, content)
    write(tmp_path, index, INDEX)
    sums = "".join(f"{hashlib.sha1(data).hexdigest()}  {name}\n" for name, data in ((NAME, content), (INDEX, index)))
    path = write(tmp_path, sums, "enwiki-20240520-sha1sums.txt")
    counts, _ = read_xml(tmp_path / "dump")
    assert (counts["verified_files"], counts["ignored_files"]) == (2, 0)
    write(tmp_path, content + b"\0")
    with pytest.raises(CrawlError, match=rf"The file '{NAME}' has the SHA-1 '\w+', expected '\w+' by its checksums"):
        read_xml(tmp_path / "dump")
    path.write_text("busy")
    with pytest.raises(CrawlError, match="has no lines of a SHA-1 and a name"):
        read_xml(tmp_path / "dump")
    with pytest.raises(CrawlError, match=r"The file of checksums '.*none' does not exist"):
        read_xml(tmp_path / "dump", checksums_path=str(tmp_path / "none"))


@pytest.mark.parametrize("index", [b"x", bz2.compress(b"1:2:a\nowl\n"), bz2.compress(b"1:2:a\n")[:-3]])
def test_a_damaged_index_is_refused(tmp_path: Path, read_xml: Read, index: bytes) -> None:
    write(tmp_path, multistream(drawn_pages(2))[0])
    write(tmp_path, index, INDEX)
    with pytest.raises(ShardError, match=r"[Ii]ndex"):
        read_xml(tmp_path / "dump")


def test_a_dump_on_a_server_and_in_a_bucket_is_read_through_its_faults(
    any_prefix: str, tmp_path: Path, read_xml: Read, server: CrawlServer
) -> None:
    content, index, _ = multistream(drawn_pages(40))
    write(tmp_path, content)
    whole = read_xml(tmp_path / "dump")[1]
    server.files = {NAME: content, INDEX: index, "parts.paths": f"{NAME}\n{INDEX}\n".encode()}
    server.fault(NAME, "busy", "cut", "ignore_range")
    assert read_xml(server.url + NAME, shard_bytes=4000)[1] == whole
    counts, documents = read_xml(server.url + "parts.paths", base_url=server.url, shard_bytes=4000)
    assert (counts["indexed_pages"], documents) == (40, whole)
    write_bytes(join(any_prefix, "dump", NAME), content)
    assert read_xml(join(any_prefix, "dump"), shard_bytes=4000)[1] == whole


@pytest.mark.long
def test_memory_stays_flat_over_ten_times_the_input(tmp_path: Path) -> None:
    draw, kilobytes = random.Random(5), []
    for copies in (400, 4000):
        pages = [page(number, draw.randbytes(10_000).hex()) for number in range(copies)]
        write(tmp_path / str(copies), bz2.compress(xml_of(pages).encode(), 1), "a.xml.bz2")
        fields = {"input_path": str(tmp_path / f"{copies}/dump"), "output_path": str(tmp_path / f"out{copies}")}
        code = (
            f"import runpy, sys; sys.argv[1:] = [{json.dumps(fields)!r}]; "
            f"runpy.run_path({wiki_xml.__file__!r}, run_name='__main__'); "
            "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
        )
        output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        kilobytes.append(int(output.split("\n")[1]))
    assert kilobytes[1] < kilobytes[0] + 60_000  # a block of bzip2 is held
