"""Score documents by an encoder: attributes with the score of a label, "low_quality" below a threshold.

In:  documents, and a classifier of `train_encoder`, or the folder of a sequence classifier of Hugging Face, of a family
     in `inference/encoder/families.py`.
Out: attributes, shard for shard; value is the score with 6 digits: the probability of `label`, or the number that a
     regression returns.

Phases and threshold are those of `score_quality`. A text is read up to `max_tokens`. Texts are sorted by their length
and padded to one of a few lengths, in batches of a fixed size, so the score of a text depends on no other text.

A shard that was killed continues after the blocks of SORTED documents that it had scored, with the same bytes.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from marin_assets.documents import Document, document_files, document_shards, read_documents, write_rows
from marin_assets.inference.encoder.classifier import (
    FORMAT_VERSION,
    NUMBER,
    EncoderClassifier,
    find_classifier,
    load_classifier,
)
from marin_assets.inference.encoder.errors import EncoderError
from marin_assets.stages.quality.score_journal import ScoreJournal, remove_score_journals
from marin_assets.stages.quality.threshold import SCORES, ThresholdError, check_threshold, keep_best
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard, folder_state
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.paths import join
from marin_resources.wire.config_json import encode

KINDS = ("jax",)

SORTED = 8192
"""Documents that are sorted by their length together, and are in memory."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ScoreByEncoderConfig:
    documents_path: str
    model_path: str
    """Output of `train_encoder`, or the folder of a sequence classifier."""
    output_path: str = THIS_OUTPUT_PATH
    label: str | None = versioned(None)
    """The label whose score counts. None: the only one of a regression."""
    at_least: float | None = versioned(None)
    """Keep the documents with at least this score. Pass this or `keep_fraction`."""
    keep_fraction: float | None = versioned(None)
    """Keep this share of the documents, those with the highest scores; more if several tie at the threshold."""
    max_tokens: int | None = versioned(None)
    """Tokens of a text that are read. None: as in the training, or else all that the encoder can, at most 512."""
    int_score: tuple[int, int] | None = versioned(None)
    """Bounds of a whole score, such as (0, 5): each row also has the score rounded to it, `int_score`, as FineWeb-Edu's
    rows do."""
    resources: Resources | None = None
    """Resources of one shard, such as gpu("H100"); 1 CPU if None."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class ScoreConfig:
    """Config of a shard of `score_shard`."""

    model_path: str
    output_path: str
    """Output of the stage."""
    weights_sha256: str
    label: str | None
    max_tokens: int | None
    int_score: tuple[int, int] | None


def score_by_encoder(config: ScoreByEncoderConfig) -> dict[str, Any]:
    """Score every document and reject those below the threshold as low_quality.

    Returns documents, kept, rejected, rejected_low_quality, threshold, score_mean, score_min, score_max and the
    quantiles score_p01, score_p10, score_p50, score_p90, score_p99. Raises ThresholdError, EncoderError.
    """
    _check(config)
    score_config = ScoreConfig(
        model_path=config.model_path,
        output_path=config.output_path,
        weights_sha256=find_classifier(config.model_path),
        label=config.label,
        max_tokens=config.max_tokens,
        int_score=config.int_score,
    )
    classifier = _classifier(score_config)  # raises for an unknown label before any shard runs
    check_threshold(config.at_least, config.keep_fraction, shares=classifier.form != NUMBER)
    documents = document_files(config.documents_path)
    scored = document_shards(
        documents,
        join(config.output_path, SCORES),
        score_config,
        suffix=".parquet",
        also_read=[folder_state(config.model_path)],
    )
    map_shards(score_shard, scored, output_path=config.output_path, resources=config.resources)
    remove_score_journals(config.output_path)
    result = keep_best(
        scored, documents, config.output_path, at_least=config.at_least, keep_fraction=config.keep_fraction
    )
    log.info("%d of %d documents have a score of at least %.6f",
             result["kept"], result["documents"], result["threshold"])  # fmt: skip
    return result


def _check(config: ScoreByEncoderConfig) -> None:
    check_threshold(config.at_least, config.keep_fraction, shares=False)
    if config.max_tokens is not None and (type(config.max_tokens) is not int or config.max_tokens < 3):
        raise EncoderError(f"max_tokens is {config.max_tokens!r}, expected a whole number from 3 on, or None.")
    bounds = config.int_score
    if bounds is not None and not (len(bounds) == 2 and bounds[0] < bounds[1]):
        raise ThresholdError(f"int_score is {bounds!r}, expected a lower and an upper bound, such as (0, 5).")


def _classifier(config: ScoreConfig) -> EncoderClassifier:
    classifier = load_classifier(config.model_path, config.weights_sha256, config.max_tokens)
    if (config.label is None and len(classifier.labels) > 1) or config.label not in (None, *classifier.labels):
        raise EncoderError(
            f"label is {config.label!r}, expected one of {list(classifier.labels)}, which the model at "
            f"{config.model_path!r} has. Pass one of these."
        )
    return classifier


def score_shard(shard: FileShard) -> Mapping[str, int]:
    """Write id and score of each document, as parquet, so the next phase can read the column of scores only."""
    config: ScoreConfig = shard.config
    classifier = _classifier(config)
    label = config.label if config.label is not None else classifier.labels[0]
    journal = _journal(shard)
    scored = 0
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        rows = _rows(read_documents(file.path), classifier, label, config.int_score, journal)
        scored += write_rows(target, rows, replace=False)
    return {"scored": scored}


def _journal(shard: FileShard) -> ScoreJournal:
    """Return the journal of a shard, which is named by the first of its outputs."""
    config: ScoreConfig = shard.config
    name = shard.outputs[0].removeprefix(join(config.output_path, SCORES) + "/")
    model = [(file.size_bytes, file.stamp) for file in shard.also_read]
    key = json.dumps([FORMAT_VERSION, encode(config, "config"), model], sort_keys=True)
    return ScoreJournal(config.output_path, name, key, save_every=SORTED)


def _rows(
    documents: Iterator[Document],
    classifier: EncoderClassifier,
    label: str,
    bounds: tuple[int, int] | None,
    journal: ScoreJournal,
) -> Iterator[dict[str, Any]]:
    most = classifier.encoder.most_characters
    while block := [(document.id, document.text[:most]) for document in islice(documents, SORTED)]:
        if (scores := journal.next_scores(block)) is None:
            scores = classifier.scores([text for _, text in block], label)
            journal.add(block, scores)
        for (id, _), score in zip(block, scores, strict=True):
            row = {"id": id, "value": score}
            yield row if bounds is None else {**row, "int_score": round(min(max(score, bounds[0]), bounds[1]))}
