"""The splits of Nemotron-CC become documents with ids that are unique over all of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from crawl_server import CrawlServer, crawl_server
from crawls import documents_of

from marin_assets.datasets import nemotron_cc
from marin_assets.defaults import default_nemotron_cc
from marin_assets.defaults.sources.nemotron import FOLDER, NEMOTRON_SPLITS
from marin_assets.documents import list_shards
from marin_assets.stages.download.web import faults
from marin_assets.step.graph import build_graph
from marin_assets.step.resolve import resolve
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError
from marin_resources.ray_tpu.shards.map_shards import ShardError

OBJECTS = (
    "quality=high/kind=actual/kind2=actual/CC-MAIN-2013-20-part-00000",
    "quality=high/kind=actual/kind2=actual/CC-MAIN-2013-20-part-00001",
    "quality=high/kind=synthetic/kind2=distill/CC-MAIN-2013-20-part-00000",
    "quality=high/kind=synthetic/kind2=diverse_qa_pairs/CC-MAIN-2013-20-part-00000",
    "quality=medium-high/kind=actual/kind2=actual/CC-MAIN-2013-20-part-00000",
    "quality=medium/kind=actual/kind2=actual/CC-MAIN-2013-20-part-00000",
    "quality=medium-low/kind=actual/kind2=actual/CC-MAIN-2013-20-part-00000",
    "quality=low/kind=actual/kind2=actual/CC-MAIN-2013-20-part-00000",
    "quality=low/kind=synthetic/kind2=wrap_medium/CC-MAIN-2013-20-part-00000",
)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may be up in this process for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)
    monkeypatch.setattr(faults, "FIRST_WAIT_S", 0.001)


@pytest.fixture
def server() -> Iterator[CrawlServer]:
    """Common Crawl's server, with a few texts of each folder. A text that rephrases another one has its record id."""
    with crawl_server() as server:
        names = [f"{FOLDER}/{name}.jsonl.zstd" for name in OBJECTS]
        server.files = {name: encoded(name) for name in names}
        server.files[f"{FOLDER}.paths.gz"] = gzip.compress("".join(f"{name}\n" for name in names).encode(), mtime=0)
        yield server


def encoded(name: str) -> bytes:
    """Rows in two frames of zstd. Records are those of the quality and the part, whatever their kind."""
    record = name.split("quality=")[1].split("/")[0] + name[-len("00000.jsonl.zstd") :].split(".")[0]
    rows = [
        {"warc_record_id": f"<urn:{record}-{n}>", "url": "https://x.org", "text": f"Text {n} of {name}"}
        for n in range(4)
    ]
    lines = [f"{json.dumps(row)}\n".encode() for row in rows]
    return zstandard.compress(b"".join(lines[:3])) + zstandard.compress(lines[3])


def compute(step: Step, prefix: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    """Call the functions of the step and of its inputs, in turn. Returns the output's path and all results."""
    graph = build_graph([step])
    results = {}
    for node in graph:
        config = resolve(node, graph, lambda output: f"{prefix}/{output.relative()}", str(prefix))
        results[node.name] = node.step.fn(config)
    return f"{prefix}/{graph[step].output.relative()}", results


def test_ids_are_unique_over_all_splits_and_each_object_is_one_shard(server: CrawlServer, tmp_path: Path) -> None:
    steps = default_nemotron_cc(base_url=server.url)
    assert list(steps) == list(NEMOTRON_SPLITS) == list(nemotron_cc)
    ids, shards = list[str](), 0
    for split, step in steps.items():
        path, results = compute(step, tmp_path)
        documents = documents_of(path)
        assert results[f"documents/nemotron_cc/{split}"]["kept"] == len(documents)
        assert {document.source for document in documents} == {f"nemotron_cc/{split}"}
        ids += [document.id for document in documents]
        shards += len(list_shards(path))
    assert shards == len(OBJECTS)
    assert len(set(ids)) == len(ids) == 4 * len(OBJECTS)


def test_a_document_has_its_record_and_the_folders_of_its_object(server: CrawlServer, tmp_path: Path) -> None:
    path, _ = compute(default_nemotron_cc(["hq_synth"], base_url=server.url)["hq_synth"], tmp_path)
    first, *_, last = documents_of(path)
    assert (first.id, last.id) == ("distill/<urn:high00000-0>", "diverse_qa_pairs/<urn:high00000-3>")
    assert last.metadata == {
        "nemotron_url": "https://x.org",
        "nemotron_quality": "high",
        "nemotron_kind": "synthetic",
        "nemotron_kind2": "diverse_qa_pairs",
    }


def test_a_truncated_or_missing_object_fails_the_step(server: CrawlServer, tmp_path: Path) -> None:
    step = default_nemotron_cc(["hq_actual"], base_url=server.url)["hq_actual"]
    name = f"{FOLDER}/{OBJECTS[0]}.jsonl.zstd"
    whole = server.files.pop(name)
    with pytest.raises(FileNotFoundError, match="part-00000"):
        compute(step, tmp_path)
    server.files[name] = whole[:-5]
    with pytest.raises(ShardError, match=r"part-00000\.jsonl\.zstd' is damaged or truncated after line 3"):
        compute(step, tmp_path)


def test_a_sample_has_as_many_objects_whatever_the_order_of_the_list(server: CrawlServer, tmp_path: Path) -> None:
    step = default_nemotron_cc(["hq_actual"], max_files=1, base_url=server.url)["hq_actual"]
    _, results = compute(step, tmp_path / "a")
    assert (results["raw/nemotron_cc/hq_actual"]["files"], results["raw/nemotron_cc/hq_actual"]["listed"]) == (1, 9)
    names = gzip.decompress(server.files[f"{FOLDER}.paths.gz"]).decode().split()
    server.files[f"{FOLDER}.paths.gz"] = gzip.compress("\n".join(reversed(names)).encode(), mtime=0)
    _, again = compute(step, tmp_path / "b")
    assert again["raw/nemotron_cc/hq_actual"]["sha256"] == results["raw/nemotron_cc/hq_actual"]["sha256"]


def test_the_steps_are_those_of_the_catalogue() -> None:
    for split, step in default_nemotron_cc().items():
        known = nemotron_cc[split].documents()
        graph = build_graph([step, known])
        assert graph.drift == ()
        assert graph[step].version == graph[known].version
    sample = default_nemotron_cc(["medium"], max_files=2)["medium"]
    assert build_graph([sample])[sample].version != build_graph([known])[known].version


@pytest.mark.parametrize(
    ("splits", "sentence"),
    [
        (["hq_actul"], "Nemotron-CC has no split 'hq_actul', expected one of 'hq_actual'"),
        ("hq_actual", "got splits='hq_actual', expected a list of 'hq_actual', 'hq_synth'"),
        ([], "got splits=.., expected a list of"),
    ],
    ids=["typo", "text", "none"],
)
def test_a_wrong_split_is_refused_with_the_nearest(splits: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        default_nemotron_cc(splits)
