"""Train a fastText classifier of documents (Joulin et al. 2017, arXiv:1607.01759).

In:  examples, a folder of documents for each label.
Out: `model.bin` (fastText's format) and `model.json` (labels, preprocessing of texts), `metrics.json`.

Examples are the texts with the smallest hashes, at most `max_examples` of a label. A text counts once, and not at all
if it has two labels. A hash of the page decides the side of the split, so neither a text nor a page is on both sides.
fastText sees the examples in the order of their hashes.

The same examples give the same bytes of model.bin, on one kind of machine. That requires one thread (several threads
write into one table without locks) and zeroed memory (`zeroed_memory`). So training is one global, sequential phase:
about 2 M words a second for an epoch of 32 dimensions. Memory: the examples, and (words + bucket) * dim * 4 bytes.
fastText reads a local file, so the examples are written to a temporary folder.
"""

from __future__ import annotations

import ctypes
import logging
import math
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import DocumentFiles, document_files, document_shards
from marin_assets.documents.position import check_fraction
from marin_assets.inference.fasttext_model import (
    ABOUT,
    FORMAT_VERSION,
    LABEL_PREFIX,
    MODEL,
    Classifier,
    find_model,
    load_classifier,
    sha256_of,
)
from marin_assets.stages.quality.sample import Example, SampleConfig, sample_shard, sampled_examples
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import open_atomic, write_json
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("fasttext",)

SAMPLES = ".marin/examples"
METRICS = "metrics.json"
M_PERTURB = -6
"""Option of glibc's mallopt: fill allocated memory with the complement of the given byte."""
LABEL = re.compile(r"[\w-]+")
MINIMUMS = {"max_examples": 1, "dim": 1, "word_ngrams": 1, "bucket": 1, "min_count": 1, "epochs": 1}

log = logging.getLogger(__name__)


Z95 = 1.959964
"""Standard errors on either side of a 95 % confidence interval (normal distribution)."""


class TrainingError(MarinError, ValueError):
    """No classifier can be trained from these examples or parameters."""


@dataclass(frozen=True, kw_only=True)
class TrainFastTextConfig:
    examples: dict[str, str]
    """Label to documents, for example {"positive": …, "negative": …}."""
    output_path: str = THIS_OUTPUT_PATH
    max_examples: int = versioned(200_000)
    """At most this many of each label. DCLM (arXiv:2406.11794) trains on 200,000 of each."""
    validation_fraction: float = versioned(0.1)
    """Share of the pages that are not trained on, but scored."""
    lowercase: bool = versioned(True)
    dim: int = versioned(32)
    word_ngrams: int = versioned(2)
    """Longest run of words that is a feature: 2 uses words and pairs."""
    bucket: int = versioned(65536)
    """Rows of the table for hashed word n-grams; unused if word_ngrams is 1."""
    min_count: int = versioned(1)
    """Rarer words are not features of their own."""
    epochs: int = versioned(5)
    learning_rate: float = versioned(0.1)
    seed: int = versioned(0)

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def train_fasttext(config: TrainFastTextConfig) -> dict[str, Any]:
    """Train a classifier, and score it on the held-out pages.

    Returns documents, examples, train_examples and validation_examples (and each of these by label, as
    examples_<label>), accuracy with accuracy_lower95 and accuracy_upper95, majority_share (the accuracy of always
    predicting the most common label), precision_<label>, recall_<label>, words, bytes. Raises TrainingError.
    """
    _check(config)
    listed = {label: document_files(path) for label, path in config.examples.items()}
    counts = map_shards(sample_shard, _sample_shards(config, listed), output_path=config.output_path)
    folders = {label: _samples(config, label) for label in config.examples}
    examples = sorted(sampled_examples(folders, config.max_examples, config.validation_fraction))
    train = [example for example in examples if not example.held_out]
    held_out = [example for example in examples if example.held_out]
    _require_every_label(config, {"training": train, "validation": held_out})
    size = _fit(config, train)
    classifier = load_classifier(*_trained(config.output_path))
    result = {
        "documents": counts["examples_read"],
        **_by_label("examples", examples, config.examples),
        **_by_label("train_examples", train, config.examples),
        **_by_label("validation_examples", held_out, config.examples),
        **scores([(example.label, _best(classifier, example.line)) for example in held_out]),
        "words": len(classifier.model.get_words()),
        "bytes": size,
    }
    write_json(join(config.output_path, METRICS), result)
    log.info("accuracy %.4f on %d held-out examples", result["accuracy"], len(held_out))
    ignored = sum(len(documents.ignored) for documents in listed.values())
    return {**result, "ignored_files": ignored} if ignored else result


def _check(config: TrainFastTextConfig) -> None:
    check_fraction(config.validation_fraction)
    if len(config.examples) < 2 or not all(LABEL.fullmatch(label) for label in config.examples):
        raise TrainingError(
            f"The labels are {list(config.examples)!r}, expected two or more names of letters and digits. "
            'Pass examples={"positive": …, "negative": …}.'
        )
    for name, minimum in MINIMUMS.items():
        if getattr(config, name) < minimum:
            raise TrainingError(f"{name} is {getattr(config, name)!r}, expected at least {minimum}. Raise it.")
    for name in ("learning_rate", "validation_fraction"):
        if not getattr(config, name) > 0:
            raise TrainingError(f"{name} is {getattr(config, name)!r}, expected a number above 0. Raise it.")


def _sample_shards(config: TrainFastTextConfig, listed: Mapping[str, DocumentFiles]) -> list[FileShard]:
    sampling = SampleConfig(max_examples=config.max_examples, lowercase=config.lowercase, seed=config.seed)
    return [
        shard
        for label, documents in listed.items()
        for shard in document_shards(documents, _samples(config, label), sampling)
    ]


def _samples(config: TrainFastTextConfig, label: str) -> str:
    return join(config.output_path, SAMPLES, label)


def _require_every_label(config: TrainFastTextConfig, sides: Mapping[str, Sequence[Example]]) -> None:
    for side, examples in sides.items():
        for label, path in config.examples.items():
            if not any(example.label == label for example in examples):
                raise TrainingError(
                    f"The label {label!r} ({path!r}) has no example on the {side} side at validation_fraction="
                    f"{config.validation_fraction!r}, expected at least one. Pass more examples, or another fraction."
                )


def _fit(config: TrainFastTextConfig, examples: Sequence[Example]) -> int:
    """Train on the examples in their order; write model.bin and model.json. Returns the model's size in bytes."""
    import fasttext  # of the extra "curate"; imports numpy

    model_path = join(config.output_path, MODEL)
    with tempfile.TemporaryDirectory() as folder:
        text, local = f"{folder}/examples.txt", f"{folder}/{MODEL}"
        with open(text, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{LABEL_PREFIX}{example.label} {example.line}\n" for example in examples)
        with zeroed_memory():
            try:
                model = fasttext.train_supervised(text, thread=1, verbose=0, **_parameters(config))
            except RuntimeError as error:  # "Encountered NaN."
                raise TrainingError(
                    f"fastText diverged ({str(error).rstrip('.')}) at learning_rate={config.learning_rate!r}, "
                    "expected a finite loss. Lower the rate."
                ) from error
            model.save_model(local)
        with open(local, "rb") as trained, open_atomic(model_path) as out:
            shutil.copyfileobj(trained, out)
            size = trained.tell()
    about = {
        "format_version": FORMAT_VERSION,
        "lowercase": config.lowercase,
        "labels": sorted(config.examples),
        "model_sha256": sha256_of(model_path),
    }
    write_json(join(config.output_path, ABOUT), about)
    return size


def _parameters(config: TrainFastTextConfig) -> dict[str, Any]:
    """Return the parameters under fastText's names."""
    return {
        "dim": config.dim,
        "wordNgrams": config.word_ngrams,
        "bucket": config.bucket if config.word_ngrams > 1 else 0,
        "minCount": config.min_count,
        "epoch": config.epochs,
        "lr": config.learning_rate,
        "seed": config.seed,
    }


@contextmanager
def zeroed_memory() -> Iterator[None]:
    """Zero every allocation in the block.

    fastText from 0.9.3 on does not initialise its table, and with one thread it sets only a tenth of it to random
    numbers (`DenseMatrix::uniformThread`). The rest keeps old memory contents: a NaN in 7 of 8 trainings of a process.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        log.warning("this C library has no mallopt: fastText may read uninitialised memory, and model.bin may differ")
        yield
        return
    mallopt(M_PERTURB, 255)
    try:
        yield
    finally:
        mallopt(M_PERTURB, 0)


def _trained(output_path: str) -> tuple[str, str]:
    file, sha256 = find_model(output_path)
    return file.removesuffix(f"/{MODEL}"), sha256


def _by_label(name: str, examples: Sequence[Example], labels: Mapping[str, str]) -> dict[str, int]:
    by_label = Counter(example.label for example in examples)
    return {name: len(examples), **{f"{name}_{label}": by_label[label] for label in labels}}


def _best(classifier: Classifier, line: str) -> str:
    return max(classifier.labels, key=lambda label: classifier.score(line, label))


def scores(pairs: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Return accuracy with its bounds, majority_share, precision and recall of (true label, predicted label) pairs.

    `pairs` has at least one element.
    """
    true, predicted = Counter(t for t, _ in pairs), Counter(p for _, p in pairs)
    hits = Counter(t for t, p in pairs if t == p)
    right, total = sum(hits.values()), len(pairs)
    lower, upper = wilson(right, total)
    result = {
        "accuracy": right / total,
        "accuracy_lower95": lower,
        "accuracy_upper95": upper,
        "majority_share": max(true.values()) / total,
    }
    for label in sorted(true):
        result[f"precision_{label}"] = hits[label] / predicted[label] if predicted[label] else 0.0
        result[f"recall_{label}"] = hits[label] / true[label]
    return result


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a share (Wilson 1927), which is valid near 0 and 1 too."""
    share, z2 = successes / trials, Z95**2
    middle = share + z2 / (2 * trials)
    width = Z95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    return max((middle - width) / (1 + z2 / trials), 0.0), min((middle + width) / (1 + z2 / trials), 1.0)
