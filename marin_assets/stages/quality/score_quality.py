"""Score documents by a classifier: attributes with the probability of a label, "low_quality" below a threshold.

In:  documents, and a classifier of `train_fasttext`, or a bare fastText file.
Out: attributes, shard for shard; value is the score, the probability of `label` with 6 digits.

The threshold is a score, or the score that keeps a share of the documents. Three phases: score the documents (in
shards; stored in `.marin/scores/` until the end), find the threshold, write the decisions (in shards). Only the second
is global. Scores are millionths, so their distribution is a table of 1,000,001 counts (8 MB for any number of
documents), and the threshold an exact quantile. It reads the scores again: 8 bytes a document before compression.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from marin_assets.documents import document_files, document_shards, read_documents, read_rows, write_rows
from marin_assets.documents.attributes import Decision, write_decisions
from marin_assets.inference.fasttext_model import Classifier, ClassifierError, find_model, load_classifier
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import remove_folder
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("fasttext",)

if TYPE_CHECKING:
    import numpy as np

SCORES = ".marin/scores"
MILLION = 1_000_000
"""Scores are whole millionths."""
QUANTILES = {"score_p01": "0.01", "score_p10": "0.1", "score_p50": "0.5", "score_p90": "0.9", "score_p99": "0.99"}
BATCH_ROWS = 65536

log = logging.getLogger(__name__)


class ThresholdError(MarinError, ValueError):
    """The threshold is invalid, or cannot be found."""


@dataclass(frozen=True, kw_only=True)
class ScoreQualityConfig:
    documents_path: str
    model_path: str
    """Output of `train_fasttext`, or a fastText file (".bin", ".ftz")."""
    output_path: str = THIS_OUTPUT_PATH
    label: str = versioned("positive")
    """The label whose probability is the score."""
    at_least: float | None = versioned(None)
    """Keep the documents with at least this score. Pass this or `keep_fraction`."""
    keep_fraction: float | None = versioned(None)
    """Keep this share of the documents, those with the highest scores; more if several tie at the threshold."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class ScoreConfig:
    """Config of a shard of `score_shard`."""

    model_path: str
    model_sha256: str
    label: str


@dataclass(frozen=True, kw_only=True)
class DecideConfig:
    """Config of a shard of `decide_shard`."""

    threshold: float
    asked: ScoreConfig
    """Config of the scores: a shard of other scores is another shard."""


def score_quality(config: ScoreQualityConfig) -> dict[str, Any]:
    """Score every document and reject those below the threshold as low_quality.

    Returns documents, kept, rejected, rejected_low_quality, threshold, score_mean, score_min, score_max and the
    quantiles score_p01, score_p10, score_p50, score_p90, score_p99. Raises ThresholdError, ClassifierError.
    """
    _check(config)
    _, sha256 = find_model(config.model_path)
    score_config = ScoreConfig(model_path=config.model_path, model_sha256=sha256, label=config.label)
    _classifier(score_config)  # raises for an unknown label before any shard runs
    scores_path = join(config.output_path, SCORES)
    documents = document_files(config.documents_path)
    scored = document_shards(documents, scores_path, score_config, suffix=".parquet")
    map_shards(score_shard, scored, output_path=config.output_path)
    table = _table([path for shard in scored for path in shard.outputs])
    if not table.any():
        raise ThresholdError(f"{config.documents_path!r} has no documents to score. Pass other documents.")
    threshold = config.at_least if config.at_least is not None else _threshold(table, config.keep_fraction)
    decide = DecideConfig(threshold=threshold, asked=score_config)
    counts = map_shards(
        decide_shard, document_shards(scores_path, config.output_path, decide), output_path=config.output_path
    )
    remove_folder(scores_path)
    log.info("%d of %d documents have a score of at least %.6f", counts["kept"], counts["documents"], threshold)
    return {"rejected_low_quality": 0, **counts, "threshold": threshold, **_quantiles(table), **documents.counts}


def _check(config: ScoreQualityConfig) -> None:
    if (config.at_least is None) == (config.keep_fraction is None):
        raise ThresholdError(
            f"at_least is {config.at_least!r} and keep_fraction {config.keep_fraction!r}, expected exactly one of the "
            "two. Pass the least score to keep, or the share of the documents to keep."
        )
    name = "at_least" if config.at_least is not None else "keep_fraction"
    value = getattr(config, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ThresholdError(f"{name} is {value!r}, expected a number above 0, at most 1. Pass for example 0.9.")


def _classifier(config: ScoreConfig) -> Classifier:
    classifier = load_classifier(config.model_path, config.model_sha256)
    if config.label not in classifier.labels:
        raise ClassifierError(
            f"The model at {config.model_path!r} has no label {config.label!r}, expected one of "
            f"{list(classifier.labels)}. Pass one of these."
        )
    return classifier


def score_shard(shard: FileShard) -> Mapping[str, int]:
    """Write id and score of each document, as parquet, so the next phase can read the column of scores only."""
    classifier, label = _classifier(shard.config), shard.config.label
    scored = 0
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        rows = ({"id": d.id, "value": classifier.score(d.text, label)} for d in read_documents(file.path))
        scored += write_rows(target, rows, replace=False)
    return {"scored": scored}


def _table(paths: list[str]) -> np.ndarray:
    """Count the documents with each score: int64 (MILLION + 1,)."""
    import numpy as np  # 0.1 s to import

    table = np.zeros(MILLION + 1, np.int64)
    for path in paths:
        for values in _values(path):
            scores, counts = np.unique(np.rint(values * MILLION).astype(np.int64), return_counts=True)
            table[scores] += counts
    return table


def _values(path: str) -> Iterator[np.ndarray]:
    import pyarrow.parquet as pq  # 0.1 s to import

    fs, p = filesystem_of(path)
    with fs.open(p, "rb") as raw:
        file = pq.ParquetFile(raw, page_checksum_verification=True)
        if file.metadata.num_rows:  # a file without rows has no such column
            for batch in file.iter_batches(BATCH_ROWS, columns=["value"]):
                yield batch.column(0).to_numpy()


def _threshold(table: np.ndarray, keep_fraction: float | None) -> float:
    """Return the highest score that at least this share of the documents has: a quantile, without interpolation."""
    assert keep_fraction is not None
    total = int(table.sum())
    return _score_at(table, total - math.ceil(Fraction(str(keep_fraction)) * total))


def _score_at(table: np.ndarray, index: int) -> float:
    """Return the score at an index of all scores in ascending order."""
    import numpy as np

    return int(np.searchsorted(np.cumsum(table), index, side="right")) / MILLION


def _quantiles(table: np.ndarray) -> dict[str, float]:
    import numpy as np

    total = int(table.sum())
    quantiles = {
        name: _score_at(table, max(math.ceil(Fraction(share) * total) - 1, 0)) for name, share in QUANTILES.items()
    }
    mean = int((table * np.arange(MILLION + 1)).sum()) / MILLION / total
    return {"score_min": _score_at(table, 0), **quantiles, "score_max": _score_at(table, total - 1), "score_mean": mean}


def decide_shard(shard: FileShard) -> Mapping[str, int | float]:
    """Write the attributes of each file of scores."""
    counts: Counter[str] = Counter(documents=0, kept=0, rejected=0)
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        write_decisions(target, _decisions(file.path, shard.config.threshold), counts)
    return dict(counts)


def _decisions(path: str, threshold: float) -> Iterator[tuple[str, Decision]]:
    for _, row in read_rows(path):
        assert isinstance(row, dict), path  # written by score_shard
        keep = row["value"] >= threshold
        yield row["id"], Decision(keep=keep, reason="" if keep else "low_quality", value=row["value"])
