"""Compute the statistics that filters measure, of every document, to choose thresholds from.

In:  documents.
Out: rows {"id", <statistic>, …}, shard for shard under the same names, as JSONL with zstd; `quantiles.json`, the
     quantiles of each statistic in steps of 5 %, from a sample that is the same for any number of shards. Signals of
     lines, which are lists, are in the rows alone.

Nothing is rejected. The sample is the SAMPLE documents whose ids have the smallest hashes, taken from the SAMPLE of
each file, so memory is bounded. One process reads the samples of all files, 20 MB for a thousand files.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import SUFFIX, document_files, document_shards, read_documents, read_rows, write_rows
from marin_assets.stages.filter import fineweb, gopher_quality, gopher_repetition
from marin_assets.stages.filter.registry import named
from marin_assets.stages.filter.signals.redpajama_text import RedPajamaText
from marin_assets.stages.filter.signals.registry import measure_of, signal_names, version_signals
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.threshold_filter import Measure
from marin_assets.stages.filter.words import splitter_named
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, unwrap_versioned_value, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import write_json
from marin_resources.storage.paths import join

SAMPLE = 2_000
"""Documents in the sample. With 95 % probability the reported median lies between the quantiles of 48 and 52 %."""
STEPS = 20
"""Quantiles are reported in steps of 1 / STEPS."""


@dataclass(frozen=True, kw_only=True)
class TextStatisticsConfig:
    documents_path: str
    """Documents to measure."""
    output_path: str = THIS_OUTPUT_PATH
    words: str = versioned("spacy")
    """The word splitter, "spacy" or "fast": the one that the filters will use."""
    signals: Sequence[str] = ()
    """Signals to measure too: their names, or "redpajama" for all. They enter the version, with or without
    `versioned()`."""

    def __post_init__(self) -> None:
        version_signals(self)

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, lambda config: signal_names(config.signals), name)


def text_statistics(config: TextStatisticsConfig) -> dict[str, int | float]:
    """Measure documents. Returns documents, and each statistic's median as median_<statistic>. Raises SplitterError
    and SignalError."""
    splitter_named(config.words)
    signal_names(config.signals)
    documents = document_files(config.documents_path)
    shards = document_shards(documents, config.output_path, config)
    counts = map_shards(measure_shard, shards, output_path=config.output_path)
    sampled = [_sample_path(target) for shard in shards for target in shard.outputs]
    rows = heapq.nsmallest(SAMPLE, _rows_of(sampled), key=lambda row: row["hash"])
    names = [name for name in rows[0] if name not in ("id", "hash")] if rows else []
    measured = {name: [row[name] for row in rows if row[name] is not None] for name in names}
    quantiles = {name: _quantiles(values) for name, values in measured.items() if values}
    write_json(join(config.output_path, "quantiles.json"), quantiles)
    medians = {f"median_{name}": values[STEPS // 2] for name, values in quantiles.items()}
    return {"documents": counts["documents"], **medians, **documents.counts}


def measure_shard(shard: FileShard) -> dict[str, int]:
    """Write the statistics of every document, and those of the sample to a second, hidden file."""
    splitter, families = splitter_named(shard.config.words), measured_families()
    signals = measure_of(shard.config.signals)
    documents = 0
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        sample = Sample()
        measured = (
            {"id": document.id, **measures(statistics, families), **signals(statistics.by(RedPajamaText))}
            for document in read_documents(file.path)
            for statistics in [TextStatistics(document.text, splitter)]
        )
        documents += write_rows(target, map(sample.add, measured), replace=False)
        write_rows(_sample_path(target), sample.rows())
    return {"documents": documents}


def measured_families() -> list[tuple[Sequence[Measure], Any]]:
    """Return the measures of each family, with thresholds that supply its stop words and length of a short line."""
    return [
        (gopher_repetition.MEASURES, None),
        (gopher_quality.MEASURES, unwrap_versioned_value(named("gopher_quality@datatrove").thresholds)),
        (fineweb.MEASURES, unwrap_versioned_value(named("fineweb@0.01").thresholds)),
    ]


def measures(statistics: TextStatistics, families: Sequence[tuple[Sequence[Measure], Any]]) -> dict[str, int | float]:
    """Return the numbers that the thresholds bound, by the thresholds' names without min_ and max_."""
    by_name: dict[str, int | float] = {"characters": len(statistics.text), "sentences": statistics.sentence_count}
    for family_measures, thresholds in families:
        for measure in family_measures:
            name = measure.name.removeprefix("min_").removeprefix("max_")
            if name not in by_name:
                by_name[name] = measure.of(statistics, thresholds)
    return by_name


class Sample:
    """The rows whose ids have the smallest hashes."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, dict[str, Any]]] = []
        self._seen = 0

    def add(self, row: dict[str, Any]) -> dict[str, Any]:
        """Add a row, without its lists, to the sample if its hash is small enough. Return the row."""
        key = int.from_bytes(hashlib.sha256(row["id"].encode()).digest()[:6])
        self._seen += 1
        keep = heapq.heappush if len(self._heap) < SAMPLE else heapq.heappushpop
        numbers = {name: value for name, value in row.items() if not isinstance(value, list)}
        keep(self._heap, (-key, -self._seen, numbers))
        return row

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the sampled rows in the order of their hashes."""
        for key, _, row in sorted(self._heap, key=lambda entry: (-entry[0], -entry[1])):
            yield {"hash": -key, **row}


def _sample_path(target: str) -> str:
    """Return the path of a shard's sample: hidden, so it does not count as data of the output."""
    folder, _, name = target.rpartition("/")
    return join(folder, ".marin", "sample", name.removesuffix(SUFFIX) + ".jsonl.zst")


def _rows_of(paths: list[str]) -> Iterator[dict[str, Any]]:
    for path in paths:
        for number, row in read_rows(path):
            if not isinstance(row, dict):
                raise ValueError(f"{path!r} line {number} is not a row: {json.dumps(row.detail)}. Run the step again.")
            yield row


def _quantiles(values: list[int | float]) -> list[int | float]:
    """Return the smallest value, the quantiles of 5 %, …, 95 %, and the largest value."""
    ordered = sorted(values)
    return [ordered[round(i / STEPS * (len(ordered) - 1))] for i in range(STEPS + 1)]
