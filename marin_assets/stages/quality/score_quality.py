"""Score documents by a classifier: attributes with the probability of a label, "low_quality" below a threshold.

In:  documents, and a classifier of `train_fasttext`, or a bare fastText file.
Out: attributes, shard for shard; value is the score, the probability of `label` with 6 digits.

The threshold is a score, or the score that keeps a share of the documents. Three phases: score the documents (in
shards; stored in `.marin/scores/` until the end), find the threshold, write the decisions (in shards). Only the second
is global.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import document_files, document_shards, read_documents, write_rows
from marin_assets.inference.fasttext_model import Classifier, ClassifierError, find_model, load_classifier
from marin_assets.stages.quality.threshold import SCORES, check_threshold, keep_best
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.paths import join

KINDS = ("fasttext",)

log = logging.getLogger(__name__)


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


def score_quality(config: ScoreQualityConfig) -> dict[str, Any]:
    """Score every document and reject those below the threshold as low_quality.

    Returns documents, kept, rejected, rejected_low_quality, threshold, score_mean, score_min, score_max and the
    quantiles score_p01, score_p10, score_p50, score_p90, score_p99. Raises ThresholdError, ClassifierError.
    """
    _check(config)
    _, sha256 = find_model(config.model_path)
    score_config = ScoreConfig(model_path=config.model_path, model_sha256=sha256, label=config.label)
    _classifier(score_config)  # raises for an unknown label before any shard runs
    documents = document_files(config.documents_path)
    scored = document_shards(documents, join(config.output_path, SCORES), score_config, suffix=".parquet")
    map_shards(score_shard, scored, output_path=config.output_path)
    result = keep_best(
        scored, documents, config.output_path, at_least=config.at_least, keep_fraction=config.keep_fraction
    )
    log.info("%d of %d documents have a score of at least %.6f",
             result["kept"], result["documents"], result["threshold"])  # fmt: skip
    return result


def _check(config: ScoreQualityConfig) -> None:
    check_threshold(config.at_least, config.keep_fraction)


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
