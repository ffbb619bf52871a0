"""Rows are texts of strangers: nothing of them is run, and none of them is too large for a page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from browser_server import Browser, browsing
from stored_outputs_for_browsing import store_output

from marin_assets.browse.pages.difference import STEP_S
from marin_assets.documents.rows import write_rows

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)>{{7*7}}"
STYLE = "<style>@import 'http://evil.example/a.css'</style>"
PAGE = f"<html><body>{EVIL}{STYLE}<a href='javascript:alert(4)'>x</a></body></html>"
FILE = "documents/web-abc123/part-0.jsonl"
BIG = 3_000_000
MOST_BYTES, MOST_CPU_S = 2_000_000, 2.0


class Elements(HTMLParser):
    """The elements of a page, and their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    prefix = str(tmp_path_factory.mktemp("hostile"))
    rows = [
        {"id": EVIL, "text": PAGE, EVIL: EVIL, "reason": EVIL, "metadata": {EVIL: [EVIL, {"__proto__": EVIL}]}},
        {"id": "big", "text": "ä" * BIG},
        {"id": "keys", "text": "", **{f"key{i}": i for i in range(99_999)}},
        {"id": "wide", "text": {"a": ["x" * 1000] * 10_000}},
        {"id": "\u202egnp.exe", "text": "zero\x00and\x1b[31m"},
    ]
    lines = [
        *(json.dumps(row, ensure_ascii=False) for row in rows),
        '{"id": "numbers", "int": 9007199254740993, "nan": NaN, "huge": 1e400, "big": ' + "9" * 400 + "}",
        '{"id": "deep", "text": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"id": "levels", "text": ' + '{"a":' * 60 + "1" + "}" * 60 + "}",
        '["no object"]', "no json", '{"id": "half", "text": "\\ud83d"}', '{"id": "' + "i" * 100_000 + '"}',
    ]  # fmt: skip
    store_output(prefix, "documents/web", {})
    folder = Path(prefix, "documents/web-abc123")
    (folder / "part-0.jsonl").write_bytes("\n".join(lines).encode() + b"\n\xff\xfe not text\n")
    (folder / f"{EVIL[:40].replace('/', '_')}.jsonl").write_text('{"id": "a"}\n')
    (folder / "samples.html").write_text(PAGE)
    write_rows(str(folder / "part-1.parquet"), [{"id": EVIL, "text": PAGE, "count": 2**53 + 1, "float": float("nan")}])
    changed = [{**row, "text": f"{row['text']} and {PAGE}"} for row in rows[:4]]
    store_output(prefix, "documents/web", {"a.jsonl.zst": changed}, version="def456")
    with browsing(prefix) as browser:
        yield browser


ADDRESSES = [
    ("", {}),
    ("output", {"path": "documents/web-abc123"}),
    ("rows", {"path": FILE}),
    *[("row", {"path": FILE, "row": row}) for row in range(13)],
    ("cell", {"path": FILE, "row": 1, "at": "/text", "start": BIG - 50_000}),
    ("cell", {"path": FILE, "row": 2, "at": ""}),
    ("page", {"path": FILE, "row": 0, "at": "/text"}),
    ("page", {"path": FILE, "row": 1, "at": "/text"}),
    ("file", {"path": "documents/web-abc123/samples.html"}),
    ("file", {"path": "documents/web-abc123/samples.html", "page": 1}),
    ("rows", {"path": "documents/web-abc123/part-1.parquet"}),
    ("row", {"path": FILE, "id": EVIL}),
    ("search", {"path": "documents/web-abc123", "text": "<script>"}),
    ("search", {"path": FILE, "text": EVIL}),
    ("search", {"path": FILE, "reason": EVIL}),
    ("sample", {"path": "documents/web-abc123", "seed": 1, "count": 100}),
    ("histogram", {"path": "documents/web-abc123"}),
    ("histogram", {"path": "documents/web-abc123", "rows": 5, "seed": 1}),
    ("histogram", {"path": FILE, "of": "/reason"}),
    ("histogram", {"path": FILE, "of": f"/{EVIL.replace('~', '~0').replace('/', '~1')}"}),
    ("histogram", {"path": FILE, "of": "/text", "reason": EVIL}),
    ("histogram", {"path": FILE, "scale": EVIL}),
    ("difference", {"path": "documents/web-abc123", "before": "documents/web-def456"}),
    ("difference", {"path": "documents/web-def456", "before": "documents/web-abc123"}),
    ("difference", {"path": "documents/web-abc123", "before": "documents/web-def456", "kind": "values"}),
    ("difference", {"path": "documents/web-abc123", "before": "documents/web-def456", "kind": "added"}),
    ("difference", {"path": "documents/web-abc123", "before": EVIL}),
    ("way", {"path": "documents/web-abc123", "id": EVIL}),
    ("way", {"path": "documents/web-abc123", "id": "big"}),
    ("rows", {"path": EVIL}),
    ("row", {"path": FILE, "row": EVIL}),
    ("cell", {"path": FILE, "row": 0, "at": EVIL}),
    (EVIL, {}),
]


@pytest.mark.parametrize(("page", "query"), ADDRESSES, ids=[f"{page[:9]}{i}" for i, (page, _) in enumerate(ADDRESSES)])
def test_a_page_of_hostile_rows_is_inert_and_small(browser: Browser, page: str, query: dict[str, object]) -> None:
    before = time.process_time()
    answer = browser.get(page.replace(" ", "%20").replace("\n", ""), **query)
    # a difference of whole outputs works for a time of its own, and continues in the next request
    assert time.process_time() - before < (STEP_S if page == "difference" else MOST_CPU_S)
    assert answer.status in (200, 404)
    assert len(answer.body) < MOST_BYTES
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    elements = Elements(answer.html).elements
    assert {tag for tag, _ in elements} <= OURS
    for tag, attributes in elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert not (attributes.get("href") or "/").startswith("javascript")
        assert tag != "script" or attributes == {"src": "/static/browse.js", "defer": None}
        assert tag != "iframe" or attributes["sandbox"] == ""
        assert tag not in ("a", "link") or (attributes.get("href") or "").startswith(("/", "#"))


OURS = {
    *("html", "head", "meta", "title", "link", "script", "body", "header", "nav", "main", "h1", "h2", "p", "a", "bdi"),
    *("ul", "li", "form", "label", "input", "button", "select", "option", "div", "table", "thead", "tbody", "tr", "th"),
    *("section", "svg", "rect", "line", "article", "h3", "del", "ins"),
    *("mark", "details", "summary", "td", "span", "strong", "dl", "dt", "dd", "pre", "kbd", "code", "iframe"),
}


def test_the_policy_and_the_frame_let_nothing_of_a_page_out(browser: Browser) -> None:
    answer = browser.get("page", path=FILE, row=0, at="/text")
    [frame] = [attributes for tag, attributes in Elements(answer.html).elements if tag == "iframe"]
    assert frame["sandbox"] == ""
    assert frame["srcdoc"] == PAGE
    assert "src" not in frame
    for rule in (
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
    ):
        assert rule in answer.headers["content-security-policy"]


def test_whatever_is_cut_is_named(browser: Browser) -> None:
    rows = browser.get("rows", path=FILE).text
    assert f"cut of {BIG:,} characters" in rows
    assert "Columns without room" in browser.get("rows", path=FILE, start=2).text
    assert f"Cut here: text ({BIG:,} characters)." in browser.get("row", path=FILE, row=1).text
    assert "99,901 of 100,001 keys of the row" in browser.get("row", path=FILE, row=2).text
    assert "9,900 of 10,000 entries of text.a" in browser.get("row", path=FILE, row=3).text
    end = browser.get("cell", path=FILE, row=1, at="/text", start=BIG - 50_000)
    assert f"Characters {BIG - 50_000:,} to {BIG:,} of {BIG:,}." in end.text
    assert "of which 350,000 are shown" in browser.get("page", path=FILE, row=1, at="/text").text


def test_numbers_keep_their_digits_and_lines_that_are_no_rows_have_a_reason(browser: Browser) -> None:
    numbers = browser.get("row", path=FILE, row=5).text
    for text in ("9007199254740993", "NaN", "Infinity", "9" * 400):
        assert text in numbers
    for row, reason in (
        (6, "invalid_json"),
        (8, "not_an_object"),
        (9, "invalid_json"),
        (10, "invalid_utf8"),
        (12, "invalid_utf8"),
    ):
        assert f"This line is not a row: {reason}" in browser.get("row", path=FILE, row=row).text
    parquet = browser.get("row", path="documents/web-abc123/part-1.parquet", row=0).text
    assert "9007199254740993" in parquet
    assert "NaN" in parquet


def test_what_cannot_be_seen_has_a_mark(browser: Browser) -> None:
    text = browser.get("row", path=FILE, row=4).text
    assert "␦gnp.exe" in text
    assert "zero␀and␛[31m" in text


@pytest.mark.long
def test_a_cell_of_60_mb_takes_two_seconds_and_400_mb(tmp_path: Path) -> None:
    """In a server of its own, whose memory is not that of this test."""
    store_output(str(tmp_path), "documents/web", {"part-0.jsonl": [{"id": "big", "text": "a\u00e4" * 20_000_000}] * 2})
    command = [sys.executable, "-m", "marin_assets.cli", "browse", "--prefix", str(tmp_path), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            browser = Browser(urlsplit(server.stdout.readline().split()[0]).port or 0)
            process = psutil.Process(server.pid)
            browser.get("rows", path="documents/web-abc123/part-0.jsonl", start=5)  # imports
            for page, query in (("rows", {}), ("row", {"row": 1}), ("cell", {"row": 1, "at": "/text"})):
                before = process.cpu_times()
                answer = browser.get(page, path="documents/web-abc123/part-0.jsonl", **query)
                after = process.cpu_times()
                assert answer.status == 200
                assert len(answer.body) < MOST_BYTES
                assert after.user + after.system - before.user - before.system < MOST_CPU_S
            peak = int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{server.pid}/status").read_text())[1])  # type: ignore[index]
            assert peak < 400_000
        finally:
            server.terminate()
