"""Articles of HTML dumps become pages; every other line is counted by its reason."""

from __future__ import annotations

import gzip
import json
import logging
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import wiki_dumps
from crawl_server import CrawlServer
from crawls import Read, documents_of, reasons
from wiki_dumps import LICENSE, article, dump_of, html_of, lines_of, tar_of

from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.stages.download.wiki.read_wiki_html import ReadWikiHtmlConfig, read_wiki_html
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

NAME = "enwiki-NS0-20240520-ENTERPRISE-HTML.json.tar.gz"


def write(folder: Path, content: bytes, name: str = NAME) -> Path:
    path = folder / "dump" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_page_has_its_html_and_what_the_dump_states_of_it(tmp_path: Path, read: Read) -> None:
    row = article(22, version=9)
    write(tmp_path, dump_of([row]))
    counts, (page,) = read(tmp_path / "dump")
    assert counts["files"] == 1
    assert page.id == "enwiki/22"
    assert page.source == "wiki"
    assert page.text == row["article_body"]["html"]
    assert page.metadata == {
        "url": "https://en.wikipedia.org/wiki/Article_22",
        "title": "Article 22",
        "language": "en",
        "date": "2024-05-18T01:58:10Z",
        "license": [LICENSE["name"]],
        "categories": ["Owls"],
        "redirects": 1,
        "wiki": "enwiki",
        "version": 9,
    }


def test_the_greatest_version_is_kept_wherever_it_is(tmp_path: Path, read: Read) -> None:
    first = [article(1, version=5), article(2, version=5), article(3, version=5), article(1, version=7)]
    other = [article(2, version=6), article(3, version=4), article(4), article(1, version=6)]
    german = article(1, version=1, is_part_of={"identifier": "dewiki"})
    write(tmp_path, dump_of(first, [german]), "a.tar.gz")
    write(tmp_path, dump_of(other), "b.tar.gz")
    for shard_bytes in (1, 10**9):
        counts, pages = read(tmp_path / "dump", shard_bytes=shard_bytes)
        assert [(page.id, page.metadata["version"]) for page in pages] == [
            ("enwiki/3", 5), ("enwiki/1", 7), ("dewiki/1", 1), ("enwiki/2", 6), ("enwiki/4", 1),
        ]  # fmt: skip
        assert reasons(counts) == {"superseded": 4}


def test_the_first_of_equal_versions_is_kept(tmp_path: Path, read: Read) -> None:
    write(tmp_path, dump_of([article(1, body="<p>first</p>"), article(1, body="<p>second</p>")]))
    counts, (page,) = read(tmp_path / "dump")
    assert "first" in page.text
    assert reasons(counts) == {"superseded": 1}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (article(5, namespace={"identifier": 14}), "namespace"),
        (article(5, article_body={"wikitext": "text"}), "no_html"),
        (article(5, article_body=None), "no_html"),
        (article(5, article_body={"html": " \n"}), "no_html"),
        (article(5, body="x" * 20_000_000), "too_large"),
        (
            article(5, article_body={"html": html_of('<p><link rel="mw:PageProp/redirect" href="./Owl"/></p>')}),
            "redirect",
        ),
        (article(5, body='<p>Owl is</p><meta property="mw:PageProp/disambiguation"/>'), "disambiguation"),
        (article(5, body='<div id="disambigbox" class="metadata dmbox">x</div>'), "disambiguation"),
        (article(5, name=None), "bad_article"),
        (article(5, identifier="5"), "bad_article"),
        (article(5, identifier=2**63), "bad_article"),
        (article(5, identifier=True), "bad_article"),
        (article(5, version={}), "bad_article"),
        (article(5, version=[3]), "bad_article"),
        (b'{"name": "Owl", "identifier"', "bad_line"),
        (b"[1]", "bad_line"),
        (b"\xff\xfe", "bad_line"),
        (b"[" * 100_000, "bad_line"),
        (b"x" * (64 * 2**20 + 1), "line_too_long"),
    ],
)
def test_each_other_line_has_one_reason_and_costs_no_other(
    tmp_path: Path, read: Read, row: Mapping[str, Any] | bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, dump_of([article(1), b"", row, article(2)]))
    with caplog.at_level(logging.WARNING):
        counts, pages = read(tmp_path / "dump", max_damaged_fraction=0.5)
    assert [page.id for page in pages] == ["enwiki/1", "enwiki/2"]
    assert reasons(counts) == {reason: 1}
    is_damage = reason in ("bad_article", "bad_line", "line_too_long")
    assert (f"'{NAME}' 'enwiki_0.ndjson' line 3: an article is lost ({reason}:" in caplog.text) == is_damage


def test_fields_of_other_types_are_left_out(tmp_path: Path, read: Read) -> None:
    write(tmp_path, dump_of([article(1, url=3, license={}, categories=[3, {}], redirects="x", is_part_of=None)]))
    _, (page,) = read(tmp_path / "dump")
    metadata = page.metadata
    assert page.id == "1"
    assert [metadata[name] for name in ("url", "license", "categories", "redirects")] == ["", [], [], 0]


def test_many_damaged_lines_fail_the_stage(tmp_path: Path, read: Read) -> None:
    write(tmp_path, dump_of([article(1), b"{"]))
    with pytest.raises(CrawlError, match=r"1 of the 2 lines of '.*dump' are damaged \(1 bad_line\)"):
        read(tmp_path / "dump")


def test_an_archive_that_is_cut_anywhere_is_an_error_unless_it_is_allowed(tmp_path: Path, read: Read) -> None:
    draw = random.Random(4)
    whole = dump_of(*([article(n * 10 + k, body=f"<p>{draw.random()}</p>" * 20) for k in range(5)] for n in range(4)))
    tar = gzip.decompress(whole)
    second = next(at for at in range(512, len(tar), 512) if tar[at:].startswith(b"enwiki_1"))
    cuts = [gzip.compress(tar[:at]) for at in (second, second + 512, second + 900, second - 100)]
    cuts += [whole[:-1], whole[:-8], *(whole[: draw.randrange(100, len(whole))] for _ in range(6))]
    cuts += [gzip.compress(tar[:second] + b"?" * 512 + tar[second + 512 :])]
    flipped = bytearray(whole)
    flipped[-6] ^= 1  # the checksum
    for content in [*cuts, bytes(flipped)]:
        write(tmp_path, content)
        with pytest.raises(ShardError, match=r"ENTERPRISE-HTML\.json\.tar\.gz' is damaged or cut after \d+ articles"):
            read(tmp_path / "dump")
        counts, pages = read(tmp_path / "dump", allow_cut_files=True)
        assert counts["cut_files"] == 1
        assert len(pages) == counts["articles"] <= 20


def test_an_archive_without_its_last_blocks_is_cut(tmp_path: Path, read: Read) -> None:
    tar = tar_of({"a.ndjson": lines_of([article(1)])})
    write(tmp_path, tar[: -len(tar) % 512 or None].rstrip(b"\0") + b"\0" * 300, "a.tar")
    with pytest.raises(ShardError, match="is damaged or cut after"):
        read(tmp_path / "dump")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tar.gz", b""),
        ("a.ndjson", b""),
        ("a.tar.gz", b"<html>busy</html>"),
        ("a.tar.gz", gzip.compress(b"{}\n", mtime=0)),
    ],
)
def test_a_file_that_is_no_dump_is_refused(tmp_path: Path, read: Read, name: str, content: bytes) -> None:
    write(tmp_path, content, name)
    with pytest.raises(ShardError, match=rf"The file '{name}' is damaged or cut after 0 articles \(it "):
        read(tmp_path / "dump")


@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.gz", "a.tar", "a.tar.gz", "a.tgz"])
def test_files_of_other_kinds_are_read(tmp_path: Path, read: Read, name: str) -> None:
    lines = lines_of([article(1), article(2)])
    content = lines if "ndjson" in name else tar_of({"enwiki_0.ndjson": lines})
    write(tmp_path, gzip.compress(content) if name.endswith("gz") else content, name)
    assert [page.id for page in read(tmp_path / "dump")[1]] == ["enwiki/1", "enwiki/2"]


def test_other_members_and_files_are_counted(tmp_path: Path, read: Read) -> None:
    members = {"README": b"x" * 2**20, "../../escape.ndjson": lines_of([article(1)]), "x/": b""}
    write(tmp_path, gzip.compress(tar_of(members)))
    write(tmp_path, b"x", "notes.txt")
    counts, pages = read(tmp_path / "dump")
    assert [page.id for page in pages] == ["enwiki/1"]
    assert counts["ignored_members"] == 2
    assert counts["ignored_files"] == 1
    assert not (tmp_path.parent / "escape.ndjson").exists()
    write(tmp_path / "other", b"x", "b.txt")
    with pytest.raises(CrawlError, match=r"No dump file exists below '.*': it has 'b\.txt'. Expected names that end"):
        read(tmp_path / "other/dump")


def test_a_header_that_claims_gigabytes_is_refused(tmp_path: Path, read: Read) -> None:
    tar = bytearray(tar_of({"././@PaxHeader": b""})[:512])
    tar[124:136] = b"00400000000\0"  # 512 MiB
    tar[156:157] = b"x"
    tar[148:156] = b" " * 8
    tar[148:156] = b"%06o\0 " % sum(tar)
    write(tmp_path, gzip.compress(bytes(tar) + bytes(2**22)))
    with pytest.raises(ShardError, match="has headers of more than 1048576 bytes before a member"):
        read(tmp_path / "dump")


def test_a_bomb_is_one_line_too_long(tmp_path: Path, read: Read) -> None:
    write(tmp_path, gzip.compress(tar_of({"a.ndjson": b" " * 2**27 + b"\n" + lines_of([article(1)])})))
    counts, pages = read(tmp_path / "dump", max_damaged_fraction=0.5)
    assert reasons(counts) == {"line_too_long": 1}
    assert len(pages) == 1


def test_a_dump_on_a_server_and_in_a_list_is_read_through_its_faults(
    tmp_path: Path, read: Read, server: CrawlServer
) -> None:
    draw = random.Random(6)
    content = dump_of([article(n, body=f"<p>{draw.randbytes(40_000).hex()}</p>") for n in range(20)])
    whole = read(write(tmp_path, content))
    server.files = {NAME: content, "runs.paths": f"{NAME}\n".encode()}
    server.fault(NAME, "busy", "cut", "hang_up", "ignore_range", "cut")
    counts, pages = read(server.url + NAME)
    assert pages == whole[1]
    assert counts["retries"] >= 1  # the others are of the listing
    assert read(server.url + "runs.paths", base_url=server.url)[1] == whole[1]


def test_a_dump_in_a_bucket_is_read(any_prefix: str, tmp_path: Path, read: Read) -> None:
    content = dump_of([article(1), article(1, version=2)], [article(3)])
    whole = read(write(tmp_path, content))
    write_bytes(join(any_prefix, "dump", NAME), content)
    assert read(join(any_prefix, "dump")) == whole


def test_a_dump_without_pages_is_no_error(any_prefix: str, tmp_path: Path, read: Read) -> None:
    write_bytes(join(any_prefix, "dump", NAME), dump_of([article(1, article_body={})], []))
    config = ReadWikiHtmlConfig(input_path=join(any_prefix, "dump"), output_path=join(any_prefix, "pages"))
    counts = read_wiki_html(unwrap_versioned_value(config))
    assert (counts["articles"], counts["pages"], counts["rejected_no_html"]) == (1, 0, 1)


def test_a_stage_that_ends_while_it_removes_its_hidden_files_reads_again(
    tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [article(1), article(2), article(1, version=2)]
    write(tmp_path, dump_of(rows))
    whole = read(tmp_path / "dump", shard_bytes=1)
    output = str(tmp_path / "again")
    fields = {"input_path": str(tmp_path / "dump"), "output_path": output, "source": "wiki", "shard_bytes": 1}
    config = unwrap_versioned_value(ReadWikiHtmlConfig(**fields))

    def killed(path: str) -> None:
        raise KeyboardInterrupt(path)

    with monkeypatch.context() as patch:
        patch.setattr("marin_assets.stages.download.crawl.two_phases.remove_folder", killed)
        with pytest.raises(KeyboardInterrupt):
            read_wiki_html(config)
    assert (read_wiki_html(config), documents_of(output)) == whole


@pytest.mark.parametrize("field", ["shard_bytes", "max_page_bytes", "max_connections"])
def test_a_wrong_field_is_refused(tmp_path: Path, read: Read, field: str) -> None:
    with pytest.raises(CrawlError, match=f"{field} is 0"):
        read(tmp_path, **{field: 0})


@pytest.mark.long
def test_memory_stays_flat_over_ten_times_the_input(tmp_path: Path) -> None:
    draw, kilobytes = random.Random(5), []
    for copies in (30, 300):
        rows = [article(number, body=f"<p>{draw.randbytes(100_000).hex()}</p>") for number in range(copies)]
        write(tmp_path, dump_of(rows), f"{copies}/a.tar.gz")
        fields = {"input_path": str(tmp_path / f"dump/{copies}"), "output_path": str(tmp_path / f"out{copies}")}
        code = (
            f"import runpy, sys; sys.argv[1:] = [{json.dumps(fields)!r}]; "
            f"runpy.run_path({wiki_dumps.__file__!r}, run_name='__main__'); "
            "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
        )
        output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        kilobytes.append(int(output.split("\n")[1]))
    assert kilobytes[1] < kilobytes[0] + 20_000
