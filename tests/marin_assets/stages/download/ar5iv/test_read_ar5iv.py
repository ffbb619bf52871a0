"""Members of zip archives become pages; every other member is counted by its reason, and costs no other one."""

from __future__ import annotations

import io
import json
import logging
import random
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import latexml_papers
import pytest
from crawls import Read, documents_of, reasons
from latexml_papers import papers, write_archive

from marin_assets.stages.download.ar5iv.papers import paper_of, set_of
from marin_assets.stages.download.ar5iv.read_ar5iv import ReadAr5ivConfig, read_ar5iv
from marin_assets.stages.download.ar5iv.zip_directory import entries_of
from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

NAME = "ar5iv-04-2024-no-problem.zip"
PAGE = "<html><p>Owls hunt at night.</p></html>"


class Bytes:
    """A file in memory, of which a read returns few bytes."""

    def __init__(self, content: bytes) -> None:
        self.content, self.size_bytes = content, len(content)

    def read_at(self, offset: int, size: int) -> bytes:
        return self.content[offset : offset + min(size, 1000)]


def damaged(folder: Path, at: int, patch: bytes, *, count: int = 3, stored: bool = False) -> Path:
    """An archive of which the second member's bytes are replaced from `at` on, counted from its local header."""
    path = folder / "zip" / NAME
    path.parent.mkdir(exist_ok=True)
    kind = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in papers(count).items():
            archive.writestr(name, content)
        offset = archive.infolist()[1].header_offset
    data = bytearray(path.read_bytes())
    data[offset + at : offset + at + len(patch)] = patch
    path.write_bytes(data)
    return path.parent


def test_a_page_has_its_html_and_what_its_name_states(tmp_path: Path, read: Read) -> None:
    members = {
        "2105/2105.04404.html": PAGE,
        "9107/hep-lat9107001.html": "\ufeff" + PAGE,
        "0704.0001v3.html": PAGE + "ö",
    }
    write_archive(tmp_path / "zip" / NAME, {"2105/": "", **members, "README.md": "x"})
    counts, pages = read(tmp_path / "zip")
    assert [(page.id, page.text) for page in pages] == [
        ("2105.04404", PAGE), ("hep-lat/9107001", PAGE), ("0704.0001", PAGE + "ö"),
    ]  # fmt: skip
    assert (counts["files"], counts["members"], counts["ignored_members"]) == (1, 3, 2)
    assert pages[1].source == "ar5iv"
    assert pages[1].metadata == {
        "url": "https://arxiv.org/abs/hep-lat/9107001",
        "date": "1991-07",
        "set": "no-problem",
        "file": NAME,
        "member": "9107/hep-lat9107001.html",
    }
    assert pages[2].metadata["version"] == 3


@pytest.mark.parametrize(
    ("member", "id"),
    [
        ("2105/2105.04404.html", "2105.04404"),
        ("0704/0704.0001.html", "0704.0001"),
        ("a/b/2105.04404v12.html", "2105.04404"),
        ("0001/astro-ph0001001.html", "astro-ph/0001001"),
        ("0001/astro-ph_0001001.html", "astro-ph/0001001"),
        ("math/0309136.html", "math/0309136"),
        ("0309/math.GT0309136.html", "math/0309136"),
        ("0709/cond-mat.0709001.html", "cond-mat/0709001"),
        ("2113/2113.00001.html", None),
        ("2105/index.html", None),
        ("2105/2105.1.html", None),
        ("2105/2105.04404.htm", None),
        (".html", None),
    ],
)
def test_the_id_of_a_paper_is_that_of_arxiv(member: str, id: str | None) -> None:
    paper = paper_of(member)
    assert (paper and paper.id) == id


def test_the_set_is_in_the_name_of_the_archive() -> None:
    names = ["ar5iv-04-2024-no-problem.zip", "x/ar5iv-04-2024-warnings.zip", "ar5iv-04-2024-error.zip", "papers.zip"]
    assert [set_of(name) for name in names] == ["no-problem", "warning", "error", ""]


def test_a_paper_that_is_there_twice_is_kept_in_its_greatest_version(tmp_path: Path, read: Read) -> None:
    write_archive(tmp_path / "zip/a-error.zip", [("2105.00001v2.html", "old"), ("2105.00002.html", "one")])
    write_archive(
        tmp_path / "zip/b-warning.zip",
        [("2105/2105.00002.html", "two"), ("2105.00001v10.html", "new"), ("2105.00001v3.html", "x"),
         ("2105.00003.html", "")],
    )  # fmt: skip
    for shard_bytes in (1, 10**9):
        counts, pages = read(tmp_path / "zip", shard_bytes=shard_bytes)
        assert [(page.id, page.text, page.metadata["set"]) for page in pages] == [
            ("2105.00002", "one", "error"), ("2105.00001", "new", "warning"),
        ]  # fmt: skip
        assert reasons(counts) == {"duplicate": 3, "empty": 1}


@pytest.mark.parametrize(
    ("at", "patch", "stored", "reason"),
    [
        (0, b"XX", False, "bad_header"),
        (30, b"x", False, "bad_header"),
        (26, b"\xff\xff", False, "bad_header"),
        (50, b"\xff\xff", False, "bad_deflate"),
        (500, b"?", True, "bad_checksum"),
    ],
)
def test_a_damaged_member_costs_no_other(
    tmp_path: Path, read: Read, at: int, patch: bytes, stored: bool, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = damaged(tmp_path, at, patch, stored=stored)
    with caplog.at_level(logging.WARNING):
        counts, pages = read(folder, max_damaged_fraction=0.5)
    assert [page.id for page in pages] == ["2105.00000", "2105.00002"]
    assert reasons(counts) == {reason: 1}
    assert f"'{NAME}' '2105/2105.00001.html': a member is lost ({reason}:" in caplog.text
    with pytest.raises(CrawlError, match=rf"1 of the 3 members of '.*zip' are damaged \(1 {reason}\)"):
        read(folder)


def test_any_flipped_byte_of_the_members_is_counted_or_without_effect(tmp_path: Path, read: Read) -> None:
    draw = random.Random(3)
    folder = damaged(tmp_path, 0, b"", count=4)
    whole = (folder / NAME).read_bytes()
    expected = dict(zip(range(4), papers(4).values(), strict=True))
    end = zipfile.ZipFile(io.BytesIO(whole)).start_dir
    for _ in range(60):
        data = bytearray(whole)
        data[draw.randrange(end)] ^= 1 << draw.randrange(8)
        (folder / NAME).write_bytes(data)
        counts, pages = read(folder, max_damaged_fraction=1)
        assert counts["rejected"] <= 1
        assert all(expected[int(page.id[-5:])] == page.text for page in pages)


def directory_field(content: bytes, number: int, at: int, value: bytes) -> bytes:
    """An archive in whose directory a field of an entry is replaced."""
    start = -1
    for _ in range(number + 1):
        start = content.index(b"PK\1\2", start + 1)
    return content[: start + at] + value + content[start + at + len(value) :]


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (8, b"\1\0", "encrypted"),
        (10, b"\x0c\0", "unknown_method"),
        (16, b"\0\0\0\0", "bad_checksum"),
        (20, b"\xff\xff\xff\x7f", "cut_member"),
        (20, b"\x05\0\0\0", "bad_deflate"),
        (24, b"\x05\0\0\0", "wrong_size"),
        (24, b"\xff\xff\xff\x7f", "too_large"),
        (24, b"\xff\xff\0\0", "wrong_size"),
        (42, b"\0\0\0\0", "overlap"),
        (42, b"\xff\xff\xff\x7f", "cut_member"),
        (42, b"\x01\0\0\0", "overlap"),
    ],
)
def test_a_directory_that_lies_of_a_member_costs_that_member(
    tmp_path: Path, read: Read, at: int, value: bytes, reason: str
) -> None:
    path = write_archive(tmp_path / "zip" / NAME, papers(3))
    path.write_bytes(directory_field(path.read_bytes(), 1, at, value))
    counts, pages = read(tmp_path / "zip", max_damaged_fraction=0.7)
    assert reasons(counts)[reason] == 1
    assert {page.id for page in pages} <= {"2105.00000", "2105.00002"}
    assert len(pages) == 3 - sum(reasons(counts).values())


def test_a_member_that_is_no_utf8_is_damaged(tmp_path: Path, read: Read) -> None:
    write_archive(tmp_path / "zip" / NAME, {"2105.00001.html": PAGE, "2105.00002.html": PAGE.encode("utf-16")})
    counts, pages = read(tmp_path / "zip", max_damaged_fraction=0.5)
    assert reasons(counts) == {"not_utf8": 1}
    assert len(pages) == 1


def test_a_bomb_is_inflated_no_further_than_its_stated_size(tmp_path: Path, read: Read) -> None:
    path = write_archive(tmp_path / "zip" / NAME, {"2105.00001.html": b" " * 10**8, "2105.00002.html": PAGE})
    counts, _ = read(tmp_path / "zip")
    assert reasons(counts) == {"too_large": 1}
    path.write_bytes(directory_field(path.read_bytes(), 0, 24, struct.pack("<L", 100)))
    counts, _ = read(tmp_path / "zip", max_damaged_fraction=0.5)
    assert reasons(counts) == {"wrong_size": 1}


def test_members_that_share_their_bytes_are_left_out(tmp_path: Path, read: Read) -> None:
    names = [f"2105.{n:05}.html" for n in range(1000)]
    path = tmp_path / "zip" / NAME
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(names[0], b"x" * 10**6)
        first = archive.infolist()[0]
        for name in names[1:]:
            copy = zipfile.ZipInfo(name)
            copy.header_offset, copy.CRC, copy.compress_type = 0, first.CRC, first.compress_type
            copy.compress_size, copy.file_size = first.compress_size, first.file_size
            archive.filelist.append(copy)
            archive.NameToInfo[name] = copy
        archive._didModify = True  # type: ignore[attr-defined]
    counts, pages = read(tmp_path / "zip", max_damaged_fraction=1)
    assert reasons(counts) == {"overlap": 999}
    assert [page.id for page in pages] == ["2105.00000"]


@pytest.mark.parametrize(
    ("cut", "words"),
    [
        (lambda data: data[:-1], "it has no end of a directory"),
        (lambda data: data[:100], "it has no end of a directory"),
        (lambda data: b"", "it has no end of a directory"),
        (lambda data: b"<html>busy</html>", "it has no end of a directory"),
        (lambda data: data + b"x", "it has no end of a directory"),
        (lambda data: data[2000:], "its directory of 198 bytes at byte"),
        (lambda data: data.replace(b"PK\1\2", b"PK\1\3"), "its directory has no member's entry after 0 of them"),
        (lambda data: data[:-12] + b"\0" + data[-11:], "its directory has"),
    ],
)
def test_a_file_that_is_no_whole_archive_is_refused(tmp_path: Path, read: Read, cut: Any, words: str) -> None:
    path = write_archive(tmp_path / "zip" / NAME, papers(3))
    path.write_bytes(cut(path.read_bytes()))
    with pytest.raises(CrawlError, match=f"The file '{NAME}' is no whole zip archive: .*{words}|has no .*"):
        read(tmp_path / "zip")


def test_an_archive_is_read_as_zipfile_reads_it(tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    for kind in ("plain", "comment", "prefix", "zip64"):
        path = tmp_path / kind / NAME
        path.parent.mkdir()
        with monkeypatch.context() as patch, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            if kind == "zip64":
                patch.setattr(zipfile, "ZIP64_LIMIT", 100)
                patch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 3)
            for name, content in papers(40, size=draw.randrange(2000)).items():
                with archive.open(
                    name, "w", force_zip64=kind == "zip64"
                ) as member:  # with a descriptor of data behind it
                    member.write(content.encode())
            archive.comment = b"a comment" if kind == "comment" else b""
        if kind == "prefix":
            path.write_bytes(b"#!/bin/sh\n" * 50 + path.read_bytes())
        _, pages = read(path.parent, shard_bytes=20_000)
        with zipfile.ZipFile(path) as archive:
            assert [(page.metadata["member"], page.text) for page in pages] == [
                (info.filename, archive.read(info).decode()) for info in archive.infolist()
            ]
            places = [(info.filename, info.header_offset, info.file_size) for info in archive.infolist()]
        entries = entries_of(Bytes(path.read_bytes()), NAME)
        assert [(entry.name, entry.offset, entry.size_bytes) for entry in entries] == places


def test_other_archives_and_files_are_refused_or_counted(tmp_path: Path, read: Read) -> None:
    write_archive(tmp_path / "zip" / NAME, {"paper.html": PAGE, "x.txt": ""})
    with pytest.raises(
        CrawlError, match=r"has no paper that can be read: 1 \.html members \(1 no_arxiv_id\), 1 others"
    ):
        read(tmp_path / "zip")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.tar").write_bytes(b"x")
    with pytest.raises(CrawlError, match=r"No zip file exists below '.*': it has 'a\.tar'\. Expected names.*\.zip"):
        read(tmp_path / "other")
    write_archive(tmp_path / "other/b.zip", {"2105.00001.html": PAGE})
    assert read(tmp_path / "other")[0]["ignored_files"] == 1


@pytest.mark.parametrize("field", ["shard_bytes", "max_page_bytes", "max_connections"])
def test_a_wrong_field_is_refused(tmp_path: Path, read: Read, field: str) -> None:
    with pytest.raises(CrawlError, match=f"{field} is 0"):
        read(tmp_path, **{field: 0})


def test_an_archive_in_a_bucket_is_read(any_prefix: str, tmp_path: Path, read: Read) -> None:
    path = write_archive(tmp_path / "zip" / NAME, papers(5))
    whole = read(path)
    write_bytes(join(any_prefix, "zip", NAME), path.read_bytes())
    assert read(join(any_prefix, "zip")) == whole


def test_an_archive_that_changes_while_it_is_read_is_an_error(
    tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_archive(tmp_path / "zip" / NAME, papers(5))
    from marin_assets.stages.download.ar5iv import read_ar5iv as stage

    listed = stage.leave_out_duplicates

    def changed(*arguments: Any) -> None:
        listed(*arguments)
        write_archive(path, papers(6, seed=1))

    monkeypatch.setattr(stage, "leave_out_duplicates", changed)
    with pytest.raises(ShardError, match="changed"):
        read(tmp_path / "zip")


@pytest.mark.long
def test_memory_stays_flat_over_ten_times_the_input(tmp_path: Path) -> None:
    kilobytes = []
    for copies in (100, 1000):
        write_archive(tmp_path / f"zip{copies}" / NAME, papers(copies, size=25_000))
        fields = {"input_path": str(tmp_path / f"zip{copies}"), "output_path": str(tmp_path / f"out{copies}")}
        code = (
            f"import runpy, sys; sys.argv[1:] = [{json.dumps({**fields, 'shard_bytes': 2_000_000})!r}]; "
            f"runpy.run_path({latexml_papers.__file__!r}, run_name='__main__'); "
            "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
        )
        output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        kilobytes.append(int(output.split("\n")[1]))
    assert kilobytes[1] < kilobytes[0] + 20_000


def test_shards_of_any_size_have_the_same_pages_in_the_same_order(tmp_path: Path, read: Read) -> None:
    write_archive(tmp_path / "zip" / NAME, papers(30))
    outputs = [read(tmp_path / "zip", shard_bytes=size) for size in (1, 10_000, 10**9)]
    assert all(output == outputs[0] for output in outputs)
    config = ReadAr5ivConfig(input_path=str(tmp_path / "zip"), output_path=str(tmp_path / "again"))
    read_ar5iv(unwrap_versioned_value(config))
    assert [page.text for page in documents_of(tmp_path / "again")] == [page.text for page in outputs[0][1]]
