"""Data sets of the Hugging Face hub from a folder: <mirror>/<owner>/<name>/<config>/<split>.parquet (or .jsonl, .json).

A task of lm-eval names its data by path and config; one without a config is in `default`. A split may be several files:
train-00000-of-00002.parquet. While `mirrored` lasts, `datasets.load_dataset` reads the folder, and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from marin_resources.errors import MarinError

SUFFIXES = {".parquet": "parquet", ".jsonl": "json", ".json": "json"}
PART = re.compile(r"-\d{5}-of-\d{5}$")
DEFAULT = "default"


class MirrorError(MarinError, ValueError):
    """The mirror lacks the data of a task. The message says which, and where they were looked for."""


@contextlib.contextmanager
def mirrored(folder: str, shown: str) -> Iterator[None]:
    """Read data sets from the local `folder` while the block runs. `shown` is its path for people."""
    import datasets

    of_the_hub = datasets.load_dataset

    def load(path: str, name: str | None = None, *_: Any, **settings: Any) -> Any:
        if path in ("json", "parquet", "csv", "text") or os.path.isabs(path):  # local files that a task names itself
            return of_the_hub(path, name, **settings)
        kind, files = files_of(folder, shown, path, name)
        found = of_the_hub(kind, data_files=files)
        return found if settings.get("split") is None else found[settings["split"]]

    datasets.load_dataset = load
    try:
        yield
    finally:
        datasets.load_dataset = of_the_hub


def files_of(folder: str, shown: str, path: str, name: str | None) -> tuple[str, dict[str, list[str]]]:
    """Return the kind of the files of a data set, and by split their paths. Raises MirrorError."""
    config = Path(folder, path, name or DEFAULT)
    files = sorted(file for file in config.glob("*") if file.suffix in SUFFIXES) if config.is_dir() else []
    if not files:
        has = sorted(file.name for file in Path(folder, path).glob("*") if file.is_dir())
        raise MirrorError(
            f"The mirror {shown!r} has no data of {path!r} (config {name or DEFAULT!r}): expected "
            f"{path}/{name or DEFAULT}/<split>.parquet or .jsonl"
            + (f"; of it there is {', '.join(has)}" if has else "")
            + ". Copy them there, or leave the task out."
        )
    kinds = {SUFFIXES[file.suffix] for file in files}
    if len(kinds) > 1:
        raise MirrorError(
            f"The mirror {shown!r} has files of two formats in {path}/{config.name}, expected one format."
        )
    by_split: dict[str, list[str]] = {}
    for file in files:
        by_split.setdefault(PART.sub("", file.stem), []).append(str(file))
    return kinds.pop(), by_split
