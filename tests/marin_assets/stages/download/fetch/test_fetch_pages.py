"""A crawl of a web with every trap: each address has the outcome that it should have, politely."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from crawls import documents_of, reasons
from loopback_web import LATE, LoopbackWeb, answer, page, trick

from marin_assets.documents import list_shards, read_rows, write_rows
from marin_assets.stages.download.crawl.read_warc import ReadWarcConfig, read_warc
from marin_assets.stages.download.fetch.fetch_pages import FetchPagesConfig, FetchPagesError, fetch_pages
from marin_assets.step.values import unwrap_versioned_value

BUSY, DELAYED, CHANGING = "h04.example", "h06.example", "h05.example"


def pages_of(output: Path | str, pages: Path) -> Any:
    config = ReadWarcConfig(input_path=f"{output}/warc", output_path=str(pages))
    return read_warc(unwrap_versioned_value(config)), documents_of(pages)


def test_every_address_of_a_web_of_traps_has_its_outcome_politely(web: LoopbackWeb, crawl: Any, tmp_path: Path) -> None:
    counts, rows = crawl(*web.urls)
    assert {url: rows[url]["outcome"] for url in web.expected} == web.expected
    assert counts["hosts"] == 53
    # one connection at a time, the delay between two requests, a name with a contact, and nothing that is forbidden
    assert (web.most_open, web.most_open_at) == (1, 1)
    assert web.least_gap_s() >= 0.1
    times = web.times_of()[DELAYED]
    assert min(b - a for a, b in pairwise(times[1:])) >= 0.3
    assert {agent for *_, agent in web.requests} == {"OwlBot/1.0 (+https://owls.example.org/bot)"}
    requested = {(host, path) for _, host, path, _ in web.requests}
    assert not any(path == "forbidden" for _, path in requested)
    assert not any(path.startswith("p") for host, path in requested if host in ("h09.example", "h10.example"))
    # what is fetched is what was sent, once
    read, pages = pages_of(tmp_path / "crawl0", tmp_path / "pages")
    assert reasons(read).keys() == {"other_type", "status"}
    fetched = {url for url, row in rows.items() if row["outcome"] == "fetched"}
    by_url = Counter(page.metadata["url"] for page in pages)
    assert by_url == {rows[url].get("target", url): 1 for url in fetched}
    japanese = next(page for page in pages if page.metadata["url"] == web.url("h08.example", "japanese"))
    assert "ふくろう" in japanese.text
    robots = [row for shard in list_shards(f"{tmp_path}/crawl0/robots") for _, row in read_rows(shard)]
    assert Counter(row["outcome"] for row in robots)["robots_unreachable"] == 3  # type: ignore[call-overload]


def test_another_reader_reads_the_files_and_their_digests(web: LoopbackWeb, crawl: Any, tmp_path: Path) -> None:
    warcio = pytest.importorskip("warcio.archiveiterator")
    crawl(web.url("h00.example", "p0"), web.url("h08.example", "chunks"), web.url("h00.example", "away"))
    with open(tmp_path / "crawl0/warc/pages-00000.warc.gz", "rb") as file:
        records = [
            (record.rec_type, record.rec_headers["WARC-Target-URI"], record.content_stream().read())
            for record in warcio.ArchiveIterator(file, check_digests="raise")
        ]
    assert Counter(kind for kind, *_ in records) == {"warcinfo": 1, "response": 4, "request": 4}
    assert b"operator: https://owls.example.org/bot" in records[0][2]
    [chunks] = [body for kind, url, body in records if kind == "response" and url.endswith("chunks")]
    assert b"chunks has owls" in chunks
    data = (tmp_path / "crawl0/warc/pages-00000.warc.gz").read_bytes()
    assert gzip.decompress(data).count(b"WARC/1.0\r\n") == 9
    assert data.count(b"\x1f\x8b\x08\x00\x00\x00\x00\x00") >= 9


def test_a_crawl_is_the_same_in_a_bucket(web: LoopbackWeb, crawl_fields: Any, any_prefix: str, tmp_path: Path) -> None:
    fields = crawl_fields(tmp_path, [web.url(name, "p0") for name in web.names[:3]], commit_s=0.0)
    output = f"{any_prefix}/crawls/owls-0123ab"
    counts = fetch_pages(unwrap_versioned_value(FetchPagesConfig(**{**fields, "output_path": output})))
    assert (counts["fetched"], counts["warc_files"], counts["robots_files"]) == (3, 1, 3)
    read, pages = pages_of(output, tmp_path / "pages")
    assert (read["pages"], len(pages)) == (3, 3)
    assert [row["outcome"] for shard in list_shards(f"{output}/outcomes") for _, row in read_rows(shard)] == 3 * [
        "fetched"
    ]  # type: ignore[call-overload]


def test_host_names_with_one_address_share_its_turns(web: LoopbackWeb, crawl: Any) -> None:
    names = [f"shop{number}.example" for number in range(3)]
    web.hosts |= dict.fromkeys(names, web.hosts["h00.example"])
    counts, _ = crawl(*(web.url(name, "p0") for name in [*names, "h00.example", "h16.example"]), delay_s=0.05)
    assert counts["fetched"] == 5
    assert web.most_open_at == 1
    assert web.least_gap_s() >= 0.05
    assert len(web.times_at[web.hosts["h00.example"]]) == 8  # a robots.txt and a page of each


def test_host_names_with_one_address_are_visited_at_once_if_addresses_do_not_count(
    web: LoopbackWeb, crawl: Any
) -> None:
    met = threading.Barrier(3)

    async def meet(*arguments: Any) -> None:
        await asyncio.get_running_loop().run_in_executor(None, met.wait, 20)
        await arguments[-1](answer(page("met")))

    names = [f"shop{number}.example" for number in range(3)]
    web.hosts |= dict.fromkeys(names, web.hosts["h00.example"])
    with trick("meet", meet):
        counts, _ = crawl(*(web.url(name, "meet") for name in names), by_address=False, patience_s=30.0)
    assert (counts["fetched"], web.most_open_at) == (3, 3)


def test_a_server_that_names_a_time_is_visited_after_it(web: LoopbackWeb, crawl: Any) -> None:
    _, rows = crawl(web.url(BUSY, "busy"), web.url(BUSY, "p0"))
    assert {row["outcome"] for row in rows.values()} == {"fetched"}
    at = [time for time, _, path, _ in web.requests if path == "busy"]
    after = [time for time, *_ in web.requests if time > at[0]]
    assert min(after) - at[0] >= 1.0


def test_a_robots_txt_is_requested_again_when_it_is_old(web: LoopbackWeb, crawl: Any) -> None:
    _, rows = crawl(web.url(CHANGING, LATE))
    assert [row["outcome"] for row in rows.values()] == ["fetched"]
    _, rows = crawl(*(web.url(CHANGING, path) for path in ("p0", "p1", LATE)), robots_hours=0.1 / 3600)
    assert rows[web.url(CHANGING, LATE)]["outcome"] in ("robots", "fetched")
    assert web.seen[CHANGING, "robots.txt"] >= 3


def test_a_host_that_fails_ends_and_the_others_go_ahead(web: LoopbackWeb, crawl: Any) -> None:
    web.hosts["dead.example"] = "127.0.0.250"  # nothing listens there
    urls = [web.url("h01.example", "p0"), *(web.url("dead.example", f"p{number}") for number in range(20))]
    counts, _ = crawl(*urls)
    assert counts["fetched"] == 1
    assert counts["outcome_robots_unreachable"] == 20
    urls = [web.url("h14.example", path) for path in ("nothing", "p0", "p1")]
    counts, rows = crawl(*urls, web.url("h00.example", "p0"), max_host_failures=1)
    assert rows[urls[0]]["outcome"] == "connection"
    assert {rows[url]["outcome"] for url in urls[1:]} <= {"fetched", "host_failed"}


@pytest.mark.parametrize("budget", [{"max_pages": 5}, {"max_bytes": 3000}, {"max_hours": 0.5 / 3600}], ids=str)
def test_a_crawl_stops_at_its_budget(web: LoopbackWeb, crawl: Any, budget: dict[str, Any], tmp_path: Path) -> None:
    counts, _ = crawl(*(web.url(name, f"p{n}") for name in web.names[:9] for n in range(3)), **budget, connections=2)
    assert 0 < counts["fetched"] < 27
    assert counts["outcome_budget"] > 0
    if "max_pages" in budget:
        assert counts["fetched"] == 5
    _, pages = pages_of(tmp_path / "crawl0", tmp_path / "pages")
    assert len(pages) == counts["fetched"]


def test_a_host_has_at_most_so_many_pages(web: LoopbackWeb, crawl: Any) -> None:
    counts, _ = crawl(*(web.url("h00.example", f"p{number}") for number in range(5)), max_pages_per_host=2)
    assert (counts["fetched"], counts["outcome_host_limit"]) == (2, 3)


def test_a_page_that_several_addresses_redirect_to_is_kept_once(web: LoopbackWeb, crawl: Any, tmp_path: Path) -> None:
    async def to_one(*arguments: Any) -> None:
        await arguments[-1](b"HTTP/1.1 301 Moved\r\nLocation: /p77\r\nContent-Length: 0\r\n\r\n")

    with trick("one", to_one), trick("two", to_one):
        counts, _ = crawl(web.url("h00.example", "one"), web.url("h00.example", "two"))
    assert (counts["fetched"], counts["outcome_redirected"]) == (1, 1)
    _, [page] = pages_of(tmp_path / "crawl0", tmp_path / "pages")
    assert page.metadata["url"] == web.url("h00.example", "p77")


def test_a_list_is_rows_or_lines_and_each_row_is_counted(web: LoopbackWeb, crawl: Any, tmp_path: Path) -> None:
    url = web.url("h00.example", "p0")
    write_rows(f"{tmp_path}/rows.jsonl", [{"url": url}, {"url": f"{url}#x"}, {"no": 1}, {"url": "mailto:a@b.c"}])
    (tmp_path / "lines.txt").write_text(f"{url}\n\nhttp://666.0.0.1/\n")
    counts, _ = crawl(urls_path=f"{tmp_path}/rows.jsonl")
    assert (counts["rows"], counts["urls"]) == (4, 1)
    assert reasons(counts) == {"repeated": 1, "bad_row": 1, "scheme": 1}
    counts, _ = crawl(urls_path=f"{tmp_path}/lines.txt")
    assert reasons(counts) == {"host": 1}


def test_a_crawl_that_ended_before_its_end_is_published_again_and_fetches_nothing(
    web: LoopbackWeb, crawl_fields: Any, outcomes_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [web.url(name, "p0") for name in web.names[:4]]
    config = unwrap_versioned_value(FetchPagesConfig(**crawl_fields(tmp_path / "out", urls)))

    def killed(path: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("marin_assets.stages.download.fetch.fetch_pages.remove_folder", killed)
        with pytest.raises(KeyboardInterrupt):
            fetch_pages(config)
    before = (tmp_path / "out/warc/pages-00000.warc.gz").read_bytes(), len(web.requests)
    assert fetch_pages(config)["fetched"] == 4
    assert ((tmp_path / "out/warc/pages-00000.warc.gz").read_bytes(), len(web.requests)) == before
    assert [file.name for file in (tmp_path / "out/.marin/fetch").glob("*/*")] == []


def test_a_list_that_changed_between_two_attempts_keeps_what_it_still_has(
    web: LoopbackWeb, crawl_fields: Any, outcomes_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [web.url(name, "p0") for name in web.names[:4]]
    listed = tmp_path / "list.txt"
    listed.write_text("\n".join(urls[:3]))
    config = unwrap_versioned_value(
        FetchPagesConfig(**crawl_fields(tmp_path / "out", (), urls_path=str(listed), commit_s=0.0))
    )

    def killed(path: str, value: object) -> None:
        if path.endswith("ended.json"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("marin_assets.stages.download.fetch.fetch_pages.write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            fetch_pages(config)
    listed.write_text("\n".join(urls[1:]))
    counts = fetch_pages(config)
    assert (counts["urls"], counts["fetched"]) == (3, 3)
    assert set(outcomes_of(tmp_path / "out")) == set(urls[1:])
    read, pages = pages_of(tmp_path / "out", tmp_path / "pages")
    assert {page.metadata["url"] for page in pages} == set(urls[1:])
    assert read["pages"] == 3
    assert Counter(path for *_, path, _ in web.requests)["p0"] == 4


def test_without_allowed_networks_loopback_is_refused(web: LoopbackWeb, crawl: Any) -> None:
    with pytest.raises(FetchPagesError, match=r"None of the 1 addresses was fetched \(1 refused_address\)"):
        crawl(web.url("h00.example", "p0"), allowed_networks=())
    assert not web.requests


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"contact": ""}, "contact is ''"),
        ({"contact": "me"}, "contact is 'me'"),
        ({"contact": "https://eulen.example/über"}, "contact is"),
        ({"contact": "https://owls.example/ X: y"}, "contact is"),
        ({"agent": "Owl Bot/2"}, "agent is 'Owl Bot/2'"),
        ({"urls": ()}, "urls_path is None"),
        ({"tries": 0}, "tries is 0"),
        ({"max_pages": 0}, "max_pages is 0"),
        ({"delay_s": -1.0}, r"delay_s is -1\.0"),
        ({"max_hours": float("nan")}, "max_hours is nan"),
        ({"robots_hours": 48.0}, r"robots_hours is 48\.0"),
        ({"allowed_networks": ("loopback",)}, "no network or address"),
        ({"hosts": {"a.example": "b.example"}}, "no network or address"),
        ({"urls": ("mailto:x",)}, "None of the 1 rows"),
    ],
    ids=str,
)
def test_a_mistake_is_one_sentence(fields: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    config = {"contact": "bot@example.org", "urls": ("http://a.example/",), "output_path": str(tmp_path), **fields}
    with pytest.raises(FetchPagesError, match=sentence):
        fetch_pages(unwrap_versioned_value(FetchPagesConfig(**config)))
