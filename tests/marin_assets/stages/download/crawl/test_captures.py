"""Captures are selected by an index, and each is fetched from its WARC file by a range."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crawl_server import CrawlServer
from crawls import documents_of, reasons
from warc_files import OK, cdx_lines, digest_of, index_files, info_record, members, response

from marin_assets.documents import Document, list_shards, read_rows, write_rows
from marin_assets.stages.download.crawl.fetch_captures import FetchCapturesConfig, fetch_captures
from marin_assets.stages.download.crawl.select_captures import SelectCapturesConfig, select_captures
from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError

HOSTS = ("owls.org", "www.owls.org", "night.owls.org", "owls.org.uk", "snowyowls.org", "a.b.ravens.net", "zebra.com")
WARC = "crawl-data/segments/1/warc/{}.warc.gz"
INDEX = "cc-index/collections/CC-MAIN-2024-22/indexes"


def body_of(url: str) -> bytes:
    return f"<html><body><p>A page of {url}.</p></body></html>".encode()


def capture(url: str, *, status: int = 200, mime: str = "text/html", language: str = "eng") -> bytes:
    head = OK.replace(b"200 OK", b"%d X" % status)
    return response(
        url, head + body_of(url), mime=mime, X_Languages=language, WARC_Payload_Digest=digest_of(body_of(url))
    )


CAPTURES = [
    *(capture(f"https://{host}/page/{number}") for host in HOSTS for number in range(9)),
    capture("https://owls.org/gone", status=404),
    capture("https://owls.org/book.pdf", mime="application/pdf"),
    capture("https://owls.org/buhos", language="spa,eng"),
    capture("https://owls.org:8080/port"),
]


def crawl_files() -> dict[str, bytes]:
    """Three WARC files and their index."""
    files = {WARC.format(number): members([info_record(), *CAPTURES[number::3]]) for number in range(3)}
    lines = [line for name, content in files.items() for line in cdx_lines(name, content)]
    lines = [line.replace("org,owls)/port", "org,owls:8080)/port") for line in lines]
    return files | {f"{INDEX}/{name}": content for name, content in index_files(lines).items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crawl")
    for name, content in crawl_files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


Select = Callable[..., tuple[dict[str, Any], list[dict[str, Any]]]]
Fetch = Callable[..., tuple[dict[str, Any], list[Document]]]


@pytest.fixture
def select(tmp_path: Path) -> Select:
    numbers = iter(range(100))

    def run(index: Path | str, **fields: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        output = str(tmp_path / f"captures{next(numbers)}")
        config = SelectCapturesConfig(**{"index_path": str(index), "output_path": output, **fields})
        counts = select_captures(unwrap_versioned_value(config))
        rows = [dict(row) for shard in list_shards(output) for _, row in read_rows(shard)]  # type: ignore[call-overload]
        assert counts["lines"] == counts["selected"] + counts["rejected"]
        assert counts["rejected"] == sum(reasons(counts).values())
        assert counts["selected"] == len(rows)
        return counts, rows

    return run


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    numbers = iter(range(100))

    def run(rows: Path | str, base: Path | str, **fields: Any) -> tuple[dict[str, Any], list[Document]]:
        output = str(tmp_path / f"pages{next(numbers)}")
        config = FetchCapturesConfig(
            **{"input_path": str(rows), "base_url": str(base), "output_path": output, **fields}
        )
        counts = fetch_captures(unwrap_versioned_value(config))
        assert counts["records"] == counts["pages"] + counts["rejected"]
        assert counts["rejected"] == sum(reasons(counts).values())
        return counts, documents_of(output)

    return run


def urls(rows: list[dict[str, Any]]) -> set[str]:
    return {row["url"] for row in rows}


OWLS = {f"https://{host}/page/{number}" for host in HOSTS[:3] for number in range(9)} | {
    "https://owls.org/buhos", "https://owls.org:8080/port",
}  # fmt: skip


def test_a_domain_is_selected_with_its_subdomains_and_no_other_name(folder: Path, select: Select) -> None:
    counts, rows = select(folder / INDEX, domains=("owls.org",))
    assert urls(rows) == OWLS
    assert reasons(counts)["status"] == reasons(counts)["mime"] == 1
    assert counts["lines"] < len(CAPTURES), "only the members that can have the domain are read"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {*OWLS, *(f"https://{host}/page/{number}" for host in HOSTS[3:] for number in range(9))}),
        ({"domains": ("ravens.net", "ZEBRA.com")}, {f"https://{h}/page/{n}" for h in HOSTS[5:] for n in range(9)}),
        ({"urls": ("https://owls.org/page/3",)}, {"https://owls.org/page/3"}),
        ({"urls": ("https://night.owls.org/*", "https://zebra.com/page/1*")},
         {*(f"https://night.owls.org/page/{n}" for n in range(9)), "https://zebra.com/page/1"}),
        ({"urls": ("https://owls.org/page/3",), "domains": ("zebra.com",)},
         {"https://owls.org/page/3", *(f"https://zebra.com/page/{n}" for n in range(9))}),
        ({"languages": ("spa",)}, {"https://owls.org/buhos"}),
        ({"statuses": (404,), "mimes": ()}, {"https://owls.org/gone"}),
        ({"mimes": ("application/pdf",)}, {"https://owls.org/book.pdf"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["cdx", "parquet", "server"])
def test_captures_are_selected_by_each_kind_of_index(
    folder: Path, select: Select, server: CrawlServer, tmp_path: Path, form: str, fields: dict[str, Any],
    expected: set[str],
) -> None:  # fmt: skip
    index: Path | str = folder / INDEX
    if form == "parquet":
        index = tmp_path / "table"
        write_table(folder, index)
    elif form == "server":
        server.files = crawl_files()
        index = server.url + INDEX
    assert urls(select(index, **fields)[1]) == expected


def table_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of the columnar index of the same captures."""
    rows = []
    for name in (WARC.format(number) for number in range(3)):
        for line in cdx_lines(name, (folder / name).read_bytes()):
            key, _, fields = line.replace("org,owls)/port", "org,owls:8080)/port").split(" ", 2)
            row = json.loads(fields)
            rows.append({
                "url": row["url"], "fetch_status": int(row["status"]), "content_mime_detected": row["mime-detected"],
                "content_languages": row["languages"], "content_digest": row["digest"], "warc_filename": name,
                "warc_record_offset": int(row["offset"]), "warc_record_length": int(row["length"]),
                "url_host_registered_domain": "x", "url_surtkey": key,
            })  # fmt: skip
    return rows


def write_table(folder: Path, target: Path) -> None:
    """The columnar index, in no order."""
    rows = table_rows(folder)
    target.mkdir()
    for number in range(2):
        pq.write_table(pa.Table.from_pylist(rows[number::2]), target / f"part-{number}.gz.parquet", row_group_size=7)


def test_row_groups_of_a_table_that_cannot_match_are_not_read(folder: Path, select: Select, tmp_path: Path) -> None:
    rows = sorted(table_rows(folder), key=lambda row: row["url_surtkey"])
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "sorted.parquet", row_group_size=7)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "plain.parquet", row_group_size=7, write_statistics=False)
    query = {"domains": ("ravens.net",), "urls": ("https://www.owls.org/page/*",)}
    counts, captures = select(tmp_path / "sorted.parquet", **query)
    all_counts, all_captures = select(tmp_path / "plain.parquet", **query)
    assert captures == all_captures
    assert len(captures) == 18
    assert counts["lines"] < len(rows) == all_counts["lines"]
    assert select(tmp_path / "sorted.parquet", statuses=(404,))[0]["lines"] == 7
    with pytest.raises(CrawlError, match=r"None of the 0 lines of .* is kept"):
        select(tmp_path / "sorted.parquet", domains=("aaa.aaa",))


def test_a_sample_is_chosen_by_the_address(folder: Path, select: Select, tmp_path: Path) -> None:
    write_table(folder, tmp_path / "table")
    samples = [urls(select(index, sample_fraction=0.4)[1]) for index in (folder / INDEX, tmp_path / "table")]
    assert samples[0] == samples[1]
    assert 10 < len(samples[0]) < 40


def test_a_query_of_a_large_index_on_a_server_reads_little_of_it(server: CrawlServer, select: Select) -> None:
    lines = []
    for number in range(30_000):
        row = {"url": f"https://h{number:05d}.org/", "mime": "text/html", "status": "200", "digest": "A" * 32,
               "length": "9", "offset": "1", "filename": "a.warc.gz"}  # fmt: skip
        lines.append(f"org,h{number:05d})/ 20240518015810 {json.dumps(row)}")
    files = index_files(lines, lines_a_member=10, members_a_file=500)
    server.files = {f"i/{name}": content for name, content in files.items()}
    counts, rows = select(server.url + "i", domains=("h17777.org",))
    assert urls(rows) == {"https://h17777.org/"}
    assert counts["lines"] <= 20
    assert len(server.requests) < 30


def test_selected_captures_become_pages(folder: Path, select: Select, fetch: Fetch, tmp_path: Path) -> None:
    _, rows = select(folder / INDEX, domains=("owls.org",))
    counts, pages = fetch(tmp_path / "captures0", folder, source="owls")
    assert {page.metadata["url"]: page.text.encode() for page in pages} == {url: body_of(url) for url in OWLS}
    places = {(row["url"], row["filename"], row["offset"]) for row in rows}
    assert {(p.metadata["url"], p.metadata["file"], p.metadata["offset"]) for p in pages} == places
    assert counts["records"] == len(OWLS)
    assert {page.source for page in pages} == {"owls"}
    spanish = next(page for page in pages if page.metadata["url"].endswith("buhos"))
    assert spanish.metadata["languages"] == ["spa", "eng"]


def test_captures_of_a_server_are_fetched_by_few_ranges(
    server: CrawlServer, select: Select, fetch: Fetch, tmp_path: Path
) -> None:
    server.files = crawl_files()
    select(server.url + INDEX, domains=("owls.org",))
    server.requests.clear()
    for number in range(3):
        server.fault(WARC.format(number), "cut", "busy", "ignore_range", "wrong_range", "encoded")
    counts, pages = fetch(tmp_path / "captures0", server.url)
    assert {page.metadata["url"] for page in pages} == OWLS
    assert all(span for _, _, span in server.requests)
    assert counts["requests"] == len(server.requests) <= 2 * len(list_shards(str(tmp_path / "captures0"))) * 3 + 15
    assert counts["retries"] >= 12


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"offset": 3}, "damaged_record"), ({"length": 40}, "cut_record"), ({"url": "https://b.org/"}, "other_capture"),
        ({"digest": "A" * 32}, "other_capture"), ({"offset": -1}, "bad_row"), ({"length": 0}, "bad_row"),
        ({"filename": "../x"}, "bad_row"), ({"offset": "7"}, "bad_row"), ({"offset": 0}, "other_capture"),
    ],
)  # fmt: skip
def test_a_row_that_is_not_the_place_of_its_capture_is_rejected(
    folder: Path, select: Select, fetch: Fetch, tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    _, rows = select(folder / INDEX, domains=("zebra.com",))
    (tmp_path / "changed").mkdir()
    write_rows(str(tmp_path / "changed/part-0.jsonl.zst"), [*rows[1:], {**rows[0], **change}])
    counts, pages = fetch(tmp_path / "changed", folder, max_damaged_fraction=0.5)
    assert len(pages) == len(rows) - 1
    assert reasons(counts) == {reason: 1}


def test_a_missing_file_is_an_error(
    folder: Path, select: Select, fetch: Fetch, tmp_path: Path, server: CrawlServer
) -> None:
    select(folder / INDEX, domains=("zebra.com",))
    with pytest.raises(ShardError, match="does not exist, and a capture names it"):
        fetch(tmp_path / "captures0", tmp_path)
    with pytest.raises(ShardError, match="The server answered 404"):
        fetch(tmp_path / "captures0", server.url)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"domains": ("nothing.example",)}, "None of the .* lines .* is kept"),
        ({"domains": ("https://owls.org",)}, "domains has 'https://owls.org', expected a name"),
        ({"urls": ("owls.org",)}, "urls has 'owls.org', expected an address"),
        ({"sample_fraction": 0.0}, "sample_fraction is 0.0"),
    ],
)
def test_a_query_that_selects_nothing_is_a_sentence(
    folder: Path, select: Select, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(CrawlError, match=sentence):
        select(folder / INDEX, **fields)


def test_a_damaged_index_is_an_error_and_a_damaged_line_is_counted(
    folder: Path, select: Select, tmp_path: Path
) -> None:
    lines = cdx_lines(WARC.format(0), (folder / WARC.format(0)).read_bytes())
    bad = ["com,a)/ 2024 {", "com,b)/ 2024 []", 'com,c)/ 2024 {"url": "x"}', "com,d)/"]
    index = tmp_path / "index"
    index.mkdir()
    for name, content in index_files([*lines, *(f"{row} {{}}" if row == "com,d)/" else row for row in bad)]).items():
        (index / name).write_bytes(content)
    assert reasons(select(index)[0])["bad_line"] == 4
    broken = bytearray((index / "cdx-00000.gz").read_bytes())
    broken[len(broken) // 2] ^= 1
    (index / "cdx-00000.gz").write_bytes(broken)
    with pytest.raises(ShardError, match=r"The index file 'cdx-00000\.gz' is damaged between the bytes"):
        select(index)
    (index / "cluster.idx").write_text("no index\n")
    with pytest.raises(CrawlError, match="has the line b'no index', expected a key, a file"):
        select(index)
