"""One id, all that it became: the rows along the lineage, and by what a consolidation rejects it."""

from __future__ import annotations

import random
import re
import zlib
from collections import Counter
from html import unescape
from pathlib import Path

import pytest
from browser_server import Answer, browsing
from object_stores import REAL_GCS_PREFIX, gcs_bucket_of
from stored_outputs_for_browsing import store_output

from marin_assets.browse.stored.row_counts import noted_rows
from marin_assets.browse.stored.verdicts import decision_in, verdict
from marin_assets.documents.attributes import Decision, write_decisions
from marin_assets.documents.frames.id_merge import merge_ids
from marin_assets.documents.frames.id_table import COUNTS, FENCE, MAGIC, Covered, encode_names
from marin_assets.documents.rows import read_rows, write_rows
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
from marin_resources.storage.files import read_json, stored_files, write_json
from marin_resources.storage.paths import join

ODD = ["a/b#0", "c?d=1&e#1", "50%25#2", "' \" <b> \\#3", "né 日本 🙂", "x" * 1000]
SHARDS, DOCUMENTS = 3, 90


def ids_of(shard: int) -> list[str]:
    return [*(f"{id}-{shard}" for id in ODD), *(f"page{shard}/{i // 3}#{i % 3}" for i in range(DOCUMENTS))]


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    """Pages, documents, three attributes with every kind of decision, a consolidation by the stage, and its reader."""
    prefix, names = str(tmp_path / "prefix"), [f"part-{i}.jsonl.zst" for i in range(SHARDS)]
    pages = {
        name: [{"id": f"page{i}/{n}", "text": f"<p>page {n}</p>"} for n in range(30)] for i, name in enumerate(names)
    }
    store_output(prefix, "raw/web", pages)
    documents = {
        name: [
            {"id": id, "text": f"Text of {id}", "source": "s", "metadata": {"page": id.rpartition("#")[0] or id}}
            for id in ids_of(i)
        ]
        for i, name in enumerate(names)
    }  # fmt: skip
    raw = store_output(prefix, "raw/web", pages)
    below = store_output(prefix, "documents/web", documents, reads=[raw])
    draw = random.Random(7)
    for attribute in ("length", "quality", "cuts"):
        path = store_output(prefix, f"attributes/web/{attribute}", {}, reads=[below])
        for i, name in enumerate(names):
            pairs = [(id, decision_of(attribute, f"Text of {id}", draw)) for id in ids_of(i)]
            write_decisions(join(prefix, path, name), pairs, Counter())
    applied = [
        {"name": "length", "path": join(prefix, "attributes/web/length-abc123")},
        {"name": "quality", "path": join(prefix, "attributes/web/quality-abc123"), "at_least": 0.3},
        {"name": "cuts", "path": join(prefix, "attributes/web/cuts-abc123")},
    ]
    reads = [below, *(f"attributes/web/{name}-abc123" for name in ("length", "quality", "cuts"))]
    kept = store_output(prefix, "selected/web", {}, reads=reads)
    documents_path = join(prefix, below)
    consolidate(
        ConsolidateConfig(
            documents_path=documents_path,
            attributes=[Applied(**fields) for fields in applied],
            output_path=join(prefix, kept),
            rejected_per_reason=5,
            rejected_characters=2000,
            output_format=".jsonl.zst",
        )
    )
    record = read_json(join(prefix, kept, ".executor_info"))
    record |= {
        "fn_name": "marin_assets.stages.consolidate.consolidate:consolidate",
        "config": {"documents_path": documents_path, "attributes": applied},
    }
    write_json(join(prefix, kept, ".executor_info"), record)
    store_output(prefix, "documents/other", {"part-0.jsonl": [{"id": ids_of(0)[0], "text": "of another lineage"}]})
    return prefix


def decision_of(attribute: str, text: str, draw: random.Random) -> Decision:
    if attribute == "cuts":
        cut = ((0, len(text)),) if draw.random() < 0.1 else ((0, 5),) if draw.random() < 0.3 else ()
        return Decision(keep=True, cut=cut)
    if draw.random() < 0.2:
        return Decision(keep=False, reason=f"bad_{attribute}", value=draw.random())
    return Decision(keep=True, value=draw.random())


def fates(answer: Answer) -> dict[str, str]:
    """Output -> the fate that the page shows."""
    cells = re.findall(
        r'<tr data-row><th scope="row"><a href="[^"]*"><bdi>(.*?)</bdi>.*?</td><td><bdi>(.*?)</bdi>', answer.html
    )
    return {unescape(name): unescape(fate) for name, fate in cells}


@pytest.mark.parametrize("count", [15, pytest.param(200, marks=pytest.mark.long)])
def test_the_verdicts_of_documents_are_those_of_the_files(prefix: str, count: int) -> None:
    ids = random.Random(3).sample([id for i in range(SHARDS) for id in ids_of(i)], count)
    odd = [f"{id}-{i}" for id in ODD for i in range(SHARDS)]
    attributes, kept, sample = read_all(prefix)
    with browsing(prefix) as browser:
        for id in {*ids, *(odd if count > 100 else odd[::3])}:
            shown = fates(browser.get("way", path="documents/web-abc123", id=id))
            for name, rows in attributes.items():
                keep = rows[id]["keep"]
                assert shown[f"attributes/web/{name}"].startswith("kept" if keep else f"rejected: {rows[id]['reason']}")
            assert (id in kept) == shown["selected/web"].startswith("kept")
            if id in sample:
                assert shown["selected/web"].startswith(f"rejected by {sample[id]}")
                assert shown["selected/web"].endswith("in the sample of the rejected")
            assert "documents/other" not in shown


def test_the_verdict_by_another_key_is_that_of_the_stage() -> None:
    applied = Applied(name="words", path="/attributes", key="words", at_least=2)
    document = {"id": "a", "text": "one"}
    row = {"id": "a", "keep": True, "reason": "", "value": None, "words": 1}
    rejected = (False, "rejected by words: below_at_least, value 1")
    assert verdict(document, [(applied, decision_in(row))]) == rejected
    assert verdict(document, [(applied, decision_in({**row, "words": 2}))]) == (True, "kept")


def read_all(prefix: str) -> tuple[dict[str, dict[str, dict]], set[str], dict[str, str]]:
    """The rows of the attributes by id, the ids that are kept, and attribute and reason of the sample of the others."""

    def rows(path: str) -> list[dict]:
        files = [file for file in stored_files(join(prefix, path)) if file.name.endswith(".zst")]
        return [row for file in files for _, row in read_rows(file.path) if isinstance(row, dict)]

    attributes = {
        name: {row["id"]: row for row in rows(f"attributes/web/{name}-abc123")}
        for name in ("length", "quality", "cuts")
    }
    sample = {row["id"]: f"{row['attribute']}: {row['reason']}" for row in rows("selected/web-abc123/.marin/rejected")}
    return attributes, {row["id"] for row in rows("selected/web-abc123")}, sample


def test_the_rows_of_shards_are_those_of_their_notes(prefix: str) -> None:
    """A consolidation counts the documents that it reads too, and has fewer rows."""
    path = join(prefix, "selected/web-abc123")
    noted = noted_rows(path)
    assert noted == {
        file.name: sum(1 for _ in read_rows(file.path)) for file in stored_files(path) if "part" in file.name
    }
    assert len(noted) == SHARDS
    with browsing(prefix) as browser:
        text = browser.get("output", path="selected/web-abc123").text
    for name, rows in noted.items():
        assert f"{name} {rows} " in text


def test_every_output_on_the_way_has_a_link_to_the_row(prefix: str) -> None:
    with browsing(prefix) as browser:
        answer = browser.get("way", path="attributes/web/quality-abc123", id="page1/4#2")
        links = [unescape(link) for link in re.findall(r'data-open href="([^"]+)"', answer.html)]
        assert len(links) >= 5
        for link in links:
            assert "page1/4" in browser.send("GET", link).text
    assert fates(answer)["raw/web"] == "its page"
    assert list(fates(answer))[:2] == ["raw/web", "documents/web"]


def test_a_page_leads_to_its_parts_and_a_part_to_its_page(prefix: str) -> None:
    with browsing(prefix) as browser:
        page = browser.get("way", path="raw/web-abc123", id="page2/1")
        assert "the way of the first, page2/1#0" in page.text
        part = browser.get("way", path="documents/web-abc123", id="page2/1#0")
        assert "It is a part of the page page2/1." in part.text


def test_an_id_that_is_nowhere_is_one_sentence(prefix: str) -> None:
    with browsing(prefix) as browser:
        answer = browser.get("way", path="selected/web-abc123", id="nowhere")
        assert answer.status == 404
        assert answer.sentence.startswith(
            "No row of 'selected/web-abc123', and of the 6 outputs along its lineage, has the id"
        )
        for id in ("", "x" * 5000):
            assert "expected 1 to 4,000" in browser.get("way", path="selected/web-abc123", id=id).sentence


def test_a_damaged_shard_is_a_line_of_the_way(prefix: str) -> None:
    for file in stored_files(join(prefix, "attributes/web/length-abc123")):
        Path(file.path).write_bytes(Path(file.path).read_bytes()[:40])
    with browsing(prefix) as browser:
        shown = fates(browser.get("way", path="documents/web-abc123", id="page0/1#1"))
        from_there = fates(browser.get("way", path="attributes/web/length-abc123", id="page0/1#1"))
    assert "is damaged or truncated" in shown["attributes/web/length"]
    assert shown["documents/web"] == "a row"
    assert from_there == shown


def test_a_prefix_that_was_moved_shows_the_same_way(prefix: str, tmp_path: Path) -> None:
    with browsing(prefix) as browser:
        before = fates(browser.get("way", path="documents/web-abc123", id="page0/1#1"))
    Path(prefix).rename(tmp_path / "moved")
    with browsing(str(tmp_path / "moved")) as browser:
        assert fates(browser.get("way", path="documents/web-abc123", id="page0/1#1")) == before


def many_shards(prefix: str, shards: int = 12, rows: int = 30) -> None:
    """Documents, an attribute in small rows, and a consolidation without every third, with their tables of ids."""
    names = [f"part-{i:02d}.jsonl.zst" for i in range(shards)]
    texts = random.Random(1)
    documents = {
        name: [{"id": f"{i}#{n}", "text": texts.randbytes(900).hex()} for n in range(rows)]
        for i, name in enumerate(names)
    }
    decisions = {
        name: [{"id": f"{i}#{n}", "keep": n % 3 != 0, "reason": "third" if n % 3 == 0 else ""} for n in range(rows)]
        for i, name in enumerate(names)
    }
    kept = {name: [row for n, row in enumerate(content) if n % 3] for name, content in documents.items()}
    first = store_output(prefix, "documents/many", documents)
    second = store_output(prefix, "attributes/many", decisions, reads=[first])
    third = store_output(prefix, "selected/many", kept, reads=[first, second])
    for path in (first, second, third):
        merge_ids(join(prefix, path))


def test_in_a_bucket_the_way_by_the_tables_costs_few_requests(any_prefix: str) -> None:
    many_shards(any_prefix)
    bucket = gcs_bucket_of(any_prefix) if any_prefix.startswith("gs://") and not REAL_GCS_PREFIX else None
    with browsing(any_prefix) as browser:
        for start in ("documents/many", "attributes/many", "selected/many"):
            before = bucket.requests_made() if bucket is not None else 0
            shown = fates(browser.get("way", path=join(any_prefix, f"{start}-abc123"), id="7#4"))
            assert list(shown) == ["documents/many", "attributes/many", "selected/many"]
            if bucket is not None:
                assert bucket.requests_made() - before <= 20
        rejected = fates(browser.get("way", path=join(any_prefix, "documents/many-abc123"), id="11#3"))
        assert rejected == {"documents/many": "a row", "attributes/many": "rejected: third"}


def test_without_tables_or_with_stale_ones_the_way_is_the_same_or_a_sentence(tmp_path: Path) -> None:
    many_shards(str(tmp_path))
    with browsing(str(tmp_path)) as browser:
        with_tables = fates(browser.get("way", path="documents/many-abc123", id="7#4"))
        shard = tmp_path / "documents/many-abc123/part-07.jsonl.zst"
        write_rows(str(shard), [{"id": f"other{n}", "text": "x" * 2000} for n in range(3)])
        assert "Files of the output were changed" in browser.get("way", path="documents/many-abc123", id="7#4").text
        for path in ("documents", "attributes", "selected"):
            (tmp_path / f"{path}/many-abc123/.marin/ids").unlink(missing_ok=True)
        many = [{"id": f"7#{n}", "text": "x" * 2000} for n in range(30)]
        write_rows(str(shard), many)
        assert fates(browser.get("way", path="documents/many-abc123", id="7#4")) == with_tables


def test_a_table_that_names_a_place_outside_of_the_output_is_not_followed(tmp_path: Path) -> None:
    many_shards(str(tmp_path / "prefix"))
    path = tmp_path / "prefix/documents/many-abc123/.marin/ids"
    write_rows(str(tmp_path / "secret.jsonl.zst"), [{"id": "7#4", "text": "secret" * 500}])
    names = [Covered(name=f"../../../{n}secret.jsonl.zst", size_bytes=1, rows=1) for n in ("", *"abcdefghijk")]
    whole = path.read_bytes()
    version, ids, block_ids, blocks, names_bytes, _ = COUNTS.unpack_from(whole, len(MAGIC))
    start = len(MAGIC) + COUNTS.size
    after, forged = whole[start + names_bytes :], encode_names(names, 0)
    checksum = zlib.crc32(after[: blocks * FENCE.size], zlib.crc32(forged))
    path.write_bytes(MAGIC + COUNTS.pack(version, ids, block_ids, blocks, len(forged), checksum) + forged + after)
    with browsing(str(tmp_path / "prefix")) as browser:
        answer = browser.get("way", path="documents/many-abc123", id="7#4")
        assert "is no name of a shard" in answer.text
        assert "secretsecret" not in answer.text
