"""What other outputs have beside each row of a page: joined by ids, of outputs in the same order and of others."""

from __future__ import annotations

import random
import re
from collections import Counter
from html import unescape

import pytest
from browser_server import Answer, Browser, browsing
from stored_outputs_for_browsing import store_output

from marin_assets.documents.attributes import Decision, write_decisions
from marin_resources.storage.files import read_bytes, write_bytes
from marin_resources.storage.paths import join

NAME, ROWS = "part-0.jsonl.zst", 250
NOISE = [random.Random(i).randbytes(600).hex() for i in range(ROWS)]
"""Texts that do not compress: a shard of larger rows has an index of ids."""
FILE = f"documents/web-abc123/{NAME}"
ATTRIBUTES = [f"attributes/web/{name}-abc123" for name in ("length", "quality")]
SELECTED = "selected/web-abc123"


def id_of(row: int) -> str:
    return f"page/{row}?a=%20&b#{row % 3} é"


def decision_of(attribute: str, row: int) -> Decision:
    keep = row % (3 if attribute == "length" else 7) != 0
    return Decision(keep, "" if keep else f"too <b>{attribute}", row / 8)


@pytest.fixture
def prefix(any_prefix: str) -> str:
    """Documents, two attributes, and the documents that both keep, in three orders."""
    documents = [{"id": id_of(i), "text": f"text of row {i} {NOISE[i]}"} for i in range(ROWS)]
    kept = [row for i, row in enumerate(documents) if i % 3 and i % 7]
    below = store_output(any_prefix, "documents/web", {NAME: documents})
    for path in ATTRIBUTES:
        name = path.removesuffix("-abc123")
        store_output(any_prefix, name, {}, reads=[below])
        decisions = [(id_of(i), decision_of(name.rpartition("/")[2], i)) for i in range(ROWS)]
        write_decisions(join(any_prefix, path, NAME), decisions, Counter())
    store_output(any_prefix, "selected/web", {NAME: kept}, reads=[below, *ATTRIBUTES])
    store_output(any_prefix, "reversed/web", {NAME: reversed(kept)}, reads=[below])
    store_output(any_prefix, "elsewhere/web", {"another.jsonl.zst": kept}, reads=[below])
    return any_prefix


def cells(answer: Answer) -> list[list[str]]:
    """The texts of the columns beside the rows, row by row."""
    rows = re.findall(r"<tr data-row>(.*?)</tr>", answer.html, re.DOTALL)
    parts = [re.findall(r'<td class="beside(?: bad)?">(.*?)</td>', row, re.DOTALL) for row in rows]
    return [[unescape(re.sub("<[^>]+>", "", cell)) for cell in row] for row in parts]


def phrase(attribute: str, row: int) -> str:
    decision = decision_of(attribute, row)
    return f"kept, value {decision.value}" if decision.keep else f"rejected: {decision.reason}, value {decision.value}"


@pytest.mark.parametrize("start", [0, 100, 240])
def test_a_page_has_the_verdicts_of_each_attribute_and_the_fate_of_each_row(prefix: str, start: int) -> None:
    with browsing(prefix) as browser:
        answer = browser.get("rows", path=FILE, start=start, beside=[*ATTRIBUTES, SELECTED, "reversed/web-abc123"])
    assert answer.status == 200, answer.sentence
    expected = []
    for i in range(start, min(start + 100, ROWS)):
        text = f"text of row {i} {NOISE[i]}"
        kept = f"{text[:120]}… cut of {len(text):,} characters" if i % 3 and i % 7 else "not there"
        expected.append([phrase("length", i), phrase("quality", i), kept, kept])
    assert cells(answer) == expected


def test_a_cell_leads_to_its_row_and_pages_keep_what_is_beside(prefix: str) -> None:
    with browsing(prefix) as browser:
        html = browser.get("rows", path=FILE, start=100, beside=[SELECTED]).html
        [link] = re.findall(r'href="([^"]+)"><bdi>text of row 101 ', html)
        assert "text of row 101 " in browser.send("GET", unescape(link)).text
        for relation, row in (("next", 200), ("prev", 1)):
            [link] = set(re.findall(rf'rel="{relation}" href="([^"]+)"', html))
            answer = browser.send("GET", unescape(link))
            assert any(f"text of row {row} " in cell for row_cells in cells(answer) for cell in row_cells)


def test_the_outputs_that_read_it_are_proposed_and_chosen(prefix: str) -> None:
    with browsing(prefix) as browser:
        html = browser.get("beside", path=FILE).html
        boxes = re.findall(r'name="beside" value="([^"]+)"( checked)?', html)
        later = browser.get("beside", path=FILE, beside=SELECTED).html
    assert "elsewhere" not in html
    assert dict(boxes) == dict.fromkeys([*ATTRIBUTES, SELECTED, "reversed/web-abc123"], " checked")
    assert re.findall(r'value="([^"]+)" checked', later) == [SELECTED]


@pytest.mark.parametrize("suffix", ["jsonl.gz", "jsonl.zst", "parquet"])
def test_rows_in_another_order_are_joined_without_an_index_too(
    disk_prefix: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": str(i), "text": f"text {i}"} for i in range(9)]
    below = store_output(disk_prefix, "documents/old", {f"a.{suffix}": rows})
    other = store_output(disk_prefix, "kept/old", {f"a.{suffix}": [*rows[:3], *rows[4:]]}, reads=[below])
    with browsing(disk_prefix) as browser:
        answer = browser.get("rows", path=f"{below}/a.{suffix}", beside=other)
        assert cells(answer) == [["not there"] if i == 3 else [f"text {i}"] for i in range(9)]
        monkeypatch.setattr("marin_assets.browse.rows.beside.MOST_SEARCHED_BYTES", 10)
        answer = browser.get("rows", path=f"{below}/a.{suffix}", beside=other)
    assert cells(answer) == [[f"text {i}"] for i in range(3)] + [["not there"]] * 6
    assert "too many: those with the same number are shown" in answer.text


def test_repeated_ids_and_lines_that_are_no_rows_have_what_is_at_their_number(disk_prefix: str) -> None:
    ids = ["a", "b", "a", "a"]
    below = store_output(disk_prefix, "documents/odd", {"a.jsonl": [{"id": id, "text": "t"} for id in ids]})
    path = join(disk_prefix, below, "a.jsonl")
    write_bytes(path, read_bytes(path) + b'no row\n{"id": 7, "text": "number"}\n{"text": "no id"}\n')
    others = [{"id": id, "text": f"other {n}"} for n, id in enumerate([*ids, "x", "y", "z"])]
    other = store_output(disk_prefix, "other/odd", {"a.jsonl": others})
    with browsing(disk_prefix) as browser:
        answer = browser.get("rows", path=f"{below}/a.jsonl", beside=other)
    assert cells(answer) == [[f"other {n}"] for n in range(4)] + [["not there"]] * 3


def test_a_damaged_file_beside_is_named_and_the_others_are_shown(prefix: str) -> None:
    path = join(prefix, ATTRIBUTES[0], NAME)
    data = read_bytes(path)
    write_bytes(path, data[:40] + bytes(byte ^ 0xFF for byte in data[40:80]) + data[80:])
    with browsing(prefix) as browser:
        answer = browser.get("rows", path=FILE, beside=ATTRIBUTES)
    assert answer.status == 200
    assert cells(answer) == [["not there", phrase("quality", i)] for i in range(100)]
    assert "the file is damaged" in answer.text


@pytest.mark.parametrize(
    ("beside", "status", "sentence"),
    [
        ("nothing/here", 404, "'nothing/here' is not an output, and has nothing beside a row. Choose another one."),
        ("elsewhere/web-abc123", 404, "'elsewhere/web-abc123' has no file 'part-0.jsonl.zst'. Choose another output."),
        ("../other", 403, "'../other' has '.' or '..' as a name. Name the place itself, below a prefix."),
        (["x"] * 13, 404, "13 outputs are chosen, and 12 is the limit beside a page. Remove some."),
    ],
)
def test_what_cannot_be_beside_is_refused_in_a_sentence(
    prefix: str, beside: str | list[str], status: int, sentence: str
) -> None:
    with browsing(prefix) as browser:
        answer = browser.get("rows", path=FILE, beside=beside)
    assert (answer.status, sentence in answer.sentence) == (status, True), answer.sentence


def test_a_file_of_no_output_has_nothing_beside_it(disk_prefix: str) -> None:
    write_bytes(join(disk_prefix, "loose/rows.jsonl"), b'{"id": "a", "text": "t"}\n')
    with browsing(disk_prefix) as browser:
        assert_refused(browser, "rows", beside="x")
        assert_refused(browser, "beside")


def assert_refused(browser: Browser, page: str, **query: str) -> None:
    answer = browser.get(page, path="loose/rows.jsonl", **query)
    assert answer.status == 404
    assert "'loose/rows.jsonl' is in no output, and has nothing beside it. Open another file." in answer.sentence
