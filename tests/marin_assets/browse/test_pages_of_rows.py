"""Any output as rows: a page of 100 at any offset, in every format, with its states and files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from browser_server import Browser, browsing
from stored_outputs_for_browsing import store_output

from marin_assets.browse.limits import Limits
from marin_assets.documents.rows import read_rows
from marin_resources.storage.files import write_bytes, write_json
from marin_resources.storage.paths import join

FORMATS = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet")
ROWS = [{"id": f"page/{i}#{i % 3}", "text": f"text of row {i}", "value": i / 7} for i in range(250)]


@pytest.fixture
def prefix(any_prefix: str) -> str:
    store_output(any_prefix, "documents/web", {f"part-{i}.{suffix}": ROWS for i, suffix in enumerate(FORMATS)})
    return any_prefix


@pytest.fixture
def browser(prefix: str) -> Iterator[Browser]:
    with browsing(prefix) as browser:
        yield browser


def shown_ids(html: str) -> list[str]:
    """The ids in the first column of the table."""
    cells = re.findall(r'aria-label="Open row \d+">\d+</a></th>\s*<td><bdi>(.*?)</bdi>', html)
    return [unescape(cell) for cell in cells]


@pytest.mark.parametrize("start", [0, 100, 249, 250])
def test_a_page_has_the_rows_of_the_file_in_every_format(browser: Browser, prefix: str, start: int) -> None:
    for index, suffix in enumerate(FORMATS):
        path = f"documents/web-abc123/part-{index}.{suffix}"
        answer = browser.get("rows", path=path, start=start)
        expected = [row["id"] for number, row in read_rows(join(prefix, path)) if start < number <= start + 100]
        assert answer.status == 200
        assert shown_ids(answer.html) == expected


def test_a_page_reports_the_rows_that_had_to_be_skipped(browser: Browser) -> None:
    line_file, parquet = "documents/web-abc123/part-1.jsonl.gz", "documents/web-abc123/part-3.parquet"
    assert "had to be decompressed" not in browser.get("rows", path=line_file).text
    assert "rows before this page had to be decompressed" in browser.get("rows", path=line_file, start=200).text
    assert "had to be decompressed" not in browser.get("rows", path=parquet, start=200).text


def test_pages_lead_to_the_next_and_the_previous_and_to_each_row(browser: Browser) -> None:
    path = "documents/web-abc123/part-3.parquet"
    html = browser.get("rows", path=path, start=100).html
    for relation, start in (("next", 200), ("prev", 0)):
        [link] = set(re.findall(rf'rel="{relation}" href="([^"]+)"', html))
        first = browser.send("GET", unescape(link))
        assert shown_ids(first.html)[0] == ROWS[start]["id"]
    assert 'rel="next"' not in browser.get("rows", path=path, start=200).html
    row = browser.send("GET", unescape(re.findall(r'data-open href="([^"]+)"', html)[7]))
    assert "text of row 107" in row.text


def test_a_row_is_opened_by_its_id_with_any_characters(disk_prefix: str) -> None:
    ids = ["a/b#1?c=%20&d", "' \" <b> \\", "né 日本 🙂", "x" * 1000, "50% + 1"]
    for name, suffix in (("l", "jsonl.zst"), ("p", "parquet")):
        store_output(
            disk_prefix,
            f"documents/{name}",
            {f"part.{suffix}": [{"id": id, "text": f"text {n}"} for n, id in enumerate(ids)]},
        )
    with browsing(disk_prefix) as browser:
        for path in ("documents/l-abc123/part.jsonl.zst", "documents/p-abc123/part.parquet"):
            for number, id in enumerate(ids):
                assert f"text {number}" in browser.get("row", path=path, id=id).text
            missing = browser.get("row", path=path, id="nowhere")
            assert missing.status == 404
            assert (
                missing.sentence
                == f"No row of '{path.rpartition('/')[2]}' has the id 'nowhere'. Look in the other shards."
            )


def test_the_page_of_an_output_lists_its_files_with_rows_and_size(disk_prefix: str) -> None:
    below = store_output(disk_prefix, "documents/web", {f"part-{i}.jsonl.gz": ROWS[: 10 + i] for i in range(3)})
    for i in range(2):
        note = {
            "format_version": 2,
            "fn": "marin_assets.documents.attributes:decide_shard",
            "outputs": {f"part-{i}.jsonl.gz": 100},
            "counts": {"documents": 10 + i, "kept": 3},
        }
        write_json(join(disk_prefix, below, f".marin/shards/decide_shard/{i}.json"), note)
    write_bytes(join(disk_prefix, below, ".marin/shards/decide_shard/2.json"), b"{damaged")
    with browsing(disk_prefix) as browser:
        text = browser.get("output", path=below).text
    assert "3 files" in text
    for i, rows in enumerate(("10", "11", "not counted")):
        assert re.search(rf"part-{i}.jsonl.gz {rows} \d+ B", text)


def test_a_running_output_is_shown_as_incomplete(disk_prefix: str) -> None:
    below = store_output(disk_prefix, "documents/web", {"part-0.jsonl": ROWS[:5]}, status="RUNNING")
    with browsing(disk_prefix) as browser:
        for page, path in (("output", below), ("rows", f"{below}/part-0.jsonl"), ("row", f"{below}/part-0.jsonl")):
            assert "Incomplete: the output is RUNNING. Its files may change" in browser.get(page, path=path).text
        assert "web-abc123 incomplete: RUNNING" in browser.get("output", path="documents").text


def test_a_row_that_is_being_written_ends_the_page_with_a_reason(disk_prefix: str) -> None:
    below = store_output(disk_prefix, "documents/web", {"part-0.jsonl": ROWS[:5]}, status="RUNNING")
    with Path(disk_prefix, below, "part-0.jsonl").open("a") as file:
        file.write('{"id": "half", "te')
    with browsing(disk_prefix) as browser:
        answer = browser.get("rows", path=f"{below}/part-0.jsonl")
    assert "text of row 4" in answer.text
    assert "not a row: invalid_json" in answer.text


def test_partitions_are_listed_by_their_keys(disk_prefix: str) -> None:
    for key in ("2026-01", "c%20d"):
        store_output(f"{disk_prefix}/tokenized/web-aa11bb", key, {"part-0.jsonl": ROWS[:2]}, version="x")
    with browsing(disk_prefix) as browser:
        text = browser.get("output", path="tokenized/web-aa11bb").text
        assert "2026-01-x complete" in text
        assert "c d-x complete" in text
        assert "text of row 1" in browser.get("rows", path="tokenized/web-aa11bb/c%20d-x/part-0.jsonl").text


def test_the_first_page_lists_complete_outputs_and_filters_them_by_name(browser: Browser, prefix: str) -> None:
    store_output(prefix, "attributes/web/quality", {"part-0.jsonl": [{"id": "a"}]})
    assert "2 complete outputs" in browser.get("").text
    filtered = browser.get("", name="qual").text
    assert "attributes/web/quality abc123" in filtered
    assert "documents/web abc123" not in filtered


def test_adopted_data_elsewhere_are_named_and_shown_if_listed(disk_prefix: str, tmp_path: Path) -> None:
    below = store_output(disk_prefix, "documents/web", {})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "rows.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    record = {"format_version": 1, "name": "documents/web", "prefix": disk_prefix, "data_path": str(elsewhere)}
    write_json(join(disk_prefix, below, ".executor_info"), record)
    with browsing(disk_prefix) as browser:
        assert (
            f"The data of this output are at {elsewhere}, outside of what is shown"
            in browser.get("output", path=below).text
        )
    with browsing(disk_prefix, str(elsewhere)) as browser:
        answer = browser.get("output", path=below)
        link = re.findall(r'data-open href="([^"]+)"', answer.html)[0]
        assert "text of row 0" in browser.send("GET", unescape(link)).text


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (Limits(bytes=10_000), "The request has read"),
        (Limits(seconds=0.0), "The request took longer than 0 s, its limit"),
    ],
)
def test_a_limit_that_is_reached_is_stated(disk_prefix: str, limits: Limits, sentence: str) -> None:
    rows = ({"id": str(i), "text": f"{i * 7919 % 10_007}" * 50} for i in range(20_000))
    below = store_output(disk_prefix, "documents/web", {"part-0.jsonl.zst": rows})
    with browsing(disk_prefix, limits=limits) as browser:
        answer = browser.get("rows", path=f"{below}/part-0.jsonl.zst", start=19_000)
        assert answer.status == 503
        assert answer.sentence.startswith(sentence)
        assert browser.get("nothing").status == 404
