"""A fastText classifier, stored beside the preprocessing of its texts, so that training and scoring preprocess alike.

    <folder>/model.bin     fastText's own format (Joulin et al. 2017, arXiv:1607.01759)
    <folder>/model.json    {"format_version", "lowercase", "labels", "model_sha256"}

A bare third-party model file (".bin", ".ftz") gets its texts unchanged, except for line ends.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from marin_resources.storage.files import exists, read_json
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import absolute, is_local, join
from marin_resources.types.errors import MarinError

FORMAT_VERSION = 1
"""Version of model.json and of `one_line`: a change of the preprocessing raises it."""
MODEL, ABOUT = "model.bin", "model.json"
LABEL_PREFIX = "__label__"
BARE_SUFFIXES = (".bin", ".ftz")
CHUNK_BYTES = 1024**2


class ClassifierError(MarinError, ValueError):
    """The model cannot be loaded, or does not know the label."""


def one_line(text: str, *, lowercase: bool) -> str:
    """Return the text as fastText reads it: one line of words with single spaces between them.

    fastText takes "__label__…" for a label and "</s>" for the end of the line, wherever they occur; occurrences in the
    text are broken up.
    """
    line = " ".join(text.replace("\0", " ").split())
    line = line.lower() if lowercase else line
    if LABEL_PREFIX in line or "</s>" in line:
        line = line.replace(LABEL_PREFIX, "__label _").replace("</s>", "< /s>")
    return line


@dataclass(frozen=True)
class Classifier:
    model: Any
    lowercase: bool
    labels: tuple[str, ...]

    def score(self, text: str, label: str) -> float:
        """Return the probability of `label`, in millionths: 0, 0.000001, …, 1. A text without words has 0."""
        line = one_line(text, lowercase=self.lowercase)
        for probability, name in self.model.f.predict(line + "\n", -1, 0.0, "strict"):
            if name == LABEL_PREFIX + label:
                return round(min(max(probability, 0.0), 1.0), 6)
        return 0.0

    def best(self, text: str, count: int) -> list[tuple[str, float]]:
        """Return at most `count` labels with their probabilities, the highest first; none for a text without words."""
        line = one_line(text, lowercase=self.lowercase)
        if not line:
            return []
        pairs = self.model.f.predict(line + "\n", count, 0.0, "strict")
        return [(name.removeprefix(LABEL_PREFIX), round(min(max(value, 0.0), 1.0), 6)) for value, name in pairs]


def find_model(path: str) -> tuple[str, str]:
    """Return (path of the model file, its SHA-256) for the folder of a trained model, or a bare model file.

    Raises ClassifierError if no model exists, or its SHA-256 is not the one in model.json.
    """
    file = _model_file(path)
    if not exists(file):
        raise ClassifierError(
            f"No model exists at {file!r}. Pass the output of train_fasttext, or a fastText file (.bin, .ftz)."
        )
    digest = sha256_of(file)
    if file != path and read_json(join(path, ABOUT))["model_sha256"] != digest:
        raise ClassifierError(f"{file!r} is not the model that {ABOUT!r} beside it describes. Train it again.")
    return file, digest


def _model_file(path: str) -> str:
    return path if path.endswith(BARE_SUFFIXES) else join(path, MODEL)


@lru_cache(maxsize=1)
def load_classifier(path: str, sha256: str) -> Classifier:
    """Load the classifier at `path`, once a process while the file's SHA-256 stays the same (see `find_model`)."""
    file = _model_file(path)
    bare = {"format_version": FORMAT_VERSION, "lowercase": False}
    about: dict[str, Any] = read_json(join(path, ABOUT)) if file != path else bare
    if about["format_version"] != FORMAT_VERSION:
        raise ClassifierError(
            f"The model at {path!r} has format_version {about['format_version']!r}, expected {FORMAT_VERSION}. "
            "Train it again."
        )
    model = _load(file)
    labels = tuple(sorted(label.removeprefix(LABEL_PREFIX) for label in model.get_labels()))
    return Classifier(model, about["lowercase"], labels)


def _load(file: str) -> Any:
    """Load a model file, through a local copy if needed: fastText reads local files only."""
    import fasttext.FastText  # of the extra "curate"; imports numpy

    # fasttext.load_model would print a notice about its return type for each model.
    if is_local(file):
        return fasttext.FastText._FastText(model_path=absolute(file))
    fs, p = filesystem_of(file)
    with tempfile.TemporaryDirectory() as folder:
        local = f"{folder}/{file.rpartition('/')[2]}"
        fs.get_file(p, local)
        return fasttext.FastText._FastText(model_path=local)


def sha256_of(file: str) -> str:
    """Return the SHA-256 of a file, in hex."""
    fs, p = filesystem_of(file)
    digest = hashlib.sha256()
    with fs.open(p, "rb") as opened:
        while chunk := opened.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
