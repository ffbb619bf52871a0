"""Rows drawn by a seed, and rows by a condition: the same as those of the files, within limits that are stated."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections import Counter
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from browser_server import Answer, Browser, browsing
from stored_outputs_for_browsing import store_output

from marin_assets.browse.limits import Limits
from marin_assets.browse.rows.sample import draw
from marin_resources.storage.paths import join

SIZES = (3, 200, 40, 1)
REASONS = ("too_short", "low_quality", "")


def rows_of(shard: int) -> list[dict]:
    return [
        {
            "id": f"s{shard}/{i}",
            "keep": not REASONS[i % 3],
            "reason": REASONS[i % 3],
            "value": i / 10 if i % 5 else None,
            "source": "web" if i % 2 else "books",
            "text": f"row {i} “naïve” a/b {'needle' if i % 50 == 7 else ''}",
        }
        for i in range(SIZES[shard])
    ]


@pytest.fixture
def prefix(disk_prefix: str) -> str:
    suffixes = ("jsonl.zst", "jsonl.gz", "parquet", "jsonl")
    files = {f"part-{i}.{suffix}": rows_of(i) for i, suffix in enumerate(suffixes)}
    store_output(disk_prefix, "attributes/web", files)
    return disk_prefix


def shown_ids(answer: Answer) -> list[str]:
    ids = re.findall(r"data-open [^>]*>(?:\d+|<bdi>[^<]*</bdi>, row \d+)</a></th>\s*<td><bdi>(.*?)</bdi>", answer.html)
    return [unescape(id) for id in ids]


CONDITIONS = {
    "text": "needle",
    "text ": "naïve",
    "text/": "a/b needle",
    "reason": "too_short",
    "source": "books",
    "fate": "rejected",
    "at_least": 19.5,
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_search_shows_the_rows_of_the_files_that_have_the_condition(prefix: str, name: str) -> None:
    condition, value = name.strip(" /"), CONDITIONS[name]
    accepts = {
        "text": lambda row: value in row["text"],
        "reason": lambda row: row["reason"] == value,
        "source": lambda row: row["source"] == value,
        "fate": lambda row: not row["keep"],
        "at_least": lambda row: row["value"] is not None and row["value"] >= value,
    }[condition]
    expected = [row["id"] for shard in range(4) for row in rows_of(shard) if accepts(row)]
    shown: list[str] = []
    with browsing(prefix) as browser:
        answer = browser.get("search", path="attributes/web-abc123", **{condition: value})
        shown += shown_ids(answer)
        while link := re.search(r'<a rel="next" href="([^"]+)">Search on', answer.html):
            assert "100 rows are shown." in answer.text
            answer = browser.send("GET", unescape(link[1]))
            shown += shown_ids(answer)
    assert "That is everything." in answer.text
    assert shown == expected


def test_all_conditions_must_hold_and_the_text_is_marked(prefix: str) -> None:
    with browsing(prefix) as browser:
        answer = browser.get("search", path="attributes/web-abc123", text="needle", source="web", fate="kept")
        expected = [
            r["id"]
            for s in range(4)
            for r in rows_of(s)
            if "needle" in r["text"] and r["source"] == "web" and r["keep"]
        ]
        assert shown_ids(answer) == expected
        assert answer.html.count("<mark>needle</mark>") == len(expected)
        assert "244 rows were searched" in answer.text


@pytest.mark.parametrize("query", [{"text": "needle"}, {"at_least": "19.5", "source": "web"}, {}])
def test_all_rows_of_a_search_are_a_file(prefix: str, query: dict[str, str]) -> None:
    every = [row for shard in range(4) for row in rows_of(shard)]
    selected = [row for row in every if "needle" in row["text"]] if "text" in query else every
    if "source" in query:
        selected = [row for row in every if (row["value"] or 0) >= 19.5 and row["source"] == "web"]
    with browsing(prefix) as browser:
        answer = browser.get("selection", path="attributes/web-abc123", **query)
        page = browser.get("search", path="attributes/web-abc123", **query)
    assert answer.status == 200
    assert [json.loads(line) for line in answer.body.splitlines()] == selected
    assert "web-abc123.selection.jsonl" in answer.headers["content-disposition"]
    assert ("/selection?path=attributes" in page.html) == bool(query)


def test_a_selection_is_whole_or_an_error(prefix: str) -> None:
    with browsing(prefix, limits=Limits(page_bytes=2000)) as browser:
        answer = browser.get("selection", path="attributes/web-abc123", source="books")
        assert answer.status == 503
        assert "The selected rows have more than 2,000 bytes, the limit of a download." in answer.html
    Path(prefix, "attributes/web-abc123/part-1.jsonl.gz").write_bytes(b"no gzip")
    with browsing(prefix) as browser:
        assert browser.get("selection", path="attributes/web-abc123", source="books").status == 422


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"at_least": "much"}, "at_least is 'much', expected a number such as 0.5. Correct the address."),
        ({"fate": "x"}, "fate is 'x', expected 'kept' or 'rejected'. Correct the address."),
        ({"text": "a", "row": "x"}, "row is 'x', expected a number from 0 to"),
    ],
)
def test_a_condition_that_is_none_is_a_sentence(prefix: str, query: dict[str, str], sentence: str) -> None:
    with browsing(prefix) as browser:
        answer = browser.get("search", path="attributes/web-abc123", **query)
    assert answer.status == 404
    assert answer.sentence.startswith(sentence)


def test_a_damaged_shard_is_named_and_the_others_are_searched(prefix: str) -> None:
    Path(prefix, "attributes/web-abc123/part-0.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd\x04")
    with browsing(prefix) as browser:
        answer = browser.get("search", path="attributes/web-abc123", text="needle")
    assert "part-0.jsonl.zst' is damaged or truncated" in answer.text
    assert shown_ids(answer) == [row["id"] for shard in (1, 2, 3) for row in rows_of(shard) if "needle" in row["text"]]


@pytest.fixture
def large(disk_prefix: str) -> str:
    """600,001 rows; the first has the needle, and no other."""
    store_output(disk_prefix, "documents/web", {})
    with Path(join(disk_prefix, "documents/web-abc123/part-0.jsonl")).open("w") as file:
        file.write(json.dumps({"id": "first", "text": "needle"}) + "\n")
        for _ in range(60):  # 80 MB
            file.write((json.dumps({"id": "other", "text": "straw " * 10}) + "\n") * 10_000)
    return disk_prefix


@pytest.mark.long
def test_a_hit_is_shown_as_it_is_reached_and_a_closed_tab_stops_the_search(large: str) -> None:
    with browsing(large, limits=Limits(threads=1, waiting_s=5)) as browser:
        connection = http.client.HTTPConnection("127.0.0.1", browser.port, timeout=30)
        query = urlencode({"path": "documents/web-abc123", "reason": "nothing", "text": ""})
        connection.request("GET", f"/search?{query}")
        response = connection.getresponse()
        assert b"<tbody>" in response.read1(100_000)
        connection.close()
        before = time.monotonic()
        assert browser.get("rows", path="documents/web-abc123/part-0.jsonl").status == 200  # the one thread is free
        assert time.monotonic() - before < 3
        connection = http.client.HTTPConnection("127.0.0.1", browser.port, timeout=30)
        connection.request("GET", f"/search?{urlencode({'path': 'documents/web-abc123', 'text': 'needle'})}")
        response = connection.getresponse()
        first = response.read1(100_000)
        while b"<mark>needle</mark>" not in first:
            first += response.read1(100_000)
        assert b"rows were searched" not in first
        assert b"600,001 rows were searched" in response.read()
        connection.close()


def test_a_limit_of_time_ends_a_search_which_continues_from_there(large: str) -> None:
    with browsing(large, limits=Limits(bytes=10_000_000)) as browser:
        answer = browser.get("search", path="documents/web-abc123", text="absent")
        assert "The request has read" in answer.text
        row = int(re.findall(r"Search on from row ([\d,]+)", answer.text)[0].replace(",", ""))
    assert 0 < row < 600_001


def test_the_same_seed_draws_the_same_rows(prefix: str) -> None:
    rows = {row["id"] for shard in range(4) for row in rows_of(shard)}
    with browsing(prefix) as browser:
        first, again, other = (
            shown_ids(browser.get("sample", path="attributes/web-abc123", seed=seed, count=50)) for seed in (7, 7, 8)
        )
        whole = shown_ids(browser.get("sample", path="attributes/web-abc123/part-2.parquet", seed=0, count=100))
    assert first == again
    assert first != other
    assert len(set(first)) == 50
    assert set(first) <= rows
    assert sorted(whole) == sorted(row["id"] for row in rows_of(2))


def test_each_row_is_drawn_with_the_same_probability() -> None:
    """Chi-square over files of unequal sizes, at the 0.1 % point of 3 degrees of freedom."""
    drawn = Counter(file for seed in range(400) for file, _ in draw(SIZES, 10, seed))
    total = sum(SIZES)
    expected = [4000 * size / total for size in SIZES]
    assert sum((drawn[file] - mean) ** 2 / mean for file, mean in enumerate(expected)) < 16.27
    pairs = draw(SIZES, 10_000, 1)
    assert pairs == [(file, row) for file, size in enumerate(SIZES) for row in range(size)]
    assert draw((), 5, 0) == draw((0, 0), 5, 0) == []


def test_the_search_form_keeps_its_conditions(prefix: str) -> None:
    with browsing(prefix) as browser:
        html = browser.get("search", path="attributes/web-abc123", text='"<b>', reason="x", at_least=0.5).html
    assert 'value="&#34;&lt;b&gt;"' in html
    assert 'name="at_least" inputmode="decimal" value="0.5"' in html
    assert isinstance(browser, Browser)
