"""A classifier of texts: an encoder and a head on it, in the folder of a Hugging Face export.

    config.json, model.safetensors, tokenizer.json
    encoder.json    of `train_encoder` only: {"format_version", "labels", "form", "max_tokens", "weights_sha256"}

A folder of `train_encoder` has a linear head on the mean of the hidden states, "marin_head" in the file of weights. Any
other folder has a sequence classifier of Hugging Face, whose head is that of its architecture.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypedDict

from marin_assets.inference.encoder.architecture import Architecture, Arrays
from marin_assets.inference.encoder.encoder import CONFIG, TOKENIZER, WEIGHTS, Encoder, load_encoder, mean_of
from marin_assets.inference.encoder.errors import EncoderError
from marin_assets.inference.encoder.head import head_logits, head_of
from marin_assets.inference.encoder.parameters import scatter
from marin_assets.inference.fasttext_model import sha256_of
from marin_assets.inference.local_copy import copy_to_local
from marin_resources.storage.files import exists, open_atomic, read_json, write_json
from marin_resources.storage.paths import absolute, is_local, join

if TYPE_CHECKING:
    import numpy as np

FORMAT_VERSION = 1
"""Version of encoder.json, and of how a text becomes a score: a change of either raises it."""
ABOUT = "encoder.json"
HEAD = "marin_head"
SHARE, EACH, NUMBER = "share", "each", "number"
"""Forms of a score: the probability of one label of several, that of a label beside others, and a number."""


class Head(TypedDict):
    """A linear layer on the mean of the hidden states."""

    weight: Any
    """(labels, width)."""
    bias: Any
    """(labels,)."""


@dataclass(frozen=True, eq=False)
class EncoderClassifier:
    encoder: Encoder
    labels: tuple[str, ...]
    form: str
    outputs: Any
    """Tokens and mask of a batch -> its scores, (rows, labels)."""

    def scores(self, texts: Sequence[str], label: str) -> list[float]:
        """Return the scores of a label, in millionths. That of a text does not depend on the others."""
        import numpy as np

        outputs = self.encoder.outputs(self.outputs, texts, len(self.labels))
        return np.round(outputs[:, self.labels.index(label)].astype(np.float64), 6).tolist()

    def all_scores(self, texts: Sequence[str]) -> np.ndarray:
        """Return the scores of all labels: (texts, labels) in float32."""
        return self.encoder.outputs(self.outputs, texts, len(self.labels))


def find_classifier(path: str) -> str:
    """Return the SHA-256 of the weights in a folder. Raises EncoderError if none exist, or not those of
    encoder.json."""
    weights = join(path, WEIGHTS)
    if not exists(weights):
        raise EncoderError(
            f"No encoder exists at {path!r}, which has no {WEIGHTS!r}. Pass the output of train_encoder, or the folder "
            "of a sequence classifier."
        )
    digest = sha256_of(weights)
    if exists(join(path, ABOUT)) and read_json(join(path, ABOUT))["weights_sha256"] != digest:
        raise EncoderError(f"{weights!r} are not the weights that {ABOUT!r} beside them describes. Train it again.")
    return digest


@lru_cache(maxsize=1)
def load_classifier(path: str, weights_sha256: str, max_tokens: int | None = None) -> EncoderClassifier:
    """Load the classifier in a folder, once a process while its weights stay the same (see `find_classifier`).

    `max_tokens`: those of its training if None, or else all that the encoder reads, at most 512. Raises EncoderError.
    """
    about = read_json(join(path, ABOUT)) if exists(join(path, ABOUT)) else None
    if about is not None and about["format_version"] != FORMAT_VERSION:
        raise EncoderError(
            f"The classifier at {path!r} has format_version {about['format_version']!r}, expected {FORMAT_VERSION}. "
            "Train it again."
        )
    trained = None if about is None else about["max_tokens"]
    with ExitStack() as stack:
        folder = local_folder(path, stack)
        encoder, config, tensors = load_encoder(folder, max_tokens if max_tokens is not None else trained)
    if about is not None:
        head = Head(weight=tensors[f"{HEAD}.weight"], bias=tensors[f"{HEAD}.bias"])
        return classifier_of(encoder, head, about["labels"], about["form"])
    labels, form = _labels_of(config, path), _form_of(config)
    own = head_of(tensors, encoder.architecture, labels, path)
    return _classifier(encoder, head_logits, own, labels, form)


def classifier_of(encoder: Encoder, head: Head, labels: Sequence[str], form: str) -> EncoderClassifier:
    """Return the classifier of an encoder and a head that was trained on it."""
    return _classifier(encoder, _on_mean, head, labels, form)


def _classifier(encoder: Encoder, apply: Any, head: Any, labels: Sequence[str], form: str) -> EncoderClassifier:
    import jax

    architecture = encoder.architecture

    def outputs(arrays: Arrays, head: Any, tokens: Any, mask: Any) -> Any:
        logits = apply(arrays, head, tokens, mask, architecture)
        return {SHARE: jax.nn.softmax, EACH: jax.nn.sigmoid, NUMBER: lambda logits: logits}[form](logits)

    compiled = partial(jax.jit(outputs), encoder.arrays, encoder.on_each_device(head))
    return EncoderClassifier(encoder, tuple(labels), form, compiled)


def _on_mean(arrays: Arrays, head: Any, tokens: Any, mask: Any, architecture: Architecture) -> Any:
    return mean_of(arrays, tokens, mask, architecture) @ head["weight"].T + head["bias"]


def save_classifier(
    path: str, encoder_path: str, encoder: Encoder, head: Head, labels: Sequence[str], form: str
) -> int:
    """Write a classifier into a folder. Returns the bytes of its weights.

    `encoder_path` is a local folder: config.json and tokenizer.json are its files.
    """
    import numpy as np
    from safetensors.numpy import save

    tensors = scatter(encoder.arrays, encoder.architecture)
    tensors |= {f"{HEAD}.{name}": np.asarray(array, np.float32) for name, array in head.items()}
    weights = save(tensors)
    for name in (CONFIG, TOKENIZER):
        with open(f"{encoder_path}/{name}", "rb") as file, open_atomic(join(path, name)) as out:
            out.write(file.read())
    with open_atomic(join(path, WEIGHTS)) as out:
        out.write(weights)
    about = {
        "format_version": FORMAT_VERSION,
        "labels": list(labels),
        "form": form,
        "max_tokens": encoder.max_tokens,
        "weights_sha256": sha256_of(join(path, WEIGHTS)),
    }
    write_json(join(path, ABOUT), about)
    return len(weights)


def local_folder(path: str, stack: ExitStack) -> str:
    """Return a folder on this machine's disk with the files at `path`: itself, or a copy until the stack ends."""
    if is_local(path):
        return absolute(path)
    return copy_to_local(path, stack.enter_context(tempfile.TemporaryDirectory(prefix="encoder-")))


def _labels_of(config: Mapping[str, Any], path: str) -> list[str]:
    names = config.get("id2label") or {str(i): f"LABEL_{i}" for i in range(config.get("num_labels", 2))}
    try:
        return [str(names[key]) for key in sorted(names, key=int)]
    except (ValueError, AttributeError) as error:
        raise EncoderError(
            f"config.json in {path!r} has id2label={names!r:.80}, expected numbers with names."
        ) from error


def _form_of(config: Mapping[str, Any]) -> str:
    outputs = len(config.get("id2label") or {}) or config.get("num_labels", 2)
    if config.get("problem_type") == "regression" or (outputs == 1 and not config.get("problem_type")):
        return NUMBER
    return EACH if config.get("problem_type") == "multi_label_classification" else SHARE
