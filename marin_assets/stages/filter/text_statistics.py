"""Documents -> statistics: what every filter would measure, of every document, to choose thresholds from.

In:  documents.
Out: rows {"id", <statistic>, …}, shard for shard under the same names, as JSONL with zstd; `quantiles.json`, of each
     statistic the quantiles of 5 % steps, from a sample of the documents that is the same for any number of shards.

Nothing is rejected. The sample is the documents whose ids have the smallest hashes, SAMPLE of each file and of these
SAMPLE of all, so memory is flat; one process reads the files' samples, 20 MB a thousand files.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import SUFFIX, document_shards, read_documents, read_rows, write_rows
from marin_assets.stages.filter import fineweb, gopher_quality, gopher_repetition
from marin_assets.stages.filter.family import Measure
from marin_assets.stages.filter.named import named
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.words import splitter_named
from marin_assets.step.values import THIS_OUTPUT_PATH, unwrap_versioned_value, versioned
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import write_json
from marin_resources.storage.paths import join

SAMPLE = 2_000
"""Documents: what is said to be the median is a quantile between 48 and 52 % nineteen times out of twenty."""
STEPS = 20


@dataclass(frozen=True, kw_only=True)
class TextStatisticsConfig:
    documents_path: str
    """Documents to measure."""
    output_path: str = THIS_OUTPUT_PATH
    words: str = versioned("fast")
    """The word splitter, "fast" or "spacy"."""


def text_statistics(config: TextStatisticsConfig) -> dict[str, int | float]:
    """Measure documents. Returns documents, and each statistic's median as median_<statistic>."""
    splitter_named(config.words)
    shards = document_shards(config.documents_path, config.output_path, config)
    counts = map_shards(measure_shard, shards, output_path=config.output_path)
    sampled = [_sample_path(target) for shard in shards for target in shard.outputs]
    rows = heapq.nsmallest(SAMPLE, _rows_of(sampled), key=lambda row: row["hash"])
    names = [name for name in rows[0] if name not in ("id", "hash")] if rows else []
    quantiles = {name: _quantiles([row[name] for row in rows]) for name in names}
    write_json(join(config.output_path, "quantiles.json"), quantiles)
    medians = {f"median_{name}": values[STEPS // 2] for name, values in quantiles.items()}
    return {"documents": counts["documents"], **medians}


def measure_shard(shard: FileShard) -> dict[str, int]:
    """Write the statistics of every document, and those of the sample once more."""
    splitter, families = splitter_named(shard.config.words), asked_families()
    documents = 0
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        sample = Sample()
        measured = (
            {"id": document.id, **measures(TextStatistics(document.text, splitter), families)}
            for document in read_documents(file.path)
        )
        documents += write_rows(target, map(sample.add, measured), replace=False)
        write_rows(_sample_path(target), sample.rows())
    return {"documents": documents}


def asked_families() -> list[tuple[Sequence[Measure], Any]]:
    """Measures, and thresholds for the stop words and the length of a short line in them."""
    return [
        (gopher_repetition.MEASURES, None),
        (gopher_quality.MEASURES, unwrap_versioned_value(named("gopher_quality@datatrove").thresholds)),
        (fineweb.MEASURES, unwrap_versioned_value(named("fineweb@0.01").thresholds)),
    ]


def measures(statistics: TextStatistics, families: Sequence[tuple[Sequence[Measure], Any]]) -> dict[str, int | float]:
    """What the thresholds are bounds of, by their names without min_ and max_."""
    found: dict[str, int | float] = {"characters": len(statistics.text), "sentences": statistics.sentence_count}
    for asked, thresholds in families:
        for measure in asked:
            name = measure.name.removeprefix("min_").removeprefix("max_")
            if name not in found:
                found[name] = measure.of(statistics, thresholds)
    return found


class Sample:
    """The rows whose ids have the smallest hashes."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, dict[str, Any]]] = []
        self._seen = 0

    def add(self, row: dict[str, Any]) -> dict[str, Any]:
        """Returns the row."""
        key = int.from_bytes(hashlib.sha256(row["id"].encode()).digest()[:6])
        self._seen += 1
        keep = heapq.heappush if len(self._heap) < SAMPLE else heapq.heappushpop
        keep(self._heap, (-key, -self._seen, row))
        return row

    def rows(self) -> Iterator[dict[str, Any]]:
        """In the order of their hashes."""
        for key, _, row in sorted(self._heap, key=lambda entry: (-entry[0], -entry[1])):
            yield {"hash": -key, **row}


def _sample_path(target: str) -> str:
    """Hidden, so that it is no data of the output."""
    folder, _, name = target.rpartition("/")
    return join(folder, ".marin", "sample", name.removesuffix(SUFFIX) + ".jsonl.zst")


def _rows_of(paths: list[str]) -> Iterator[dict[str, Any]]:
    for path in paths:
        for number, row in read_rows(path):
            if not isinstance(row, dict):
                raise ValueError(f"{path!r} line {number} is no row: {json.dumps(row.detail)}. Run the step again.")
            yield row


def _quantiles(values: list[int | float]) -> list[int | float]:
    """The smallest, 5 %, …, 95 %, the largest."""
    ordered = sorted(values)
    return [ordered[round(i / STEPS * (len(ordered) - 1))] for i in range(STEPS + 1)]
