"""The difference of two outputs: the same as a brute-force comparison, whatever their shards, in several requests."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from browser_server import Answer, Browser, browsing
from stored_outputs_for_browsing import store_output

from marin_assets.browse.limits import Limits
from marin_assets.browse.rows.difference import inventory, kept
from marin_assets.browse.rows.difference.comparison import ADDED, REMOVED, TEXT, VALUES, VERDICT, Comparison
from marin_assets.browse.rows.difference.inventory import Inventory
from marin_assets.browse.rows.difference.kept import KeptDifferences
from marin_assets.browse.rows.difference.marked_text import CUT, NEW, OLD, SAME, marked_text
from marin_assets.documents.rows import write_rows
from marin_resources.storage.files import stored_files
from marin_resources.storage.paths import join

Rows = list[dict[str, Any]]
OLDER, NEWER = "documents/web-abc123", "documents/web-def456"
SUFFIXES = ("jsonl.zst", "parquet", "jsonl.gz", "jsonl")


def drawn_rows(chance: random.Random, count: int) -> Rows:
    return [
        {
            "id": f"d/{i} é",
            "text": " ".join(chance.choices(["one", "two", "three", "ü", "\n"], k=chance.randrange(30))),
            "keep": chance.random() > 0.5,
            "reason": chance.choice(["", "short"]),
            "metadata": {"n": chance.randrange(5), "list": [1, "x"]},
        }
        for i in range(count)
    ]


def changed_rows(chance: random.Random, rows: Rows) -> Rows:
    """The rows with every kind of change, and with repeated ids, in another order."""
    made: Rows = []
    for row in rows:
        fate = chance.randrange(12)
        if fate == 0:
            continue
        change = {
            1: {"text": f"{row['text']} more"},
            2: {"keep": not row["keep"]},
            3: {"reason": "other"},
            4: {"metadata": {**row["metadata"], "n": 9}},
            5: {"text": "", "keep": not row["keep"], "metadata": {}},
        }.get(fate, {})
        made.append({**row, **change})
        if fate in (6, 7):
            made.append({**row, "text": "repeated"} if fate == 6 else dict(row))
    made += drawn_rows(chance, len(rows) + 7)[len(rows) :]
    chance.shuffle(made)
    return made


def brute_force(before: Rows, after: Rows) -> dict[str, set[str]]:
    """The ids of each kind, by the sets of the values of an id."""
    sides = [{row["id"]: [r for r in rows if r["id"] == row["id"]] for row in rows} for rows in (before, after)]
    kinds: dict[str, set[str]] = {kind: set() for kind in (ADDED, REMOVED, TEXT, VERDICT, VALUES)}
    kinds[ADDED], kinds[REMOVED] = set(sides[1]) - set(sides[0]), set(sides[0]) - set(sides[1])
    for id in set(sides[0]) & set(sides[1]):
        for kind, part in (
            (TEXT, lambda row: row["text"]),
            (VERDICT, lambda row: (row["keep"], row["reason"])),
            (VALUES, lambda row: repr(sorted(row["metadata"].items()))),
        ):
            if {part(row) for row in sides[0][id]} != {part(row) for row in sides[1][id]}:
                kinds[kind].add(id)
    return kinds


def store(folder: Path, rows: Rows, shards: int) -> Inventory:
    for shard in range(shards):
        write_rows(str(folder / f"part-{shard}.{SUFFIXES[shard % 4]}"), rows[shard::shards])
    return Inventory(stored_files(str(folder)))


def compare(before: Inventory, after: Inventory) -> Comparison:
    comparison = Comparison(before, after)
    comparison.advance(time.monotonic() + 300)
    assert comparison.is_finished
    return comparison


def ids_of(comparison: Comparison, kind: str) -> set[str]:
    from marin_assets.browse.rows.sample import chosen_rows

    ids = set()
    pairs = comparison.pairs(kind, 0, 10_000)
    for places in pairs:
        for place, side in zip(places, (comparison.before, comparison.after), strict=True):
            if place is not None:
                [(_, row)] = chosen_rows(side.files[place[0]].path, [place[1]])
                ids.add(row["id"])
    assert len(ids) == len(pairs)
    return ids


@pytest.mark.parametrize("seed", range(6))
def test_a_difference_is_that_of_brute_force_for_any_shards_and_formats(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    before = drawn_rows(chance, 80)
    after = changed_rows(chance, before)
    expected = brute_force(before, after)
    sides = [store(tmp_path / f"{i}", rows, chance.randrange(1, 6)) for i, rows in enumerate((before, after))]
    comparison = compare(sides[0], sides[1])
    for kind, ids in expected.items():
        assert ids_of(comparison, kind) == ids
    ids = [row["id"] for row in after]
    assert comparison.in_both == len({row["id"] for row in before} & set(ids))
    assert comparison.changed == len(expected[TEXT] | expected[VERDICT] | expected[VALUES])
    repeated = {id for id in ids if ids.count(id) > 1}
    assert comparison.repeated == {False: 0, True: len(repeated)}
    assert comparison.repeats[True] == len(ids) - len(set(ids))


def test_equal_rows_in_other_shards_formats_and_orders_of_keys_have_no_difference(tmp_path: Path) -> None:
    rows = drawn_rows(random.Random(1), 50)
    turned = [dict(reversed(row.items())) for row in reversed(rows)]
    comparison = compare(store(tmp_path / "a", rows, 1), store(tmp_path / "b", turned, 4))
    assert (comparison.in_both, comparison.changed) == (50, 0)
    assert not any(comparison.count(kind) for kind in (ADDED, REMOVED, TEXT, VERDICT, VALUES))


def test_a_comparison_in_many_steps_is_that_of_one(tmp_path: Path) -> None:
    chance = random.Random(4)
    before = drawn_rows(chance, 60)
    after = changed_rows(chance, before)
    first, second = store(tmp_path / "a", before, 4), store(tmp_path / "b", after, 4)
    whole = compare(first, second)
    stepped, steps = Comparison(Inventory(first.files), Inventory(second.files)), 0
    while not stepped.is_finished:
        before_step = stepped.progress
        stepped.advance(time.monotonic())  # ends after a row
        assert stepped.progress > before_step
        steps += 1
    assert steps > len(before) + len(after)
    for kind in (ADDED, REMOVED, TEXT, VERDICT, VALUES):
        assert stepped.pairs(kind, 0, 100) == whole.pairs(kind, 0, 100)


def test_of_too_many_rows_a_share_of_the_ids_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": str(i), "text": "a"} for i in range(1000)]
    sides = [rows, [{**row, "text": "b"} for row in rows]]
    monkeypatch.setattr(inventory, "MOST_RECORDS", 400)
    before, after = (Inventory(store(tmp_path / str(i), side, 1).files) for i, side in enumerate(sides))
    comparison = compare(before, after)
    assert (comparison.kept, before.rows) == (64, 1000)
    assert comparison.count(TEXT) == comparison.in_both
    assert 150 < comparison.in_both < 400
    assert not comparison.count(ADDED)


def test_the_cache_drops_the_least_recent_comparison_when_it_has_too_many_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [store(tmp_path / str(i), [{"id": str(n)} for n in range(100)], 1).files for i in range(3)]
    cache = KeptDifferences()
    monkeypatch.setattr(kept, "MOST_BYTES", 100 * inventory.RECORD_BYTES * 2 + 50)
    first = cache.comparison(files[0], files[1])
    first.advance(time.monotonic() + 300)
    assert cache.comparison(files[0], files[1]) is first
    second = cache.comparison(files[1], files[2])
    assert second.before is first.after
    second.advance(time.monotonic() + 300)
    assert cache.comparison(files[1], files[2]) is second
    assert cache.comparison(files[0], files[1]) is not first
    write_rows(files[2][0].path, [{"id": "other"}])
    assert cache.comparison(files[1], stored_files(str(tmp_path / "2"))) is not second


def texts_of(rng: random.Random) -> tuple[str, str]:
    words = rng.choices(["a", "bb", "the", "\n", " ", "é"], k=rng.randrange(60))
    other = [word for word in words if rng.random() > 0.1]
    other.insert(rng.randrange(len(other) + 1), "new")
    return "".join(words), "".join(other)


def test_the_pieces_of_a_difference_are_both_texts() -> None:
    chance = random.Random(5)
    for _ in range(200):
        old, new = texts_of(chance)
        pieces = marked_text(old, new)
        assert "".join(p.text for p in pieces if p.kind in (SAME, OLD)).replace("↵\n", "\n") == old
        assert "".join(p.text for p in pieces if p.kind in (SAME, NEW)).replace("↵\n", "\n") == new


def test_long_texts_have_a_difference_within_limits_and_what_is_cut_is_named() -> None:
    before = time.process_time()
    pieces = marked_text("a" * 5_000_000 + "x" + "b" * 5_000_000, "a" * 5_000_000 + "yy" + "b" * 5_000_000)
    assert next(p.text for p in pieces if p.kind in (OLD, NEW)) in "xy"
    assert any("equal characters" in p.text for p in pieces if p.kind == CUT)
    chance = random.Random(1)
    for size in (300, 900, 5000, 100_000):
        old, new = (" ".join(chance.choices("ab", k=size)) for _ in range(2))
        assert sum(len(p.text) for p in marked_text(old, new)) < 700_000
    lines = [str(chance.randrange(300)) + "\n" for _ in range(900)]
    marked_text("".join(lines), "".join(reversed(lines)))
    assert time.process_time() - before < 5


ROWS = drawn_rows(random.Random(9), 120)
AFTER = changed_rows(random.Random(10), ROWS)


@pytest.fixture
def prefix(disk_prefix: str) -> str:
    store_output(disk_prefix, "documents/web", {"a.jsonl.zst": ROWS[:50], "b.jsonl.zst": ROWS[50:]})
    store_output(disk_prefix, "documents/web", {"x.parquet": AFTER[:30], "y.jsonl.gz": AFTER[30:]}, version="def456")
    return disk_prefix


@pytest.fixture
def browser(prefix: str) -> Iterator[Browser]:
    with browsing(prefix) as browser:
        yield browser


def counts_of(answer: Answer) -> dict[str, int]:
    pairs = re.findall(r"<dt>(?:<a [^>]*>)?([^<]*)(?:</a>)?</dt><dd>([\d,]+)</dd>", answer.html)
    return {name: int(count.replace(",", "")) for name, count in pairs}


def all_ids(browser: Browser, kind: str) -> list[str]:
    """The ids of a kind, page by page."""
    answer = browser.get("difference", path=NEWER, before=OLDER, kind=kind)
    ids: list[str] = []
    while True:
        ids += [unescape(id) for id in re.findall(r"<h3><bdi>(.*?)</bdi>", answer.html)]
        link = re.search(r'<a rel="next" href="([^"]*)"', answer.html)
        if link is None:
            return ids
        answer = browser.send("GET", unescape(link[1]))


def test_the_pages_have_the_counts_and_all_ids_of_each_kind(browser: Browser) -> None:
    expected = brute_force(ROWS, AFTER)
    answer = browser.get("difference", path=NEWER, before=OLDER)
    counts = counts_of(answer)
    names = {
        TEXT: "with another text",
        VERDICT: "with another verdict (keep or reason)",
        VALUES: "with other values",
        ADDED: "added",
        REMOVED: "removed",
    }
    for kind, name in names.items():
        assert counts[name] == len(expected[kind])
        ids = all_ids(browser, kind)
        assert sorted(ids) == sorted(expected[kind])
    other = counts_of(browser.get("difference", path=OLDER, before=NEWER))
    assert (other["added"], other["removed"]) == (counts["removed"], counts["added"])
    assert "120 rows" in answer.text
    assert "ids are repeated" in answer.text


@pytest.mark.long
def test_outputs_on_every_store_are_compared_and_counted(any_prefix: str) -> None:
    store_output(any_prefix, "documents/web", {"a.jsonl.zst": ROWS[:50], "b.parquet": ROWS[50:]})
    store_output(any_prefix, "documents/web", {"x.parquet": AFTER[:30], "y.jsonl.gz": AFTER[30:]}, version="def456")
    with browsing(any_prefix) as browser:
        counts = counts_of(browser.get("difference", path=NEWER, before=OLDER))
        assert counts["removed"] == len(brute_force(ROWS, AFTER)[REMOVED])
        assert "All 120 rows." in browser.get("histogram", path=OLDER).text
        assert "A sample: 20 of 120 rows" in browser.get("histogram", path=OLDER, rows=20, of="/text").text


def test_a_file_that_is_replaced_is_compared_again(browser: Browser, prefix: str) -> None:
    assert counts_of(browser.get("difference", path=NEWER, before=OLDER))["removed"] > 0
    write_rows(join(prefix, NEWER, "x.parquet"), ROWS)
    assert counts_of(browser.get("difference", path=NEWER, before=OLDER))["removed"] == 0


def test_requests_at_once_have_the_same_result(browser: Browser) -> None:
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: browser.get("difference", path=NEWER, before=OLDER).body, range(12)))
    assert len(set(answers)) == 1
    assert b"with another text" in answers[0]


def test_a_pair_shows_the_marked_text_the_changed_values_and_links_to_both_rows(browser: Browser, prefix: str) -> None:
    old = [{"id": "a", "text": "the quick fox\nran", "keep": True, "reason": "", "metadata": {"n": 1, "m": 2}}]
    new = [{"id": "a", "text": "the slow fox\nran", "keep": False, "reason": "x<b>", "metadata": {"n": 1.0, "m": 2}}]
    store_output(prefix, "small/web", {"a.jsonl": old})
    store_output(prefix, "small/web", {"b.jsonl.zst": new}, version="def456")
    answer = browser.get("difference", path="small/web-def456", before="small/web-abc123")
    assert "the <del>quick</del><ins>slow</ins> fox\nran" in answer.html
    for name, before, after in (("keep", "true", "false"), ("reason", "", "x&lt;b&gt;"), ("metadata.n", "1", "1.0")):
        row = f"<bdi>{name}</bdi></th><td><del><bdi>{before}</bdi></del></td><td><ins><bdi>{after}</bdi></ins></td>"
        assert row in answer.html
    assert "metadata.m" not in answer.html
    links = [unescape(link) for link in re.findall(r'href="(/row[^"]*)"', answer.html)]
    assert ["quick" in browser.send("GET", links[0]).text, "slow" in browser.send("GET", links[1]).text] == [True, True]


def test_the_page_of_an_output_leads_to_its_earlier_version(browser: Browser) -> None:
    answer = browser.get("output", path=NEWER)
    [link] = re.findall(r'href="(/difference[^"]*)"', answer.html)
    assert browser.send("GET", unescape(link)).body == browser.get("difference", path=NEWER, before=OLDER).body


def test_a_long_comparison_continues_from_request_to_request(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = counts_of(browser.get("difference", path=NEWER, before=OLDER))
    monkeypatch.setattr("marin_assets.browse.pages.difference.STEP_S", 0.002)
    monkeypatch.setattr("marin_assets.browse.pages.difference.KEPT", KeptDifferences())
    answer, requests = browser.get("difference", path=NEWER, before=OLDER), 1
    assert "Not finished: the rows are compared by their ids" in answer.text
    assert '<meta http-equiv="refresh"' in answer.html
    while link := re.search(r'<a rel="next" href="([^"]*)">Continue', answer.html):
        answer, requests = browser.send("GET", unescape(link[1])), requests + 1
    assert requests > 3
    assert counts_of(answer) == whole
    assert "refresh" not in answer.html


def test_a_limit_of_bytes_is_stated_and_the_next_request_continues(prefix: str) -> None:
    with browsing(prefix, limits=Limits(bytes=4000)) as browser:
        answer = browser.get("difference", path=NEWER, before=OLDER)
        assert "The request has read" in answer.text
        assert "Continue" in answer.text
        assert "refresh" not in answer.html


def test_a_damaged_shard_is_named(browser: Browser, prefix: str) -> None:
    Path(join(prefix, NEWER, "x.parquet")).write_bytes(b"PAR1")
    answer = browser.get("difference", path=NEWER, before=OLDER)
    assert "x.parquet' is not valid parquet" in answer.text
    assert "Rows behind it count as removed." in answer.text
    assert counts_of(answer)["removed"] >= 20


def test_rows_without_ids_bad_lines_and_ids_that_are_numbers(prefix: str) -> None:
    store_output(prefix, "odd/a", {})
    store_output(prefix, "odd/b", {})
    Path(prefix, "odd/a-abc123/a.jsonl").write_text('{"id": 1, "text": "x"}\n{"text": "y"}\nno json\n{"id": "1"}\n')
    Path(prefix, "odd/b-abc123/a.jsonl").write_text('{"id": 1, "text": "z"}\n{"id": "1", "v": NaN}\n')
    with browsing(prefix) as browser:
        answer = browser.get("difference", path="odd/b-abc123", before="odd/a-abc123")
    assert "4 rows, 1 of them without an id; 1 lines are not rows" in answer.text
    assert (counts_of(answer)["with another text"], counts_of(answer)["with other values"]) == (1, 1)


@pytest.mark.parametrize(
    ("query", "status", "sentence"),
    [
        ({}, 404, "The address has no 'before'"),
        ({"before": "documents/nothing-abc123"}, 404, "'documents/nothing-abc123' is in no output."),
        ({"before": "/etc"}, 403, "'/etc' is outside of what is shown"),
        ({"before": "../x"}, 403, "'../x' has '.' or '..' as a name"),
        ({"before": OLDER, "kind": "x"}, 404, "kind is 'x', expected one of text, verdict, values, added, removed."),
        ({"before": OLDER, "start": "x"}, 404, "start is 'x', expected a number"),
    ],
)
def test_a_mistake_in_the_address_is_a_sentence(
    browser: Browser, query: dict[str, str], status: int, sentence: str
) -> None:
    answer = browser.get("difference", path=NEWER, **query)
    assert answer.status == status
    assert answer.sentence.startswith(sentence)
