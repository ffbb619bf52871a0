"""Links of pages to pages that are not fetched yet."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import Document, list_shards, read_rows, write_documents, write_rows
from marin_assets.stages.download.links.extract_outlinks import ExtractOutlinksConfig, extract_outlinks
from marin_assets.stages.download.links.seen_addresses import LinksError
from marin_assets.stages.download.links.sorted_lines import LineSorter
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.shard_error import ShardError


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may be up in this process for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


def page(number: int, html: str, url: str | None = None) -> Document:
    return Document(id=str(number), text=html, metadata={"url": url or f"https://s{number}.example.org/a"})


def extract(folder: Path, *shards: list[Document], **fields: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    for number, pages in enumerate(shards):
        write_documents(f"{folder}/pages/{number}.jsonl.zst", pages)
    config = ExtractOutlinksConfig(pages_path=f"{folder}/pages", output_path=f"{folder}/out", **fields)
    counts = extract_outlinks(unwrap_versioned_value(config))
    rows = rows_of(folder / "out")
    reasons = sum(
        n for key, n in counts.items() if key.startswith("rejected_") and not key.startswith("rejected_page_")
    )
    assert counts["links"] == counts["outlinks"] + counts["rejected"]
    assert counts["rejected"] == reasons
    assert len(rows) == counts["outlinks"]
    return counts, rows


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [dict(row) for shard in list_shards(str(folder)) for _, row in read_rows(shard)]  # type: ignore[arg-type]


def random_pages(count: int) -> list[Document]:
    draw = random.Random(7)
    links = [
        "".join(
            f"<p>see <a href='http://h{draw.randrange(30)}.com/p{draw.randrange(9)}'>x{n}</a></p>" for n in range(20)
        )
        for _ in range(count)
    ]
    return [page(number, html) for number, html in enumerate(links)]


def test_each_link_is_a_row_or_has_a_reason(tmp_path: Path) -> None:
    html = """<p>An <a href="http://owls.com/a#wings">owl</a> <a href="http://owls.com/a">again</a>
      <a href="mailto:x@y.z">m</a> <a href="/own">o</a> <a href="https://www.example.org/">d</a> <a href="#top">t</a>
      <a href="http://owls.com/x.PDF">p</a> <a href="http://u:p@owls.com/">u</a> <a rel=nofollow href="http://no.com/">n</a>
      <a href="http://127.0.0.1:22/">q</a></p>"""
    counts, [row] = extract(tmp_path, [page(1, html)])
    assert (row["url"], row["domain"], row["anchor"], row["page_id"]) == ("http://owls.com/a", "owls.com", "owl", "1")
    assert row["context"].startswith("An owl again")
    assert row["page_url"] == "https://s1.example.org/a"
    reasons = {key.removeprefix("rejected_"): n for key, n in counts.items() if key.startswith("rejected_") and n}
    assert reasons == {
        "repeated": 1, "scheme": 1, "own_site": 2, "same_page": 1,
        "extension": 1, "userinfo": 1, "nofollow": 1, "port": 1
    }  # fmt: skip


def test_fields_keep_what_is_left_out_by_default(tmp_path: Path) -> None:
    html = "<meta name=robots content=none><a href=/own>o</a><a href=http://owls.com/x.pdf>p</a>"
    counts, rows = extract(tmp_path, [page(1, html)], keep_own_site=True, follow_nofollow=True, skipped_extensions=())
    assert {row["url"] for row in rows} == {"https://s1.example.org/own", "http://owls.com/x.pdf"}
    assert counts["rejected"] == 0


def test_a_page_without_an_address_or_that_refuses_has_no_links(tmp_path: Path) -> None:
    link = "<a href=http://owls.com/>x</a>"
    pages = [page(1, link), page(2, link, "no address"), page(3, f"<meta name=robots content=nofollow>{link}")]
    counts, rows = extract(tmp_path, [*pages, page(4, link + " " * 200)], max_page_characters=200)
    assert [row["page_id"] for row in rows] == ["1"]
    assert (counts["pages"], counts["pages_without_links"]) == (4, 3)
    assert (counts["rejected_page_no_url"], counts["rejected_page_nofollow"], counts["rejected_page_too_long"]) == (
        1,
        1,
        1,
    )


def test_rows_depend_on_the_pages_and_not_on_their_order_or_shards(tmp_path: Path) -> None:
    pages = random_pages(40)
    _, rows = extract(tmp_path / "a", pages)
    shuffled = random.Random(1).sample(pages, len(pages))
    _, others = extract(tmp_path / "b", shuffled[:3], shuffled[3:25], shuffled[25:])
    assert rows == others
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    for part in range(16):
        name = f"out/part-{part:05d}-of-00016.jsonl.zst"
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_what_is_seen_is_left_out_exactly(tmp_path: Path) -> None:
    pages = random_pages(40)
    _, rows = extract(tmp_path / "all", pages)
    urls = [row["url"] for row in rows]
    crawled, corpus, table = set(urls[::5]), set(urls[1::3]), set(urls[2::7])
    write_rows(f"{tmp_path}/crawled.jsonl.zst", [{"url": f"{url}#part", "outcome": "fetched"} for url in crawled])
    write_documents(
        f"{tmp_path}/corpus.parquet", [Document(id=url, text="x", metadata={"url": url}) for url in sorted(corpus)]
    )
    write_rows(f"{tmp_path}/table.parquet", [{"url": url, "fetch_status": 200} for url in sorted(table)])
    seen = {"crawled": f"{tmp_path}/crawled.jsonl.zst", "corpus": f"{tmp_path}/corpus.parquet",
            "table": f"{tmp_path}/table.parquet"}  # fmt: skip
    counts, left = extract(tmp_path / "new", pages, seen=seen)
    assert {row["url"] for row in left} == set(urls) - crawled - corpus - table
    assert counts["rejected_seen_corpus"] == len(corpus)
    assert counts["rejected_seen_crawled"] == len(crawled - corpus)
    assert counts["rejected_seen_table"] == len(table - corpus - crawled)


def test_a_sample_is_by_the_address_and_a_larger_one_has_the_smaller_one(tmp_path: Path) -> None:
    pages = random_pages(40)
    _, all_rows = extract(tmp_path / "all", pages)
    _, half = extract(tmp_path / "half", pages, sample_fraction=0.5)
    _, tenth = extract(tmp_path / "tenth", pages[20:], sample_fraction=0.1)
    assert 0.3 * len(all_rows) < len(half) < 0.7 * len(all_rows)
    assert {row["url"] for row in tenth} <= {row["url"] for row in half}


def test_a_mistake_is_one_sentence(tmp_path: Path) -> None:
    pages = [page(1, "<a href=http://owls.com/>x</a>")]
    with pytest.raises(LinksError, match="sample_fraction is 0"):
        extract(tmp_path / "a", pages, sample_fraction=0.0)
    with pytest.raises(LinksError, match=r"skipped_extensions has 'pdf'"):
        extract(tmp_path / "b", pages, skipped_extensions=("pdf",))
    with pytest.raises(LinksError, match="no link that is left"):
        extract(tmp_path / "c", [page(1, "<a href=/x>own</a>")])
    write_rows(f"{tmp_path}/list.jsonl", [{"link": "http://owls.com/"}])
    with pytest.raises(ShardError, match="no row has an address"):
        extract(tmp_path / "d", pages, seen={"list": f"{tmp_path}/list.jsonl"})


def test_lines_are_sorted_in_runs() -> None:
    draw = random.Random(3)
    lines = [f"{draw.randrange(1000)}".encode() for _ in range(2000)]
    with LineSorter(run_bytes=5000) as sorter:
        for line in lines:
            sorter.add(line)
        assert list(sorter.lines()) == sorted(lines)
    with pytest.raises(ValueError, match="line end"):
        LineSorter().add(b"a\nb")
