"""Keep the documents with the best scores: from a threshold on, or an exact share of them.

In:  scores of the documents, in shards: id and value of each.
Out: attributes, shard for shard; value is the score.

Scores are whole millionths, so their distribution is a table of counts (8 MB for shares, from 0 to 1, and for any
number of documents), and the threshold an exact quantile. It reads the scores again: 8 bytes a document before
compression.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from marin_assets.documents import DocumentFiles, document_shards, read_rows
from marin_assets.documents.attributes import Decision, write_decisions
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import remove_folder
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import numpy as np

SCORES = ".marin/scores"
MILLION = 1_000_000
"""Scores are whole millionths."""
WIDEST = 100
"""Largest difference of two scores: a table of 800 MB."""
QUANTILES = {"score_p01": "0.01", "score_p10": "0.1", "score_p50": "0.5", "score_p90": "0.9", "score_p99": "0.99"}
BATCH_ROWS = 65536


class ThresholdError(MarinError, ValueError):
    """The threshold is invalid, or cannot be found."""


@dataclass(frozen=True, kw_only=True)
class DecideConfig:
    """Config of a shard of `decide_shard`."""

    threshold: float
    asked: Any
    """Config of the scores: a shard of other scores is another shard."""


def check_threshold(at_least: float | None, keep_fraction: float | None, *, shares: bool = True) -> None:
    """Raise ThresholdError unless exactly one of the two is given, and valid. `shares`: scores are from 0 to 1."""
    if (at_least is None) == (keep_fraction is None):
        raise ThresholdError(
            f"at_least is {at_least!r} and keep_fraction {keep_fraction!r}, expected exactly one of the "
            "two. Pass the least score to keep, or the share of the documents to keep."
        )
    name, value = ("at_least", at_least) if at_least is not None else ("keep_fraction", keep_fraction)
    is_number = not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)
    if name == "at_least" and not shares:
        if not is_number:
            raise ThresholdError(f"at_least is {value!r}, expected a number. Pass for example 2.5.")
    elif not is_number or not 0 < (value or 0) <= 1:
        raise ThresholdError(f"{name} is {value!r}, expected a number above 0, at most 1. Pass for example 0.9.")


def keep_best(
    scored: Sequence[FileShard],
    documents: DocumentFiles,
    output_path: str,
    *,
    at_least: float | None,
    keep_fraction: float | None,
) -> dict[str, Any]:
    """Write the attributes of documents whose scores are in the outputs of `scored`; remove the scores.

    Returns documents, kept, rejected, rejected_low_quality, threshold, score_mean, score_min, score_max and the
    quantiles score_p01, score_p10, score_p50, score_p90, score_p99. Raises ThresholdError.
    """
    distribution = _distribution([path for shard in scored for path in shard.outputs])
    if not distribution.total:
        raise ThresholdError(f"{documents.path!r} has no documents to score. Pass other documents.")
    threshold = at_least if at_least is not None else _threshold(distribution, keep_fraction)
    scores_path = join(output_path, SCORES)
    decide = DecideConfig(threshold=threshold, asked=scored[0].config)
    counts = map_shards(decide_shard, document_shards(scores_path, output_path, decide), output_path=output_path)
    remove_folder(scores_path)
    quantiles = _quantiles(distribution)
    return {"rejected_low_quality": 0, **counts, "threshold": threshold, **quantiles, **documents.counts}


class Distribution:
    """Number of documents with each score."""

    def __init__(self) -> None:
        import numpy as np  # 0.1 s to import

        self.first = 0
        """Millionths."""
        self.table = np.zeros(0, np.int64)
        """Counts of the scores from `first` on, a millionth apart."""

    @property
    def total(self) -> int:
        return int(self.table.sum())

    def add(self, scores: np.ndarray) -> None:
        """Count scores, in millionths (int64). Raises ThresholdError if they differ by more than WIDEST."""
        import numpy as np

        distinct, counts = np.unique(scores, return_counts=True)
        if not len(self.table):
            self.first = int(distinct[0])
        first = min(self.first, int(distinct[0]))
        last = max(self.first + len(self.table), int(distinct[-1]) + 1)
        if last - first > WIDEST * MILLION + 1:
            raise ThresholdError(
                f"The scores are from {first / MILLION} to {(last - 1) / MILLION}, expected a range of at most "
                f"{WIDEST}. Scale the numbers that the classifier learns."
            )
        self.table = np.pad(self.table, (self.first - first, last - self.first - len(self.table)))
        self.first = first
        self.table[distinct - first] += counts

    def at(self, index: int) -> float:
        """Return the score at an index of all scores in ascending order."""
        import numpy as np

        return (self.first + int(np.searchsorted(np.cumsum(self.table), index, side="right"))) / MILLION


def _distribution(paths: list[str]) -> Distribution:
    import numpy as np  # 0.1 s to import

    distribution = Distribution()
    for path in paths:
        for values in _values(path):
            distribution.add(np.rint(values * MILLION).astype(np.int64))
    return distribution


def _values(path: str) -> Iterator[np.ndarray]:
    import pyarrow.parquet as pq  # 0.1 s to import

    fs, p = filesystem_of(path)
    with fs.open(p, "rb") as raw:
        file = pq.ParquetFile(raw, page_checksum_verification=True)
        if file.metadata.num_rows:  # a file without rows has no such column
            for batch in file.iter_batches(BATCH_ROWS, columns=["value"]):
                yield batch.column(0).to_numpy()


def _threshold(distribution: Distribution, keep_fraction: float | None) -> float:
    """Return the highest score that at least this share of the documents has: a quantile, without interpolation."""
    assert keep_fraction is not None
    total = distribution.total
    return distribution.at(total - math.ceil(Fraction(str(keep_fraction)) * total))


def _quantiles(distribution: Distribution) -> dict[str, float]:
    import numpy as np

    total = distribution.total
    quantiles = {
        name: distribution.at(max(math.ceil(Fraction(share) * total) - 1, 0)) for name, share in QUANTILES.items()
    }
    above = int((distribution.table * np.arange(len(distribution.table))).sum())
    mean = (distribution.first * total + above) / MILLION / total
    return {"score_min": distribution.at(0), **quantiles, "score_max": distribution.at(total - 1), "score_mean": mean}


def decide_shard(shard: FileShard) -> Mapping[str, int | float]:
    """Write the attributes of each file of scores."""
    counts: Counter[str] = Counter(documents=0, kept=0, rejected=0)
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        write_decisions(target, _decisions(file.path, shard.config.threshold), counts)
    return dict(counts)


def _decisions(path: str, threshold: float) -> Iterator[tuple[str, Decision]]:
    for _, row in read_rows(path):
        assert isinstance(row, dict), path  # a file of scores
        keep, value = row["value"] >= threshold, row["value"]
        more = {key: row[key] for key in row if key not in ("id", "value")} or None
        yield row["id"], Decision(keep=keep, reason="" if keep else "low_quality", value=value, fields=more)
