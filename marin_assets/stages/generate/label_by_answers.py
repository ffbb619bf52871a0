"""Label documents by a model's answers about them, such as scores of a rubric.

In:  documents; the answers of `generate_from_documents` about them, shard for shard.
Out: `positive/` and `negative/`, documents with `score` in their metadata, shard for shard under the documents' names.

The score of an answer is read by the grammar of `rating.py`, or is the first number that a pattern finds. An answer
without one, or with one outside of the bounds, is unreadable: its document has no label, and is counted. After Marin's
datashop, and FineWeb-Edu's annotations of educational value (Penedo et al. 2024, arXiv:2406.17557), whose rubric goes
from 0 to 5 with 3 as the threshold.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from marin_assets.documents import Document, document_files, document_shards, read_documents, write_documents
from marin_assets.documents.shards import SUFFIX, output_name
from marin_assets.stages.generate.rating import rating_of
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

POSITIVE, NEGATIVE = "positive", "negative"
LABELS = (POSITIVE, NEGATIVE)
SCORE = "score"
"""The key in a document's metadata."""


class LabelError(MarinError, ValueError):
    """The answers give no labels. The message is the reason."""


@dataclass(frozen=True, kw_only=True)
class LabelByAnswersConfig:
    documents_path: str
    answers_path: str
    """Output of `generate_from_documents` of these documents."""
    output_path: str = THIS_OUTPUT_PATH
    pattern: str | None = versioned(None)
    """A regular expression whose first group is the score; None: the grammar of `rating.py`."""
    lowest: int = versioned(0)
    highest: int = versioned(5)
    positive_from: int = versioned(3)
    """The lowest score of a positive document."""
    max_unreadable: float = versioned(0.5)
    """The step fails if more than this share of the answers is unreadable."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class ShardConfig:
    """Config of a shard."""

    answers_path: str
    documents_path: str
    pattern: str | None
    lowest: int
    highest: int
    positive_from: int


def label_by_answers(config: LabelByAnswersConfig) -> dict[str, Any]:
    """Label documents.

    Returns documents, positive, negative, unreadable (and each unreadable_<reason> of the grammar), unreadable_share,
    score_mean and scores (documents by score).
    Raises LabelError for answers to other documents, for too many unreadable ones, and if a label has no document.
    """
    _check(config)
    documents = document_files(config.documents_path)
    shard_config = ShardConfig(
        answers_path=config.answers_path,
        documents_path=config.documents_path,
        pattern=config.pattern,
        lowest=config.lowest,
        highest=config.highest,
        positive_from=config.positive_from,
    )
    shards, negative = (document_shards(documents, join(config.output_path, label), shard_config) for label in LABELS)
    both = [
        replace(shard, outputs=shard.outputs + negative_shard.outputs)
        for shard, negative_shard in zip(shards, negative, strict=True)
    ]
    counts = dict(map_shards(label_shard, both, output_path=config.output_path))
    scores = {score: counts.pop(f"score_{score}", 0) for score in range(config.lowest, config.highest + 1)}
    readable, unreadable = sum(scores.values()), int(counts["unreadable"])
    share = unreadable / max(readable + unreadable, 1)
    if share > config.max_unreadable:
        raise LabelError(
            f"{unreadable} of {readable + unreadable} answers have no score"
            f"{'' if config.pattern is None else f' that {config.pattern!r} finds,'} between {config.lowest} and "
            f"{config.highest}; expected at most {config.max_unreadable:.0%} of them. Look at the answers in "
            f"{config.answers_path!r}, and correct the prompt{'' if config.pattern is None else ' or the pattern'}."
        )
    for label in LABELS:
        if not counts[label]:
            raise LabelError(
                f"No document is {label}: the scores are {scores}, and positive ones begin at {config.positive_from}. "
                "Choose another positive_from, or another prompt."
            )
    mean = sum(score * count for score, count in scores.items()) / readable
    score_counts = {"scores": {str(score): {"documents": count} for score, count in scores.items()}, "score_mean": mean}
    return {**counts, "unreadable_share": share, **score_counts, **documents.counts}


def _check(config: LabelByAnswersConfig) -> None:
    try:
        groups = 1 if config.pattern is None else re.compile(config.pattern).groups
    except re.error as error:
        raise LabelError(f"The pattern {config.pattern!r} is no regular expression ({error}). Correct it.") from None
    if groups < 1:
        raise LabelError(f"The pattern {config.pattern!r} has no group, expected one around the score. Add brackets.")
    if not config.lowest < config.positive_from <= config.highest:
        raise LabelError(
            f"positive_from is {config.positive_from}, expected a score above {config.lowest} and up to "
            f"{config.highest}, so that both labels can occur."
        )


def label_shard(shard: FileShard) -> Counter[str]:
    counts: Counter[str] = Counter(documents=0, positive=0, negative=0, unreadable=0)
    half = len(shard.inputs)
    for i, file in enumerate(shard.inputs):
        answers_path = join(shard.config.answers_path, output_name(file, SUFFIX))
        labelled = list(_labelled(file.path, answers_path, shard.config, counts))
        for label, targets in zip(LABELS, (shard.outputs[:half], shard.outputs[half:]), strict=True):
            write_documents(
                targets[i], (document for own_label, document in labelled if own_label == label), replace=False
            )
    return counts


def _labelled(
    path: str, answers_path: str, config: ShardConfig, counts: Counter[str]
) -> Iterator[tuple[str, Document]]:
    answers = read_documents(answers_path)
    for document in read_documents(path):
        answer = next(answers, None)
        if answer is None or answer.id != document.id:
            difference = "ends before it" if answer is None else f"has {answer.id!r} there"
            raise LabelError(
                f"{answers_path!r} {difference}, expected the answer about {document.id!r}. Generate answers about "
                "these documents."
            )
        counts["documents"] += 1
        score = _score(answer.text, config)
        if not isinstance(score, int):
            counts["unreadable"] += 1
            if score is not None:
                counts[f"unreadable_{score}"] += 1
            continue
        counts[f"score_{score}"] += 1
        label = POSITIVE if score >= config.positive_from else NEGATIVE
        counts[label] += 1
        yield label, replace(document, metadata={**document.metadata, SCORE: score})
    if (more := next(answers, None)) is not None:
        raise LabelError(
            f"{answers_path!r} has an answer about {more.id!r} after that about the last document of {path!r}. "
            "Generate answers about these documents."
        )


def _score(answer: str, config: ShardConfig) -> int | str | None:
    """The score of an answer; why it has none by the grammar, or None if the pattern finds none."""
    if config.pattern is None:
        return rating_of(answer, config.lowest, config.highest)
    match = re.search(config.pattern, answer)
    score = int(match[1]) if match and match[1] and match[1].isdecimal() else None
    return score if score is not None and config.lowest <= score <= config.highest else None
