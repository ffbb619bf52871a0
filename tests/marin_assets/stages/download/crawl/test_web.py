"""A crawl is read from a server: by ranges, within a limit of connections, and whatever the server does."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import crawls
import pytest
from crawl_server import CrawlServer
from crawls import Read
from warc_files import MODULES, crawl_records, html_page, members

from marin_assets.stages.download.crawl import web
from marin_assets.stages.download.crawl.files import crawl_files
from marin_assets.stages.download.crawl.web import WebClient
from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.stages.download.web.faults import DownloadError
from marin_resources.ray_tpu.shards.map_shards import ShardError

NAMES = [f"crawl-data/segments/{number}/warc/{number}.warc.gz" for number in range(4)]
LIST = "crawl-data/warc.paths.gz"


@pytest.fixture
def crawl(server: CrawlServer) -> CrawlServer:
    """Four files with three pages each, and their list."""
    for number, name in enumerate(NAMES):
        server.files[name] = members(crawl_records(MODULES[number * 3 : number * 3 + 3], copies=4))
    server.files[LIST] = gzip.compress("\n".join(NAMES).encode())
    return server


@pytest.fixture
def expected(crawl: CrawlServer, tmp_path: Path, read: Read) -> list[object]:
    """The pages of the same files in a folder."""
    for name, content in crawl.files.items():
        path = tmp_path / "copy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return list(read(tmp_path / "copy" / LIST, base_url=str(tmp_path / "copy"))[1])


@pytest.mark.parametrize("shard_bytes", [10**9, 3000])
def test_a_list_on_a_server_gives_the_pages_of_its_files(
    crawl: CrawlServer, read: Read, expected: list[object], shard_bytes: int
) -> None:
    _, pages = read(crawl.url + LIST, base_url=crawl.url, shard_bytes=shard_bytes)
    assert pages == expected
    assert crawl.encodings == {"identity"}
    assert all(span for method, _, span in crawl.requests if method == "GET")


def test_one_file_of_a_server_is_read(crawl: CrawlServer, read: Read) -> None:
    _, pages = read(crawl.url + NAMES[0])
    assert pages[0].text == html_page(MODULES[0]).decode()
    assert pages[0].metadata["file"] == "0.warc.gz"


def test_the_address_of_a_file_is_requested_as_it_is(crawl: CrawlServer, read: Read) -> None:
    """Also one with escapes, or with the query of a signature."""
    crawl.files |= {"a b.warc.gz": crawl.files[NAMES[0]], "a.warc.gz?signature=x/y": crawl.files[NAMES[0]]}
    whole = read(crawl.url + NAMES[0])[1]
    for address, name in (("a%20b.warc.gz", "a b.warc.gz"), ("a.warc.gz?signature=x/y", "a.warc.gz")):
        _, pages = read(crawl.url + address)
        assert [page.text for page in pages] == [page.text for page in whole]
        assert {page.metadata["file"] for page in pages} == {name}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("forbidden", "limited"), ("busy", "server_error"), ("hang_up", "connection"), ("cut", "cut"),
        ("wrong_range", "wrong_range"), ("other_size", "wrong_size"), ("encoded", "wrong_answer"),
        ("other_etag", "changed"),
    ],
)  # fmt: skip
def test_a_fault_that_passes_is_tried_again(
    crawl: CrawlServer, read: Read, expected: list[object], fault: str, reason: str
) -> None:
    for name in NAMES:
        crawl.fault(name, "", fault, fault)
    counts, pages = read(crawl.url + LIST, base_url=crawl.url)
    assert pages == expected
    assert counts[f"retries_{reason}"] == counts["retries"] == 2 * len(NAMES)


def test_a_fault_of_the_listing_is_tried_again(crawl: CrawlServer, read: Read, expected: list[object]) -> None:
    for name in (LIST, *NAMES):
        crawl.fault(name, "busy", "forbidden", "encoded", "hang_up")
    assert read(crawl.url + LIST, base_url=crawl.url)[1] == expected


def test_a_file_that_is_cut_continues_at_its_byte(crawl: CrawlServer, read: Read, expected: list[object]) -> None:
    crawl.fault(NAMES[1], "", *["cut"] * 5)
    assert read(crawl.url + LIST, base_url=crawl.url)[1] == expected
    assert crawl.sent_bytes[NAMES[1]] < len(crawl.files[NAMES[1]]) + 1000, "the last record is read twice"


def test_a_server_that_ignores_ranges_is_read_up_to_the_range(
    crawl: CrawlServer, read: Read, expected: list[object]
) -> None:
    crawl.fault(NAMES[2], "", "cut", *["ignore_range"] * 2)
    counts, pages = read(crawl.url + LIST, base_url=crawl.url)
    assert pages == expected
    assert counts["retries_range_ignored"] == 1


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("forbidden", "failed 8 times in a row, the last time because of 'limited': the server answered 403"),
        ("busy", "'server_error': the server answered 503"),
        ("other_etag", "'changed': the server has the ETag"),
        ("other_size", r"'wrong_size': the server has \d+ bytes, expected \d+ by the listing"),
        ("encoded", "'wrong_answer': the content is encoded"),
    ],
)
def test_a_fault_that_stays_is_an_error_and_no_damage(
    crawl: CrawlServer, read: Read, fault: str, sentence: str
) -> None:
    crawl.fault(NAMES[1], "", *[fault] * 20)
    with pytest.raises(ShardError, match=sentence):
        read(crawl.url + LIST, base_url=crawl.url, max_damaged_fraction=1, allow_cut_files=True)


def test_a_missing_file_is_an_error_at_once(crawl: CrawlServer, read: Read) -> None:
    del crawl.files[NAMES[3]]
    with pytest.raises(CrawlError, match=r"The server answered 404 for 'http://.*3\.warc\.gz', expected the file"):
        read(crawl.url + LIST, base_url=crawl.url)
    assert sum(path == NAMES[3] for _, path, _ in crawl.requests) == 1


def test_no_more_connections_are_open_than_allowed(crawl: CrawlServer) -> None:
    crawl.most_connections = 3
    names = [f"{number}.warc.gz" for number in range(60)]
    crawl.files.update(dict.fromkeys(names, b"x"))
    crawl.files["list.paths"] = "\n".join(names).encode()
    threads = [
        threading.Thread(
            target=crawl_files, args=(f"{crawl.url}list.paths", crawl.url),
            kwargs={"max_files": None, "max_connections": 3},
        )
        for _ in range(4)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(crawl.requests) == 4 * (60 + 2)
    assert crawl.most_at_once <= 3


def test_a_file_is_read_from_any_byte(crawl: CrawlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "FIRST_BYTES", 1000)
    monkeypatch.setattr(web, "SEGMENT_BYTES", 5000)
    content, draw = crawl.files[NAMES[0]], random.Random(1)
    with WebClient(2) as client:
        file = client.opened(client.located([NAMES[0]], crawl.url)[0])
        for _ in range(100):
            offset, size = draw.randrange(len(content)), draw.randrange(1, 9000)
            data = file.read_at(offset, size)
            assert data
            assert data == content[offset : offset + len(data)]
        whole = b""
        while block := file.read_at(len(whole), 10**6):
            whole += block
        assert whole == content


def test_the_reader_stops_when_its_client_closes(crawl: CrawlServer) -> None:
    crawl.fault(NAMES[0], "", "busy")
    with WebClient(1) as client:
        file = client.opened(client.located([NAMES[0]], crawl.url)[0])
    with pytest.raises(DownloadError, match="stopped"):
        file.read_at(0, 10)


@pytest.mark.long
def test_kills_among_faults_change_no_page(crawl: CrawlServer, expected: list[object], tmp_path: Path) -> None:
    draw, output = random.Random(9), tmp_path / "killed"
    for name in NAMES:
        crawl.fault(name, "", *draw.sample(["cut", "busy", "hang_up", "wrong_range"], 2))
    all_bytes = sum(len(crawl.files[name]) for name in NAMES)
    fields = {"input_path": crawl.url + LIST, "base_url": crawl.url, "output_path": str(output), "source": "crawl"}
    command = [sys.executable, crawls.__file__, json.dumps({**fields, "shard_bytes": 10_000})]
    for kill_at in sorted(draw.randrange(all_bytes) for _ in range(5)):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while sum(crawl.sent_bytes[name] for name in NAMES) < kill_at and process.poll() is None:
            time.sleep(0.001)
        process.kill()
        process.wait()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert crawls.documents_of(output) == expected
    before = len(crawl.requests)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert not any(method == "GET" and path in NAMES for method, path, _ in crawl.requests[before:])


def test_sizes_of_a_long_list_are_requested_as_its_files_are_read(
    crawl: CrawlServer, read: Read, expected: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marin_assets.stages.download.crawl.web.MAX_SIZED_FILES", len(NAMES) - 1)
    located = crawl_files(f"{crawl.url}{LIST}", crawl.url, max_files=None, max_connections=2)[0]
    assert [file.size_bytes for file in located] == [-1] * len(NAMES)
    assert {path for _, path, _ in crawl.requests} == {LIST}
    counts, pages = read(f"{crawl.url}{LIST}", base_url=crawl.url, shard_bytes=500)
    assert pages == expected
    assert counts["files"] == len(NAMES)
