"""Train a classifier, or a regression, of documents on an encoder.

In:  an encoder, the folder of a Hugging Face export; examples, a folder of documents for each label, or one folder of
     documents with a number in their metadata.
Out: the classifier (config.json, model.safetensors, tokenizer.json, encoder.json), `metrics.json`.

A linear head on the mean of the hidden states. With `LinearHead` the encoder stays as it is and reads each example
once, as FineWeb-Edu's classifier does (Penedo et al. 2024, arXiv:2406.17557); with `WholeEncoder` that head is the
beginning, and then all weights are trained (Kumar et al. 2022, arXiv:2202.10054). Examples and their split are those of
`train_fasttext`. The same examples give the same weights, on one kind of machine.

Training runs in the step's process, on its devices. Vectors and the state of a training are stored as it goes, so a
step that was killed continues. Memory: the examples, and their vectors or their tokens.
"""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from marin_assets.documents.position import check_fraction
from marin_assets.inference.encoder.classifier import (
    NUMBER,
    SHARE,
    EncoderClassifier,
    Head,
    classifier_of,
    local_folder,
    save_classifier,
)
from marin_assets.inference.encoder.encoder import (
    CONFIG,
    LONGEST_TOKEN,
    TOKENIZER,
    WEIGHTS,
    Encoder,
    load_encoder,
    mean_of,
)
from marin_assets.inference.fasttext_model import sha256_of
from marin_assets.stages.quality.agreement import agreement, scores
from marin_assets.stages.quality.agreement_page import PAGE, Judged, page_of_agreement
from marin_assets.stages.quality.finetune import Schedule, finetune
from marin_assets.stages.quality.fit_head import fit_head
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
from marin_resources.storage.files import exists, open_atomic, read_bytes, write_bytes, write_json
from marin_resources.storage.paths import join

KINDS = ("jax",)

if TYPE_CHECKING:
    import numpy as np

VECTORS, TRAINING = ".marin/vectors", ".marin/training"
METRICS = "metrics.json"
CHUNK = 1024
"""Examples whose vectors are stored together."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LinearHead:
    """Train a linear head on an encoder that stays as it is."""

    steps: int = versioned(400)
    """Steps of Adam, each on all examples."""
    learning_rate: float = versioned(0.05)


@dataclass(frozen=True, kw_only=True)
class WholeEncoder:
    """Train a linear head, and then all weights with it."""

    epochs: int = versioned(2)
    batch: int = versioned(32)
    learning_rate: float = versioned(5e-5)
    warmup: float = versioned(0.1)
    """Share of the steps in which the rate rises."""
    head: LinearHead = LinearHead()
    save_every_s: float = 60.0
    """Interval between two saves of the training's state."""


@dataclass(frozen=True, kw_only=True)
class TrainEncoderConfig:
    encoder_path: str
    """Folder with config.json, model.safetensors and tokenizer.json, of a family in `inference/encoder/families.py`:
    BERT, RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT, ELECTRA, ModernBERT, DeBERTa of versions 2 and 3, GTE."""
    examples: dict[str, str]
    """Label to documents, for example {"positive": …, "negative": …}. Of a regression, one name and its documents."""
    target: str | None = versioned(None)
    """The regression's: the key of the number in a document's metadata, such as "score" after `label_by_answers`."""
    output_path: str = THIS_OUTPUT_PATH
    training: LinearHead | WholeEncoder = LinearHead()
    max_tokens: int = versioned(256)
    """Tokens of a text that are read."""
    max_examples: int = versioned(200_000)
    """At most this many of each label."""
    validation_fraction: float = versioned(0.1)
    """Share of the pages that are not trained on, but scored."""
    seed: int = versioned(0)

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def train_encoder(config: TrainEncoderConfig) -> dict[str, Any]:
    """Train, and score the held-out pages.

    Returns documents, examples, train_examples and validation_examples (and each of these by label, as
    examples_<label>), bytes, and of labels what `train_fasttext` returns: accuracy with its bounds, majority_share,
    precision_<label>, recall_<label>; of a regression mean_error, mean_squared_error, deviation (of the true numbers)
    and correlation with correlation_lower95 and correlation_upper95. Raises TrainingError, EncoderError.
    """
    _check(config)
    sampling = SampleConfig(
        max_examples=config.max_examples,
        seed=config.seed,
        characters=config.max_tokens * LONGEST_TOKEN,
        target=config.target,
    )
    labels, form = list(config.examples), NUMBER if config.target is not None else SHARE
    with ExitStack() as stack:
        folder = local_folder(config.encoder_path, stack)
        encoder, _, _ = load_encoder(folder, config.max_tokens)  # raises before any shard runs
        counts, examples = sampled_examples(config.examples, config.output_path, sampling, config.validation_fraction)
        train, held_out = split(examples, config.examples, config.validation_fraction)
        encoder, head = _trained(config, encoder, train, labels, _digest(train, folder))
        size = save_classifier(config.output_path, folder, encoder, head, labels, form)
    classifier = classifier_of(encoder, head, labels, form)
    outputs = classifier.all_scores([example.line for example in held_out])
    judged = _judged(classifier, held_out, outputs)
    result = {
        **counts,
        **by_label("examples", examples, config.examples),
        **by_label("train_examples", train, config.examples),
        **by_label("validation_examples", held_out, config.examples),
        **(
            scores([(example.label, example.predicted) for example in judged]) if judged else _errors(held_out, outputs)
        ),
        "bytes": size,
    }
    write_json(join(config.output_path, METRICS), result)
    if judged:
        write_bytes(join(config.output_path, PAGE), page_of_agreement(judged))
    log.info("%s on %d held-out examples",
             ", ".join(f"{key} {result[key]:.4f}" for key in ("accuracy", "correlation") if key in result),
             len(held_out))  # fmt: skip
    return result


def _check(config: TrainEncoderConfig) -> None:
    check_fraction(config.validation_fraction)
    check_labels(config.examples)
    if (config.target is None) != (len(config.examples) > 1):
        raise TrainingError(
            f"The labels are {list(config.examples)!r} and target is {config.target!r}, expected two or more labels "
            "and no target, or for a regression one name and the key of a number in the documents' metadata."
        )
    check_parameters(config, {"max_examples": 1, "max_tokens": 3}, ("validation_fraction",))
    training = config.training
    if isinstance(training, WholeEncoder):
        check_parameters(training, {"epochs": 1, "batch": 1}, ("learning_rate", "save_every_s"))
        if not 0 <= training.warmup < 1:
            raise TrainingError(f"warmup is {training.warmup!r}, expected a share of the steps from 0 to below 1.")
    head = training.head if isinstance(training, WholeEncoder) else training
    check_parameters(head, {"steps": 1}, ("learning_rate",))


def _trained(
    config: TrainEncoderConfig, encoder: Encoder, train: Sequence[Example], labels: Sequence[str], digest: str
) -> tuple[Encoder, Head]:
    import numpy as np

    texts = [example.line for example in train]
    if config.target is None:
        targets = np.array([labels.index(example.label) for example in train], np.int32)
    else:
        targets = np.array([example.target for example in train], np.float32)
    training = config.training
    of_head = training.head if isinstance(training, WholeEncoder) else training
    vectors = _vectors(join(config.output_path, VECTORS), encoder, texts, digest)
    head = fit_head(vectors, targets, len(labels), steps=of_head.steps, learning_rate=of_head.learning_rate)
    if isinstance(training, WholeEncoder):
        schedule = Schedule(
            epochs=training.epochs,
            batch=training.batch,
            learning_rate=training.learning_rate,
            warmup=training.warmup,
            seed=config.seed,
            save_every_s=training.save_every_s,
        )
        state_path = join(config.output_path, TRAINING, f"{digest}.npz")
        encoder, head = finetune(encoder, head, texts, targets, schedule, state_path)
    finite = all(np.isfinite(np.asarray(array)).all() for array in (*head.values(), *encoder.arrays.values()))
    if not finite:
        raise TrainingError(
            f"The training diverged at learning_rate={training.learning_rate!r}, expected finite weights. Lower the "
            "rate."
        )
    return encoder, head


def _digest(examples: Sequence[Example], encoder_path: str) -> str:
    """Return a hash of the examples and of the encoder's files, in hex: work with others is not continued."""
    rows = [f"{example.rank} {example.label} {example.target}" for example in examples]
    rows += [sha256_of(join(encoder_path, name)) for name in (CONFIG, WEIGHTS, TOKENIZER)]
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]


def _vectors(path: str, encoder: Encoder, texts: Sequence[str], digest: str) -> np.ndarray:
    """Return the means of the hidden states of texts: (texts, width) in float32. Those that are stored are read."""
    import jax
    import numpy as np

    architecture = encoder.architecture
    compute = partial(jax.jit(partial(mean_of, architecture=architecture)), encoder.arrays)
    chunks = []
    for start in range(0, len(texts), CHUNK):
        file = join(path, f"{digest}-{start // CHUNK:06d}.npy")
        if exists(file):
            chunks.append(np.load(io.BytesIO(read_bytes(file))))
            continue
        chunk = texts[start : start + CHUNK]
        vectors = encoder.outputs(compute, chunk, architecture.width, done=start, of=len(texts))
        content = io.BytesIO()
        np.save(content, vectors)
        with open_atomic(file) as out:
            out.write(content.getbuffer())
        chunks.append(vectors)
    return np.concatenate(chunks)


def _judged(classifier: EncoderClassifier, held_out: Sequence[Example], outputs: Any) -> list[Judged]:
    """The held-out examples with the likeliest labels; empty for a regression."""
    if classifier.form == NUMBER:
        return []
    best = (classifier.labels[i] for i in outputs.argmax(axis=1))
    return [
        Judged(example.id, example.line, example.label, label) for example, label in zip(held_out, best, strict=True)
    ]


def _scores(judged: Sequence[Judged]) -> dict[str, float]:
    return scores([(example.label, example.predicted) for example in judged])


def _errors(held_out: Sequence[Example], outputs: Any) -> dict[str, float]:
    true = [example.target or 0.0 for example in held_out]
    return agreement(list(zip(true, outputs[:, 0].tolist(), strict=True)))
