"""A fastText classifier beside what was done to its texts, so that training and judging do the same.

    <folder>/model.bin     fastText's own format (Joulin et al. 2017, arXiv:1607.01759)
    <folder>/model.json    {"format_version", "lowercase", "labels", "model_sha256"}

A bare model file of someone else's (".bin", ".ftz") is given its texts as they are, but for line ends.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from marin_resources.storage.files import exists, read_json
from marin_resources.storage.filesystem import filesystem_of
from marin_resources.storage.paths import absolute, is_local, join

FORMAT_VERSION = 1
"""Of model.json and of `one_line`: another treatment of texts is another version."""
MODEL, ABOUT = "model.bin", "model.json"
LABEL_PREFIX = "__label__"
BARE_SUFFIXES = (".bin", ".ftz")
CHUNK_BYTES = 1024**2


class ClassifierError(ValueError):
    """A model that cannot be loaded, or does not know the label: one sentence."""


def one_line(text: str, *, lowercase: bool) -> str:
    """The text as fastText reads it: a line of words with single spaces between them.

    fastText takes "__label__…" for a label and "</s>" for the end of the line, wherever they stand; the text's own
    are broken up.
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
        """The probability of `label`, in millionths: 0, 0.000001, …, 1. A text that is empty to the model has 0."""
        line = one_line(text, lowercase=self.lowercase)
        for probability, name in self.model.f.predict(line + "\n", -1, 0.0, "strict"):
            if name == LABEL_PREFIX + label:
                return round(min(max(probability, 0.0), 1.0), 6)
        return 0.0


def find_model(path: str) -> tuple[str, str]:
    """(path of the model file, SHA-256 of it) for the folder of a trained model, or a bare model file.

    Raises ClassifierError if there is none, or it is not the one that model.json speaks of.
    """
    file = path if path.endswith(BARE_SUFFIXES) else join(path, MODEL)
    if not exists(file):
        raise ClassifierError(
            f"There is no model at {file!r}. Give the folder that train_fasttext made, or a fastText file (.bin, .ftz)."
        )
    digest = sha256_of(file)
    if file != path and read_json(join(path, ABOUT))["model_sha256"] != digest:
        raise ClassifierError(f"{file!r} is not the model that {ABOUT!r} beside it speaks of. Train it again.")
    return file, digest


@lru_cache(maxsize=1)
def load_classifier(path: str, sha256: str) -> Classifier:
    """The classifier of `find_model`'s path: once a process, as long as the file's SHA-256 is the same."""
    file = path if path.endswith(BARE_SUFFIXES) else join(path, MODEL)
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
    """fastText reads from a local disk alone."""
    import fasttext.FastText

    # fasttext.load_model would print a notice about its return type for each model.
    if is_local(file):
        return fasttext.FastText._FastText(model_path=absolute(file))
    fs, p = filesystem_of(file)
    with tempfile.TemporaryDirectory() as folder:
        local = f"{folder}/{file.rpartition('/')[2]}"
        fs.get_file(p, local)
        return fasttext.FastText._FastText(model_path=local)


def sha256_of(file: str) -> str:
    """SHA-256 of a file, in hex."""
    fs, p = filesystem_of(file)
    digest = hashlib.sha256()
    with fs.open(p, "rb") as opened:
        while chunk := opened.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
