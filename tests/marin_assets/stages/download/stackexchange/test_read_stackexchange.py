"""Posts of dumps become pages, a thread each; every other row is counted by its reason."""

from __future__ import annotations

import bz2
import gzip
import json
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import py7zr
import pytest
import stack_dumps
from crawl_server import CrawlServer
from crawls import Read, documents_of, reasons
from stack_dumps import answer, archive_of, drawn_rows, dump_of, question, table_of

from marin_assets.documents import Document
from marin_assets.stages.download.stackexchange import dump_rows, runs
from marin_assets.stages.download.stackexchange.read_stackexchange import ReadStackexchangeConfig, read_stackexchange
from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

SITE = "dba.stackexchange.com"
NAME = f"{SITE}.7z"


def write(folder: Path, content: bytes, name: str = NAME) -> Path:
    path = folder / "dump" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def joined(pages: list[Document]) -> dict[str, list[int]]:
    """The answers of each page."""
    return {page.id: [post["id"] for post in page.metadata["answers"]] for page in pages}


def test_a_page_has_the_bodies_of_a_thread_and_what_the_dump_states_of_it(tmp_path: Path, read: Read) -> None:
    asked = question(4, body="<p>Why &amp; how\n</p>", score=12, Title="Tables & <b>", AcceptedAnswerId=6)
    gone = answer(6, 4, score=3, OwnerUserId=None, OwnerDisplayName="user81")
    write(tmp_path, dump_of([asked, answer(5, 4, score=9), gone]))
    counts, (page,) = read(tmp_path / "dump")
    assert (counts["files"], counts["sites"], counts["ignored_members"]) == (1, 1, 2)
    assert page.id == f"{SITE}/4"
    assert page.source == "stack"
    assert page.text == (
        "<h1>Tables &amp; &lt;b&gt;</h1>\n"
        '<article id="post-4">\n<p>Why &amp; how\n</p>\n</article>\n'
        '<article id="post-5">\n<p>It is 5.</p>\n\n</article>\n'
        '<article id="post-6">\n<p>It is 6.</p>\n\n</article>\n'
    )
    facts = {"date": "2012-01-05T09:12:33.123", "license": "CC BY-SA 4.0"}
    assert page.metadata == {
        "url": "https://dba.stackexchange.com/q/4",
        "title": "Tables & <b>",
        "date": "2012-01-04T09:12:33.123",
        "license": ["CC BY-SA 3.0", "CC BY-SA 4.0"],
        "authors": [f"https://{SITE}/users/7", f"https://{SITE}/users/8", "user81"],
        "score": 12,
        "tags": ["sql", "index"],
        "site": SITE,
        "question": 4,
        "answers": [
            {"id": 5, "score": 9, "accepted": False, "author": f"https://{SITE}/users/8", **facts},
            {"id": 6, "score": 3, "accepted": True, "author": "user81", **facts},
        ],
    }


def test_threads_equal_a_join_in_memory_for_any_size_of_runs_and_shards(
    tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = drawn_rows(3, 600)
    write(tmp_path, dump_of(rows[:400]), f"a/{NAME}")
    write(tmp_path, table_of(rows[400:]), f"b/{SITE}/Posts.xml")
    kept = {row["Id"] for row in rows if "ParentId" not in row and row["Score"] >= 10}
    expected: dict[str, list[int]] = {f"{SITE}/{id}": [] for id in sorted(kept)}
    for row in sorted(rows, key=lambda row: (-row["Score"], row["Id"])):
        if row.get("ParentId") in kept:
            expected[f"{SITE}/{row['ParentId']}"].append(row["Id"])
    counts, pages = read(tmp_path / "dump", shard_bytes=10**9)
    assert list(joined(pages).items()) == list(expected.items())
    orphans = sum(row.get("ParentId", 0) > 600 for row in rows)
    assert reasons(counts)["orphan"] == orphans > 20
    for run_bytes, frame_bytes, shard_bytes in ((5000, 700, 20_000), (2**20, 1, 9000), (2000, 2**20, 9000)):
        monkeypatch.setattr(runs, "RUN_BYTES", run_bytes)
        monkeypatch.setattr(runs, "FRAME_BYTES", frame_bytes)
        assert read(tmp_path / "dump", shard_bytes=shard_bytes) == (counts, pages)
        assert len(list(tmp_path.glob("pages*/part-*"))) > 1


@pytest.mark.parametrize(
    ("rows", "reason", "count"),
    [
        ([question(5, PostTypeId=4)], "other_type", 1),
        ([question(5, body=" \n"), answer(6, 5)], "empty", 1),
        ([answer(6, 1, body="")], "empty", 1),
        ([answer(6, 1, Body=None)], "empty", 1),
        ([answer(6, 1, body="x" * 1_000_001)], "too_large", 1),
        ([question(5, score=9), answer(6, 5), answer(7, 5)], "low_score", 1),
        ([question(5, score=9), answer(6, 5), answer(7, 5)], "question_rejected", 2),
        ([answer(6, 77)], "orphan", 1),
        ([answer(6, 1), answer(6, 1, body="<p>again</p>")], "duplicate", 1),
        ([question(1, body="<p>again</p>")], "duplicate", 1),
        ([question(5, Id="x")], "bad_post", 1),
        ([question(5, Id=2**31)], "bad_post", 1),
        ([question(5, Score=None)], "bad_post", 1),
        ([question(5, Title=None)], "bad_post", 1),
        ([answer(6, 1, ParentId="")], "bad_post", 1),
        ([b'  <row Id="5" PostTypeId="1" Body="&lt;p>" Body="" />'], "bad_row", 1),
        ([b'  <row Id="5" PostTypeId="1'], "bad_row", 1),
        ([b'  <row Id="5" Body="a < b" />'], "bad_row", 1),
        ([b'  <row Id="5" Body="&nbsp;" />'], "bad_row", 1),
        ([b'  <row Id="5" Body="\xff" />'], "bad_row", 1),
        ([b'  <row Id="5" Body="&#x1;" />'], "bad_row", 1),
        ([b'  <row Id="5" Body="' + b"x" * (64 * 2**20) + b'" />'], "row_too_long", 1),
    ],
)
def test_each_other_row_has_a_reason_and_costs_no_other(
    tmp_path: Path, read: Read, rows: list[Mapping[str, Any] | bytes], reason: str, count: int
) -> None:
    write(tmp_path, table_of([question(1), *rows, question(3), answer(4, 3)]), f"{SITE}/Posts.xml")
    counts, pages = read(tmp_path / "dump", max_damaged_fraction=0.5)
    assert {page.id for page in pages} == {f"{SITE}/1", f"{SITE}/3"}
    assert joined(pages)[f"{SITE}/3"] == [4]
    assert "again" not in pages[0].text
    assert reasons(counts)[reason] == count


def test_a_damaged_row_is_named_and_many_fail_the_stage(
    tmp_path: Path, read: Read, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, table_of([question(1), b"<row Id='5' Body='a", question(3)]), f"{SITE}/Posts.xml")
    with pytest.raises(CrawlError, match=r"1 of the 3 rows of '.*dump' are damaged \(1 bad_row\), more than"):
        read(tmp_path / "dump")
    assert f"'{SITE}/Posts.xml' row 2: a post is lost (bad_row: not well-formed" in caplog.text


def test_thresholds_and_orders_choose_the_answers(tmp_path: Path, read: Read) -> None:
    rows = [question(1, AcceptedAnswerId=5), answer(3, 1, score=0), answer(4, 1, score=9), answer(5, 1, score=2)]
    write(tmp_path, dump_of([*rows, answer(6, 1, score=2), question(7, score=-2)]))
    for fields, expected in (
        ({}, {1: [4, 5, 6, 3]}),
        ({"min_question_score": None}, {1: [4, 5, 6, 3], 7: []}),
        ({"min_question_score": -2, "min_answers": 1}, {1: [4, 5, 6, 3]}),
        ({"order": "accepted_first"}, {1: [5, 4, 6, 3]}),
        ({"order": "date"}, {1: [3, 4, 5, 6]}),
        ({"order": "date", "max_answers": 2}, {1: [3, 4]}),
        ({"min_answer_score": 2}, {1: [4, 5, 6]}),
        ({"min_answer_score": 2, "max_answers": 1}, {1: [4]}),
    ):
        _, pages = read(tmp_path / "dump", **fields)
        assert joined(pages) == {f"{SITE}/{id}": answers for id, answers in expected.items()}, fields


def test_a_thread_that_is_too_large_is_rejected_whole(tmp_path: Path, read: Read) -> None:
    answers = [answer(id, 1, body="x" * 1000) for id in range(3, 100)]
    write(tmp_path, dump_of([question(1), *answers, question(2)]))
    counts, pages = read(tmp_path / "dump", max_page_bytes=50_000)
    assert [page.id for page in pages] == [f"{SITE}/2"]
    assert reasons(counts) == {"thread_too_large": 1, "question_rejected": 97}


def test_rows_are_read_whatever_their_lines_and_tags_are(tmp_path: Path, read: Read) -> None:
    rows = [question(1, Tags="|c++|.net-core|"), question(2, Tags="<c#><日本語>", body="<p>a\n\tb\r\n</p>"),
            question(3, Tags=None)]  # fmt: skip
    table = table_of(rows)
    for content in (
        table,
        table.removeprefix(stack_dumps.BOM),
        table.replace(b"\r\n", b""),
        table.replace(b"\r\n", b"\n\n"),
        table.replace(b" PostTypeId", b"\r\n\tPostTypeId"),
        table.replace(b"  <row", b"<!-- <comment> -->\n<row").replace(b" />", b"></row>"),
    ):
        write(tmp_path, content, f"{SITE}/Posts.xml")
        counts, pages = read(tmp_path / "dump")
        assert [page.metadata["tags"] for page in pages] == [["c++", ".net-core"], ["c#", "日本語"], []]
        assert "<p>a\n\tb\r\n</p>" in pages[1].text
        assert counts["posts"] == 3


@pytest.mark.parametrize(
    ("filters", "site"),
    [
        ([{"id": py7zr.FILTER_BZIP2}], "a.stackexchange.com"),
        ([{"id": py7zr.FILTER_LZMA}], "b.stackexchange.com"),
        ([{"id": py7zr.FILTER_LZMA2, "preset": 1}], "c.meta.stackexchange.com"),
        ([{"id": py7zr.FILTER_PPMD, "order": 6, "mem": 24}], "stackoverflow.com"),
        ([{"id": py7zr.FILTER_ZSTD, "level": 3}], "mathoverflow.net"),
        ([{"id": py7zr.FILTER_COPY}], "ru.stackoverflow.com"),
    ],
    ids=["bzip2", "lzma", "lzma2", "ppmd", "zstd", "copy"],
)
def test_an_archive_of_any_method_is_read(tmp_path: Path, read: Read, filters: Any, site: str) -> None:
    rows = drawn_rows(5, 300)
    write(tmp_path, dump_of(rows, filters), f"{site}.7z")
    _, pages = read(tmp_path / "dump")
    whole = read(write(tmp_path, table_of(rows), f"plain/{site}/Posts.xml"))[1]
    assert pages == whole
    assert pages[0].metadata["site"] == site


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2"])
def test_a_table_that_was_extracted_is_read(tmp_path: Path, read: Read, ending: str) -> None:
    table = table_of([question(1)])
    content = {"": table, ".gz": gzip.compress(table), ".bz2": bz2.compress(table)}[ending]
    path = write(tmp_path, content, f"{SITE}/Posts.xml{ending}")
    assert [page.id for page in read(path)[1]] == [f"{SITE}/1"]
    assert [page.id for page in read(path, site="ask.example.org")[1]] == ["ask.example.org/1"]


def test_other_tables_are_ignored_and_sites_are_kept_apart(tmp_path: Path, read: Read) -> None:
    write(tmp_path, archive_of({"Posts.xml": table_of([question(1), answer(2, 1)])}), "stackoverflow.com-Posts.7z")
    write(tmp_path, archive_of({"Users.xml": b"<users></users>"}), "stackoverflow.com-Users.7z")
    write(tmp_path, dump_of([question(1), answer(3, 1)]))
    write(tmp_path, b"x", "readme.txt")
    counts, pages = read(tmp_path / "dump")
    assert joined(pages) == {f"{SITE}/1": [3], "stackoverflow.com/1": [2]}
    assert (counts["sites"], counts["ignored_files"]) == (2, 2)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (NAME, lambda: b"", r"damaged or cut after 0 posts \(it is empty"),
        (NAME, lambda: b"<html>busy</html>", r"damaged or cut after 0 posts \(it does not begin as a 7z archive"),
        (NAME, lambda: archive_of({"Users.xml": b""}), r"has 0 members Posts.xml, expected one; it has 'Users"),
        (NAME, lambda: archive_of({"a/Posts.xml": b"", "b/Posts.xml": b""}), "has 2 members Posts.xml, expected one"),
        (NAME, lambda: archive_of({"Posts.xml": b"x"}, password="x"), "is encrypted, expected one without a password"),
        (NAME, lambda: archive_of({"Posts.xml": b""}), "damaged or cut after 0 posts .it has no element <posts>"),
        (NAME, lambda: archive_of({"Posts.xml": bytes(2**27)}), "expands to more than 500 times its size"),
        (f"{SITE}/Posts.xml", lambda: table_of([], root="users"), "is no table of posts: it begins with b'<users>"),
        (f"{SITE}/Posts.xml", lambda: b'<row Id="1" />', "is no table of posts: it begins with b'<row"),
        (f"{SITE}/Posts.xml", lambda: table_of([question(1)])[:-8], r"cut after 1 posts \(its end </posts> is missing"),
        (f"{SITE}/Posts.xml", lambda: "<posts/>".encode("utf-16"), r"is no table of posts: it begins with b'.xff.xfe'"),
        (f"{SITE}/Posts.xml.gz", lambda: gzip.compress(bytes(2**27)), "expands to more than 500 times its size"),
    ],
    ids=["empty", "page", "no_posts", "two", "encrypted", "empty_posts", "bomb", "users", "no_root", "cut", "utf_16",
         "gzip_bomb"],
)  # fmt: skip
def test_a_file_that_is_no_dump_is_refused(
    tmp_path: Path, read: Read, name: str, content: Callable[[], bytes], sentence: str
) -> None:
    write(tmp_path, content(), name)
    with pytest.raises(ShardError, match=sentence):
        read(tmp_path / "dump")


def test_an_archive_that_claims_much_memory_is_refused(
    tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump_rows, "MAX_DICTIONARY_BYTES", 2**20)
    for filters in (
        [{"id": py7zr.FILTER_LZMA, "dict_size": 2**21}],
        [{"id": py7zr.FILTER_LZMA2, "dict_size": 2**21}],
        [{"id": py7zr.FILTER_PPMD, "order": 6, "mem": 21}],
    ):
        write(tmp_path, archive_of({"Posts.xml": table_of([question(1)])}, filters))
        with pytest.raises(ShardError, match="claims 2,097,152 bytes of memory for its dictionary, expected at most"):
            read(tmp_path / "dump")


@pytest.mark.parametrize("filters", [None, [{"id": py7zr.FILTER_BZIP2}]], ids=["lzma2", "bzip2"])
def test_a_damaged_archive_is_an_error_and_never_other_pages(tmp_path: Path, read: Read, filters: Any) -> None:
    draw = random.Random(9)
    whole = dump_of(drawn_rows(7, 400), filters)
    _, pages = read(write(tmp_path, whole))
    errors = list[str]()
    for trial in range(40):
        at = draw.randrange(len(whole))
        damaged = (
            bytes([*whole[:at], whole[at] ^ 1 << draw.randrange(8), *whole[at + 1 :]]) if trial % 2 else whole[:at]
        )
        write(tmp_path, damaged)
        try:
            assert read(tmp_path / "dump")[1] == pages
        except ShardError as error:
            errors.append(str(error))
    assert len(errors) > 35
    assert [
        error for error in errors if "is damaged or cut after" not in error and "expected one; it" not in error
    ] == []


def test_posts_before_a_cut_are_taken_if_that_is_allowed(tmp_path: Path, read: Read) -> None:
    table = table_of(drawn_rows(7, 2000))
    write(tmp_path, gzip.compress(table)[:-1000], f"{SITE}/Posts.xml.gz")
    with pytest.raises(ShardError, match=r"is damaged or cut after [\d,]+ posts .*EOFError"):
        read(tmp_path / "dump")
    counts, pages = read(tmp_path / "dump", allow_cut_files=True)
    assert counts["cut_files"] == 1
    assert counts["posts"] > 100
    assert len(pages) > 10


@pytest.mark.parametrize("name", ["posts.7z", "dump/Posts.xml", "stack overflow.7z"])
def test_a_file_without_a_site_in_its_name_is_refused(tmp_path: Path, read: Read, name: str) -> None:
    path = write(tmp_path, dump_of([question(1)]) if name.endswith("7z") else table_of([question(1)]), name)
    with pytest.raises(
        CrawlError, match=r"has no site in its name, expected one such as 'dba\.stackexchange\.com\.7z'"
    ):
        read(path)
    assert [page.id for page in read(path, site=SITE)[1]] == [f"{SITE}/1"]


def test_dumps_without_a_thread_are_an_error(tmp_path: Path, read: Read) -> None:
    write(tmp_path, dump_of([question(1, score=3), answer(2, 1)]))
    with pytest.raises(CrawlError, match=r"None of the 2 posts of '.*' is kept \(1 low_score, 1 question_rejected\)"):
        read(tmp_path / "dump")
    write(tmp_path, dump_of([]))
    with pytest.raises(CrawlError, match=r"None of the 0 posts of '.*' is kept \(none\)"):
        read(tmp_path / "dump")
    write(tmp_path / "other", b"x", "Users.xml")
    with pytest.raises(
        CrawlError, match=r"No Stack Exchange file exists below .*'Users\.xml'. Expected names that end"
    ):
        read(tmp_path / "other/dump")
    write(tmp_path / "table", archive_of({"Users.xml": b""}), "stackoverflow.com-Users.7z")
    with pytest.raises(
        CrawlError, match=r"None of the files of '.*' has posts, such as 'stackoverflow\.com-Users\.7z'"
    ):
        read(tmp_path / "table/dump")


def test_a_dump_on_a_server_and_in_a_list_is_read_through_its_faults(
    tmp_path: Path, read: Read, server: CrawlServer
) -> None:
    content = dump_of(drawn_rows(6, 2000))
    whole = read(write(tmp_path, content))
    server.files = {NAME: content, "runs.paths": f"{NAME}\n".encode()}
    server.fault(NAME, "busy", "cut", "hang_up", "ignore_range", "cut")
    counts, pages = read(server.url + NAME)
    assert pages == whole[1]
    assert counts["retries"] >= 1  # the others are of the listing
    assert read(server.url + "runs.paths", base_url=server.url)[1] == whole[1]


def test_a_dump_in_a_bucket_is_read(any_prefix: str, tmp_path: Path, read: Read) -> None:
    content = dump_of(drawn_rows(6, 200))
    whole = read(write(tmp_path, content))
    write_bytes(join(any_prefix, "dump", NAME), content)
    assert read(join(any_prefix, "dump")) == whole
    config = ReadStackexchangeConfig(input_path=join(any_prefix, "dump"), output_path=join(any_prefix, "pages"))
    read_stackexchange(unwrap_versioned_value(config))
    assert [page.id for page in documents_of(join(any_prefix, "pages"))] == [page.id for page in whole[1]]


def test_a_stage_that_ends_while_it_removes_its_hidden_files_reads_again(
    tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, dump_of(drawn_rows(6, 200)))
    whole = read(tmp_path / "dump", shard_bytes=5000)
    output = str(tmp_path / "again")
    fields = {"input_path": str(tmp_path / "dump"), "output_path": output, "source": "stack", "shard_bytes": 5000}
    config = unwrap_versioned_value(ReadStackexchangeConfig(**fields))

    def killed(path: str) -> None:
        raise KeyboardInterrupt(path)

    with monkeypatch.context() as patch:
        patch.setattr("marin_assets.stages.download.crawl.two_phases.remove_folder", killed)
        with pytest.raises(KeyboardInterrupt):
            read_stackexchange(config)
    assert (read_stackexchange(config), documents_of(output)) == whole


def test_a_file_of_a_stage_that_was_killed_before_its_input_changed_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "RUN_BYTES", 50_000)
    output = tmp_path / "pages"
    config = ReadStackexchangeConfig(input_path=str(tmp_path / "dump"), output_path=str(output), shard_bytes=20_000)
    write(tmp_path, dump_of(drawn_rows(5, 1000)))
    read_stackexchange(unwrap_versioned_value(config))
    parts = len(list(output.glob("part-*")))
    for note in output.glob(".marin/shards/*/*.json"):
        note.unlink()  # as if the stage was killed before it noted a shard
    write(tmp_path, dump_of(drawn_rows(6, 600)))
    counts = read_stackexchange(unwrap_versioned_value(config))
    assert 1 < len(list(output.glob("part-*"))) < parts
    assert len(documents_of(output)) == counts["pages"]


def test_rows_do_not_depend_on_the_blocks_in_which_they_are_read() -> None:
    table = table_of([*drawn_rows(3, 50), b"<row Id='", b"<rows/>", b"<row/>"])
    draw = random.Random(2)
    expected = rows_in(table, lambda: len(table))
    assert len(expected) == 52
    for size in (lambda: 1, lambda: 7, lambda: draw.randrange(1, 500)):
        assert rows_in(table, size) == expected


def rows_in(table: bytes, size: Callable[[], int]) -> list[Any]:
    """The rows of a table that is fed in blocks."""
    rows: list[Any] = []
    divided, position = dump_rows.Rows("Posts.xml", rows.append), 0
    while position < len(table):
        block = table[position : position + size()]
        divided.feed(block)
        position += len(block)
    divided.close()
    return rows


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"shard_bytes": 0}, "shard_bytes is 0"),
        ({"max_post_bytes": 0}, "max_post_bytes is 0"),
        ({"max_page_bytes": 0}, "max_page_bytes is 0"),
        ({"order": "scores"}, "order is 'scores', expected one of .*'score'"),
        ({"site": "https://x.org"}, "site is 'https://x.org', expected a host such as"),
        ({"min_answers": -1}, "min_answers is -1, expected 0 or more"),
        ({"max_answers": 0}, "max_answers is 0, expected at least 1"),
        ({"min_answers": 3, "max_answers": 2}, r"max_answers is 2, expected at least 1 and min_answers \(3\)"),
    ],
)
def test_a_wrong_field_is_refused(tmp_path: Path, read: Read, fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CrawlError, match=sentence):
        read(tmp_path, **fields)


@pytest.mark.long
def test_memory_stays_flat_over_ten_times_the_input(tmp_path: Path) -> None:
    kilobytes = []
    for count in (8_000, 80_000):
        draw = random.Random(5)
        rows = (
            question(id, body=draw.randbytes(400).hex()) if id % 3 == 1 else answer(id, id - id % 3 + 1)
            for id in range(1, count)
        )
        write(tmp_path, archive_of({"Posts.xml": table_of(rows)}, [{"id": py7zr.FILTER_BZIP2}]), f"{count}/{NAME}")
        fields = {"input_path": str(tmp_path / f"dump/{count}"), "output_path": str(tmp_path / f"out{count}")}
        code = (
            f"import runpy, sys; sys.argv[1:] = [{json.dumps(fields)!r}, '1500000']; "
            f"runpy.run_path({stack_dumps.__file__!r}, run_name='__main__'); "
            "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
        )
        output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        kilobytes.append(int(output.split("\n")[1]))
    assert kilobytes[1] < kilobytes[0] + 20_000
