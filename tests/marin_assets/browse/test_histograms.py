"""Histograms of an output: the same as numpy's on the same rows, with what they leave out, and links to the rows."""

from __future__ import annotations

import heapq
import importlib
import json
import random
import re
from collections import Counter
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from browser_server import browsing
from stored_outputs_for_browsing import store_output

from marin_assets.browse.limits import Limits
from marin_assets.browse.rows.histogram.bins import LINEAR, LOG, SCALES, histogram
from marin_assets.browse.rows.sample import draw
from marin_assets.browse.stored.thresholds import _rules_of_reasons
from marin_assets.documents.rows import write_rows
from marin_assets.stages.filter.registry import FAMILIES
from marin_resources.storage.files import read_json, write_json
from marin_resources.storage.paths import join

NUMBERS = {
    "shares": lambda chance: chance.random(),
    "signed": lambda chance: chance.gauss(0, 1e5),
    "decades": lambda chance: chance.lognormvariate(5, 3),
    "zeros and decades": lambda chance: float(int(chance.lognormvariate(1, 3))),
    "lengths": lambda chance: float(chance.randrange(5000)),
    "two": lambda chance: chance.choice([0.1, 0.7]),
    "close together": lambda chance: 1e15 + chance.random(),
    "tiny": lambda chance: chance.choice([5e-324, 1e-310]),
    "all floats": lambda chance: chance.choice([-1.7e308, 1.7e308]),
    "from the least to the largest": lambda chance: chance.choice([0.0, 5e-324, 1.7e308]),
    "large whole": lambda chance: float(chance.randrange(2**53)),
    "the largest whole": lambda _: 2.0**53,
    "zeros": lambda _: 0.0,
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_bins_have_the_counts_of_numpy_and_their_bounds_hold_exactly_their_numbers(name: str) -> None:
    chance = random.Random(name)
    for size in (1, 2, 3, 10, 400):
        numbers = [NUMBERS[name](chance) for _ in range(size)]
        for scale in SCALES:
            for is_whole in {False, all(n.is_integer() and abs(n) <= 2**53 for n in numbers)}:
                made = histogram(numbers, scale=scale, is_whole=is_whole)
                assert list(made.counts) == np.histogram(numbers, bins=np.array(made.edges))[0].tolist()
                assert sum(made.counts) == size
                assert len(made.counts) <= 90
                for bin, count in enumerate(made.counts):
                    least, most = made.bounds(bin)
                    assert sum(least <= number <= most for number in numbers) == count


def test_quantiles_and_the_mean_are_those_of_numpy() -> None:
    numbers = [random.Random(3).gauss(5, 2) for _ in range(997)]
    made = histogram(numbers, scale=LINEAR, is_whole=False)
    for share in (0, 0.1, 0.5, 0.9, 1):
        assert made.quantile(share) == pytest.approx(np.quantile(numbers, share), rel=1e-12)
    assert made.mean == pytest.approx(np.mean(numbers), rel=1e-12)


def test_numbers_over_decades_have_a_log_scale_by_themselves_and_negative_ones_never() -> None:
    spread = [1.0, 10, 100, 1000, 10_000]
    assert histogram(spread, is_whole=True).is_log
    assert not histogram(spread, scale=LINEAR, is_whole=True).is_log
    assert not histogram([-1.0, *spread], scale=LOG, is_whole=True).is_log
    assert not histogram([5.0, 6, 7], is_whole=True).is_log
    made = histogram([0.0, *spread], is_whole=True)
    assert (made.edges[0], made.counts[0]) == (0, 1)


SIZES = (150, 3, 90, 60)
SUFFIXES = ("jsonl.zst", "jsonl.gz", "parquet", "jsonl")


def rows_of(shard: int) -> list[dict[str, Any]]:
    chance = random.Random(shard)
    rows = []
    for i in range(SIZES[shard]):
        keep = chance.random() > 0.3
        value = round(chance.random(), 3)
        rows.append(
            {
                "id": f"s{shard}/{i}",
                "text": "x" * int(chance.lognormvariate(4, 2)),
                "keep": keep,
                "reason": "" if keep else chance.choice(["low_quality", "too short & <b>"]),
                "value": value,
                "metadata": {"language": chance.choice(["de", "en", "th"]), "words": chance.randrange(300)},
            }
        )
    return rows


ROWS = [row for shard in range(4) for row in rows_of(shard)]


@pytest.fixture
def prefix(disk_prefix: str) -> str:
    files = {f"part-{i}.{suffix}": rows_of(i) for i, suffix in enumerate(SUFFIXES)}
    store_output(disk_prefix, "attributes/web", files)
    return disk_prefix


def bins_of(html: str) -> list[tuple[str, str, int]]:
    """(label, address, count) of each bar of the tables of bins of a page."""
    pairs = re.findall(r'<th scope="row"><a href="(/search[^"]*)">([^<]*)</a></th><td>([\d,]+)</td>', html)
    return [(label, unescape(link), int(count.replace(",", ""))) for link, label, count in pairs]


def bars_of(html: str) -> dict[str, int]:
    pairs = re.findall(r"<bdi>([^<]*)</bdi>(?:</a>)?</th><td class=\"count\">([\d,]+)</td>", html)
    return {unescape(label): int(count.replace(",", "")) for label, count in pairs}


def query_of(link: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(link).query))


MEASURES = {
    "/value": ({}, lambda row: row["value"]),
    "/metadata/words": ({}, lambda row: row["metadata"]["words"]),
    "/text": ({}, lambda row: len(row["text"])),
    "/id": ({}, lambda row: len(row["id"])),
    "/reason": ({"by": "length"}, lambda row: len(row["reason"])),
    "/value ": ({"reason": "low_quality"}, lambda row: row["value"] if row["reason"] == "low_quality" else None),
}


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("scale", SCALES)
def test_a_page_has_the_bins_of_numpy_over_all_formats(prefix: str, name: str, scale: str) -> None:
    query, measure = MEASURES[name]
    with browsing(prefix) as browser:
        answer = browser.get("histogram", path="attributes/web-abc123", of=name.strip(), scale=scale, **query)
    numbers = [measure(row) for row in ROWS if measure(row) is not None]
    is_whole = all(float(number).is_integer() for number in numbers)
    made = histogram(numbers, scale=scale, is_whole=is_whole)
    counts, _ = np.histogram(numbers, bins=np.array(made.edges))
    bins = bins_of(answer.html)
    assert [count for _, _, count in bins] == [count for count in counts.tolist() if count]
    for _, link, count in bins:
        least, most = (float(query_of(link)[bound]) for bound in ("at_least", "at_most"))
        assert sum(least <= number <= most for number in numbers) == count
    assert "All 303 rows." in answer.text
    assert answer.html.count("<rect") == len(bins)


def test_a_bar_leads_to_a_search_of_exactly_its_rows(prefix: str) -> None:
    with browsing(prefix) as browser:
        for of in ("/value", "/text", "/metadata/words"):
            answer = browser.get("histogram", path="attributes/web-abc123", of=of)
            for _, link, count in bins_of(answer.html)[:6]:
                assert browser.send("GET", link).html.count("<tr data-row>") == min(count, 100)
        answer = browser.get("histogram", path="attributes/web-abc123", of="/metadata/language")
        [link] = re.findall(r'<a href="([^"]*)"><bdi>de</bdi>', answer.html)
        expected = sum(row["metadata"]["language"] == "de" for row in ROWS)
        assert browser.send("GET", unescape(link)).html.count("<tr data-row>") == min(expected, 100)


def test_all_fields_have_histograms_and_categories_have_counts(prefix: str) -> None:
    with browsing(prefix) as browser:
        answer = browser.get("histogram", path="attributes/web-abc123")
    assert re.findall(r"<h2><a href[^>]*><bdi>(.*?)</bdi>", answer.html) == [
        *("text", "keep", "reason", "value", "metadata.language", "metadata.words", "id"),
    ]
    bars = bars_of(answer.html)
    languages = Counter(row["metadata"]["language"] for row in ROWS)
    reasons = Counter(row["reason"] for row in ROWS)
    assert {name: bars[name] for name in languages} == languages
    assert (bars["(empty)"], bars["too short & <b>"]) == (reasons[""], reasons["too short & <b>"])
    assert bars["true"] == sum(row["keep"] for row in ROWS)


def test_a_sample_names_its_size_and_seed_and_is_the_drawn_rows(prefix: str) -> None:
    with browsing(prefix) as browser:
        answer = browser.get("histogram", path="attributes/web-abc123", of="/metadata/words", rows=100, seed=7)
        again = browser.get("histogram", path="attributes/web-abc123", of="/metadata/words", rows=100, seed=7)
        other = browser.get("histogram", path="attributes/web-abc123", of="/metadata/words", rows=100, seed=8)
    assert "A sample: 100 of 303 rows, drawn with the seed 7" in answer.text
    assert answer.body == again.body
    assert bins_of(answer.html) != bins_of(other.html)
    numbers = [rows_of(shard)[row]["metadata"]["words"] for shard, row in draw(SIZES, 100, 7)]
    for _, link, count in bins_of(answer.html):
        least, most = (float(query_of(link)[bound]) for bound in ("at_least", "at_most"))
        assert sum(least <= number <= most for number in numbers) == count


def test_of_a_small_output_with_very_many_rows_a_sample_is_drawn(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store_output(prefix, "attributes/many", {"part.jsonl.zst": ROWS})
    monkeypatch.setattr("marin_assets.browse.pages.histograms.page.MOST_ROWS", {False: 200, True: 500})
    monkeypatch.setattr("marin_assets.browse.pages.histograms.page.SMALL_DRAWN", 50)
    with browsing(prefix) as browser:
        assert "A sample: 50 of 303 rows" in browser.get("histogram", path="attributes/many-abc123").text
        assert "All 303 rows." in browser.get("histogram", path="attributes/many-abc123", of="/value").text
        answer = browser.get("histogram", path="attributes/many-abc123", rows="all")
    assert "Incomplete: 200 rows are in the histograms, the limit." in answer.text


def test_what_is_in_no_bar_is_counted_by_its_kind(disk_prefix: str) -> None:
    store_output(disk_prefix, "attributes/odd", {})
    values = [
        "1",
        "2.5",
        "NaN",
        "NaN",
        "1e400",
        "-1e400",
        str(2**53 + 1),
        str(2**53),
        "9" * 400,
        "null",
        '"text"',
        "[1]",
    ]
    lines = [f'{{"id": "a", "value": {value}}}' for value in values] + ['{"id": "b"}', "no json", '["x"]']
    Path(disk_prefix, "attributes/odd-abc123/part.jsonl").write_text("\n".join(lines) + "\n")
    with browsing(disk_prefix) as browser:
        answer = browser.get("histogram", path="attributes/odd-abc123", of="/value")
        overview = browser.get("histogram", path="attributes/odd-abc123")
    for text in ("NaN 2", "infinity 1", "-infinity 1", "whole numbers over 2^53 2", "null 1", "missing 1"):
        assert text in answer.text
    assert "2 lines are not rows" in answer.text
    assert "value of" not in overview.text
    assert sum(count for _, link, count in bins_of(answer.html) if "by=length" not in link) == 3


@pytest.fixture(params=["score_quality", "score_by_encoder", "score_by_function"])
def scored(disk_prefix: str, request: pytest.FixtureRequest) -> str:
    """Scores with a threshold of their own config, and a consolidation that applies another."""
    files = {f"part-{i}.{suffix}": rows_of(i) for i, suffix in enumerate(SUFFIXES)}
    store_output(disk_prefix, "attributes/web", files, config={"at_least": 0.5, "keep_fraction": None})
    record = join(disk_prefix, "attributes/web-abc123/.executor_info")
    name = f"marin_assets.stages.quality.{request.param}:{request.param}"
    write_json(record, {**read_json(record), "fn_name": name})
    path = join(disk_prefix, "attributes/web-abc123")
    applied = {"name": "quality", "path": path, "missing": "error", "at_least": None, "at_most": 0.8}
    config = {"documents_path": join(disk_prefix, "d"), "attributes": [applied]}
    store_output(disk_prefix, "selected/web", {}, reads=["attributes/web-abc123"], config=config)
    record = join(disk_prefix, "selected/web-abc123/.executor_info")
    write_json(record, {**read_json(record), "fn_name": "marin_assets.stages.consolidate.consolidate:consolidate"})
    return disk_prefix


def test_a_threshold_is_marked_and_the_nearest_rows_are_on_both_sides(scored: str) -> None:
    with browsing(scored) as browser:
        answer = browser.get("histogram", path="attributes/web-abc123", of="/value")
        assert answer.html.count('<line class="mark"') == 2
        sections = answer.html.split("<h2>Threshold ")[1:]
        for section, (threshold, is_above) in zip(
            sections, [(0.5, lambda value: value >= 0.5), (0.8, lambda value: value > 0.8)], strict=True
        ):
            links = re.findall(r'data-open href="([^"]*)"', section)
            ids = re.findall(r"</td><td><bdi>([^<]*)</bdi></td></tr>", section)
            expected = []
            for side in (False, True):
                near = heapq.nsmallest(
                    5,
                    (row for row in ROWS if is_above(row["value"]) == side),
                    key=lambda row: abs(row["value"] - threshold),
                )
                expected += [row["id"] for row in (near if side else near[::-1])]
            by_id = {row["id"]: abs(row["value"] - threshold) for row in ROWS}
            assert [by_id[id] for id in ids] == [by_id[id] for id in expected]
            assert ids[0] in browser.send("GET", unescape(links[0])).text
    assert "It keeps from 0.5: at_least in the config of attributes/web." in answer.text
    assert "It keeps up to 0.8: at_most of quality in the config of selected/web." in answer.text


def test_a_threshold_of_another_key_is_marked_at_that_key_alone(scored: str) -> None:
    record = join(scored, "selected/web-abc123/.executor_info")
    stored = read_json(record)
    stored["config"]["attributes"][0] |= {"key": "score", "at_most": 7}
    write_json(record, stored)
    rows = [{"id": str(i), "keep": True, "reason": "", "value": 0.7, "score": i} for i in range(12)]
    write_rows(join(scored, "attributes/web-abc123/part-0.jsonl.zst"), rows, replace=True)
    with browsing(scored) as browser:
        of_key = browser.get("histogram", path="attributes/web-abc123", of="/score")
        of_value = browser.get("histogram", path="attributes/web-abc123", of="/value")
    sentence = "It keeps up to 7: at_most of quality in the config of selected/web."
    assert sentence in of_key.text
    assert of_key.html.count('<line class="mark"') == 1
    assert "at_most of quality" not in of_value.text


def test_every_family_that_measures_numbers_has_its_thresholds_by_reason() -> None:
    rules = _rules_of_reasons()
    families = {name: vars(importlib.import_module(family.filter.__module__)) for name, family in FAMILIES.items()}
    reasons = {
        f"{family}_{measure.name}" for family, names in families.items() for measure in names.get("MEASURES", ())
    }
    assert len(reasons) > 80
    assert reasons <= rules.keys()


def test_the_values_of_a_filter_have_the_threshold_of_their_reason(disk_prefix: str) -> None:
    reason = "gopher_quality_min_words"
    rows = [{"id": str(i), "keep": False, "reason": reason, "value": float(i)} for i in range(50)]
    rows += [{"id": f"k{i}", "keep": True, "reason": "", "value": None} for i in range(50)]
    thresholds = {"min_words": 50, "max_words": 100_000}
    config = {"filters": [{"name": "gopher_quality@datatrove", "thresholds": thresholds}]}
    store_output(disk_prefix, "attributes/filter", {"a.jsonl.zst": rows}, config=config)
    record = join(disk_prefix, "attributes/filter-abc123/.executor_info")
    name = "marin_assets.stages.filter.filter_documents:filter_documents"
    write_json(record, {**read_json(record), "fn_name": name, "result": {f"rejected_{reason}": 50}})
    with browsing(disk_prefix) as browser:
        answer = browser.get("histogram", path="attributes/filter-abc123", of="/value")
        [link] = re.findall(rf'<a href="([^"]*)"><bdi>{reason}</bdi></a>', answer.html)
        answer = browser.send("GET", unescape(link))
    assert "It keeps from 50: min_words in the config of attributes/filter." in answer.text
    assert "No row that was read has a value from it on." in answer.text
    assert "49 49" in answer.text.replace("a.jsonl.zst, row ", "")


def test_a_limit_leaves_a_histogram_of_the_first_rows_and_is_stated(disk_prefix: str) -> None:
    store_output(disk_prefix, "documents/web", {})
    with Path(join(disk_prefix, "documents/web-abc123/part-0.jsonl")).open("w") as file:
        for _ in range(20):
            file.write((json.dumps({"id": "a", "text": "straw " * 10}) + "\n") * 2000)
    with browsing(disk_prefix, limits=Limits(bytes=1_000_000)) as browser:
        answer = browser.get("histogram", path="documents/web-abc123")
    assert "Incomplete: The request has read" in answer.text
    assert "The rows are the first ones, and not a sample." in answer.text
    read = int(re.findall(r"([\d,]+) rows were read", answer.text)[0].replace(",", ""))
    assert 5000 < read < 40_000
    assert bars_of(answer.html)["a"] == read


def test_a_damaged_shard_is_named_and_the_others_are_counted(prefix: str) -> None:
    Path(prefix, "attributes/web-abc123/part-0.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd\x04")
    with browsing(prefix) as browser:
        answer = browser.get("histogram", path="attributes/web-abc123", of="/metadata/words")
    assert "part-0.jsonl.zst' is damaged or truncated" in answer.text
    assert sum(count for _, _, count in bins_of(answer.html)) == sum(SIZES[1:])


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"scale": "x"}, "scale is 'x', expected one of auto, linear, log."),
        ({"rows": "many"}, "rows is 'many', expected a number from 0 to 100,000."),
        ({"seed": "-1"}, "seed is '-1', expected a number"),
        ({"of": "value"}, "of is 'value', expected a JSON pointer such as '/value'."),
        ({"by": "weight"}, "by is 'weight', expected 'length' or nothing."),
        ({"path": "attributes/nothing-abc123"}, "'attributes/nothing-abc123' is in no output."),
    ],
)
def test_a_mistake_in_the_address_is_a_sentence(prefix: str, query: dict[str, str], sentence: str) -> None:
    with browsing(prefix) as browser:
        answer = browser.get("histogram", **{"path": "attributes/web-abc123", **query})
    assert answer.status == 404
    assert answer.sentence.startswith(sentence)


def test_a_field_that_no_row_has_and_an_output_without_rows_are_sentences(prefix: str) -> None:
    store_output(prefix, "attributes/empty", {"part.jsonl.zst": []})
    with browsing(prefix) as browser:
        answer = browser.get("histogram", path="attributes/web-abc123", of="/metadata/nothing")
        assert "Not in a bar: missing 303" in answer.text
        answer = browser.get("histogram", path="attributes/empty-abc123")
        assert "All 0 rows." in answer.text
        assert answer.status == 200
