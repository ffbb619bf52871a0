"""Train a fastText classifier of documents (Joulin et al. 2017, arXiv:1607.01759).

In:  examples, a folder of documents for each label.
Out: `model.bin` (fastText's format) and `model.json` (labels, preprocessing of texts), `metrics.json`, `agreement.html`
     (held-out examples by true and predicted label, to read).

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
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

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
from marin_assets.stages.quality.agreement import scores
from marin_assets.stages.quality.agreement_page import PAGE, Judged, page_of_agreement
from marin_assets.stages.quality.sample import (
    Example,
    SampleConfig,
    TrainingError,
    by_label,
    check_labels,
    check_parameters,
    sampled_examples,
    split,
)
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import open_atomic, write_bytes, write_json
from marin_resources.storage.paths import join

KINDS = ("fasttext",)

METRICS = "metrics.json"
M_PERTURB = -6
"""Option of glibc's mallopt: fill allocated memory with the complement of the given byte."""
MINIMUMS = {"max_examples": 1, "dim": 1, "word_ngrams": 1, "bucket": 1, "min_count": 1, "epochs": 1}

log = logging.getLogger(__name__)


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
    predicting the most common label), precision_<label>, recall_<label>, rare_precision and rare_recall (those of the
    rarest label), each with its bounds, words, bytes. Raises TrainingError.
    """
    _check(config)
    sampling = SampleConfig(max_examples=config.max_examples, lowercase=config.lowercase, seed=config.seed)
    counts, examples = sampled_examples(config.examples, config.output_path, sampling, config.validation_fraction)
    train, held_out = split(examples, config.examples, config.validation_fraction)
    size = _fit(config, train)
    classifier = load_classifier(*_trained(config.output_path))
    judged = [Judged(example.id, example.line, example.label, _best(classifier, example.line)) for example in held_out]
    result = {
        **counts,
        **by_label("examples", examples, config.examples),
        **by_label("train_examples", train, config.examples),
        **by_label("validation_examples", held_out, config.examples),
        **scores([(example.label, example.predicted) for example in judged]),
        "words": len(classifier.model.get_words()),
        "bytes": size,
    }
    write_json(join(config.output_path, METRICS), result)
    write_bytes(join(config.output_path, PAGE), page_of_agreement(judged))
    log.info("accuracy %.4f on %d held-out examples", result["accuracy"], len(held_out))
    return result


def _check(config: TrainFastTextConfig) -> None:
    check_fraction(config.validation_fraction)
    if len(config.examples) < 2:
        raise TrainingError(
            f"The labels are {list(config.examples)!r}, expected two or more names of letters and digits. "
            'Pass examples={"positive": …, "negative": …}.'
        )
    check_labels(config.examples)
    check_parameters(config, MINIMUMS, ("learning_rate", "validation_fraction"))


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


def _best(classifier: Classifier, line: str) -> str:
    return max(classifier.labels, key=lambda label: classifier.score(line, label))
