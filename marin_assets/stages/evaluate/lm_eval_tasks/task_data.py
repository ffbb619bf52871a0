"""The tasks of lm-eval and their data, from local folders; from the hub only with `use_hub`."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from marin_assets.inference.local_copy import copy_to_local
from marin_assets.stages.evaluate.lm_eval_config import EvaluationError, LmEvalConfig, eval_tasks
from marin_assets.stages.evaluate.scores import QUESTIONS, TEXTS
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

SUFFIXES = {".parquet": "parquet", ".jsonl": "json", ".json": "json"}
PART = re.compile(r"-\d{5}-of-\d{5}$")
DEFAULT = "default"

TASKS = Path(__file__).parents[1] / "tasks"
HERE = "$HERE"
"""In a YAML of `include_path`: the folder of the YAML, where its data may be."""
OLMES = "olmes"
"""Folder of the tasks of OLMES, whose names begin with it."""


@contextlib.contextmanager
def data_of_tasks(config: LmEvalConfig, folder: str) -> Iterator[None]:
    """Let tasks read their data from the mirror, if the config has one. A mirror in a bucket is copied to `folder`."""
    if config.mirror_path is None:
        yield
        return
    is_here = os.path.isdir(config.mirror_path)
    local = config.mirror_path if is_here else copy_to_local(config.mirror_path, folder)
    with _mirrored(local, config.mirror_path), _nltk_from(local, config.mirror_path):
        yield


@contextlib.contextmanager
def isolated_hugging_face(folder: str, use_hub: bool) -> Iterator[None]:
    """Make datasets and transformers store their files in `folder`, and work offline unless `use_hub`."""
    offline = "0" if use_hub else "1"
    cache = f"{folder}/datasets"
    env = {"HF_HOME": folder, "HF_DATASETS_CACHE": cache, "HF_HUB_OFFLINE": offline, "HF_DATASETS_OFFLINE": offline}
    before = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    import datasets  # 1.3 s to import
    import huggingface_hub

    # The libraries read these variables once, on import, and this process may have imported them before.
    settings: list[tuple[Any, str, Any]] = [
        (datasets.config, "HF_DATASETS_CACHE", Path(cache)),
        (datasets.config, "HF_HUB_OFFLINE", not use_hub),
        (huggingface_hub.constants, "HF_HUB_OFFLINE", not use_hub),
    ]
    old = [(where, name, getattr(where, name)) for where, name, _ in settings]
    bars = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        for where, name, value in settings:
            setattr(where, name, value)
        yield
    finally:
        for where, name, value in old:
            setattr(where, name, value)
        for name, text in before.items():
            os.environ.pop(name) if text is None else os.environ.update({name: text})
        if bars:
            datasets.enable_progress_bars()


def load_tasks(config: LmEvalConfig, folder: str) -> Any:
    """Return lm-eval's TaskManager of all task folders. Raises EvaluationError for a task that no folder has."""
    from lm_eval.tasks import TaskManager  # 1.3 s to import

    folders = [write_held_out_tasks(config.held_out_path, f"{folder}/held_out")] if config.held_out_path else []
    if config.include_path:
        folders.append(_with_places(copy_to_local(config.include_path, f"{folder}/include")))
    of_olmes = [task for task in eval_tasks(config) if task.name.startswith(f"{OLMES}_")]
    if of_olmes:
        folders.append(str(TASKS / OLMES))
    is_here = len(of_olmes) == len(config.tasks)
    with_defaults = (config.use_hub or config.mirror_path is not None) and not is_here
    manager = TaskManager(include_path=[*folders], include_defaults=with_defaults)
    for task in eval_tasks(config):
        if (name := task.name) not in manager.all_tasks:
            raise EvaluationError(
                f"The task is {name!r}, {expected_one_of(name, sorted(manager.all_tasks))} Pass "
                "held_out_path for the held-out tasks, include_path for a folder with the task's YAML, or mirror_path "
                "or use_hub=True for lm-eval's own."
            )
    return manager


def _with_places(folder: str) -> str:
    """Replace HERE in each YAML of a copied folder with the folder of that YAML. Returns `folder`."""
    for file in Path(folder).rglob("*.yaml"):
        text = file.read_text()
        if HERE in text:
            file.write_text(text.replace(HERE, str(file.parent)))
    return folder


def write_held_out_tasks(held_out_path: str, folder: str) -> str:
    """Write the held-out tasks to `folder`, with a local copy of their data beside them. Returns `folder`."""
    for task, name in ((QUESTIONS, "questions.jsonl"), (TEXTS, "texts.jsonl")):
        data = copy_to_local(join(held_out_path, name), f"{folder}/data")
        data_files = json.dumps({"data_files": {"validation": f"{data}/{name}"}})
        yaml = (TASKS / f"{task}.yaml").read_text()
        Path(folder, f"{task}.yaml").write_text(f"{yaml}dataset_kwargs: {data_files}\n")
    return folder


class MirrorError(MarinError, ValueError):
    """The mirror lacks the data of a task. The message names the data, and the searched folder."""


@contextlib.contextmanager
def _mirrored(folder: str, shown: str) -> Iterator[None]:
    """Read data sets from the local `folder` while the block runs, and nothing else. `shown` is its path for people.

    A data set of the hub is <owner>/<name>/<config>/<split>.parquet (or .jsonl, .json) there. A task of lm-eval names
    its data by path and config; one without a config is in `default`. A split may be several files:
    train-00000-of-00002.parquet.
    """
    import datasets

    of_the_hub = datasets.load_dataset

    def load(path: str, name: str | None = None, *_: Any, **settings: Any) -> Any:
        if path in ("json", "parquet", "csv", "text") or os.path.isabs(path):  # local files that a task names itself
            return of_the_hub(path, name, **settings)
        kind, files = files_of(folder, shown, path, name)
        dataset = of_the_hub(kind, data_files=files)
        return dataset if settings.get("split") is None else dataset[settings["split"]]

    datasets.load_dataset = load
    try:
        yield
    finally:
        datasets.load_dataset = of_the_hub


@contextlib.contextmanager
def _nltk_from(folder: str, shown: str) -> Iterator[None]:
    """Let nltk, which IFEval splits answers with, read its data from `nltk_data` in the local `folder`."""
    import nltk

    def refuse(resource: str, *_: Any, **__: Any) -> None:
        raise MirrorError(
            f"The mirror {shown!r} has no data of nltk called {resource!r}: expected nltk_data/tokenizers/{resource}. "
            f"Copy the folder there that nltk.download({resource!r}) writes, or leave the task out."
        )

    download, path = nltk.download, nltk.data.path
    nltk.download, nltk.data.path = refuse, [os.path.join(folder, "nltk_data"), *path]
    try:
        yield
    finally:
        nltk.download, nltk.data.path = download, path


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
