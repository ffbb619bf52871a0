"""The files of a config and a split of a dataset, as the library `datasets` has them.

First the card: the list `configs` in the YAML at the beginning of README.md, each with `config_name` and `data_files`.
Without it, names: `data/<split>-00000-of-00001.…`, then folders and then files with train, validation, test or another
word for them in the name, else all files, as the split "train".

In the parquet export, a branch that the hub computes, they are folders: `<config>/<split>/0000.parquet`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.stages.download.hub.listing import list_files, matcher
from marin_assets.stages.download.hub.repository import HubError, HubFile
from marin_assets.stages.download.hub.source import Source

EXPORT = "refs/convert/parquet"
CARD = "README.md"
MOST_CARD_BYTES = 20 * 2**20
"""Size limit of a README.md, which is read as a whole."""
WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
_BREAK = "-._ 0-9"
_IN_FOLDER = ("**/{word}/**", "**/{word}[{sep}]*/**", "**/*[{sep}]{word}/**", "**/*[{sep}]{word}[{sep}]*/**")
_IN_FILE = ("**/{word}[{sep}]*", "**/*[{sep}]{word}[{sep}]*")
_NUMBERED = re.compile(r"data/(\w+(?:\.\w+)*)-\d{5}-of-\d{5}[^/]*\.[^/]*")
_NO_DATA = {
    "README.md",
    "config.json",
    "dataset_info.json",
    "dataset_infos.json",
    "dummy_data.zip",
    "dataset_dict.json",
}
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)

Patterns = Mapping[str, Sequence[str]]
"""Globs by split."""


def export_files(
    source: Source, commit: str, config_name: str | None, split: str | None, *, allow_partial: bool
) -> list[HubFile]:
    """The files of the parquet export. Raises HubError for an export that is partial, unless it is allowed."""
    config = _literal(config_name) if config_name else "*"
    names = [_literal(split), f"partial-{_literal(split)}"] if split else ["*"]
    globs = [f"{config}/{name}/*.parquet" for name in names]
    is_chosen = matcher(globs)
    files = [file for file in list_files(source, commit, globs) if is_chosen(file.path)]
    if not files:
        raise HubError(
            f"The parquet export of {source.repository} has no config {config_name or 'any'!r} with a split "
            f"{split or 'any'!r}. {source.repository.page}/tree/refs%2Fconvert%2Fparquet lists them."
        )
    partial = next((file.path for file in files if file.path.split("/")[1].startswith("partial-")), None)
    if partial and not allow_partial:
        raise HubError(
            f"The parquet export of {source.repository} is partial: it has {partial!r}, the first 5 GB of a larger "
            "split. Download the files themselves, or pass allow_partial=True."
        )
    return files


def split_files(source: Source, commit: str, card: str, config_name: str | None, split: str | None) -> list[HubFile]:
    """The files of a config (None: the default one) and a split (None: all). Raises HubError for one that is none.

    `card` is the text of README.md, "" without one.
    """
    folder, patterns = _config(source, card, config_name)
    below = f"{folder}/" if folder else ""
    listed = ["**"] if patterns is None else [glob for globs in patterns.values() for glob in globs]
    globs = [_literal(below) + glob for glob in listed]
    files = {file.path.removeprefix(below): file for file in list_files(source, commit, globs)}
    paths = [path for path in files if f"{below}{path}" == files[path].path]
    patterns = patterns or by_names(paths)
    if split is not None and split not in patterns:
        raise HubError(
            f"{source.repository} has no split {split!r} in the config {config_name or 'default'!r}, expected one of "
            f"{sorted(patterns)!r}. Correct split."
        )
    globs = [glob for name, globs in patterns.items() if split in (None, name) for glob in globs]
    chosen = [files[path] for path in paths if any(_matches(path, glob) for glob in globs)]
    if not chosen:
        raise HubError(
            f"No file of {source.repository} is in the split {split or 'any'!r} of the config "
            f"{config_name or 'default'!r}, whose globs are {globs!r}. Choose files by globs instead."
        )
    return chosen


def by_names(paths: Sequence[str]) -> Patterns:
    """The splits by names of folders and files."""
    visible = [path for path in paths if not any(part.startswith((".", "__")) for part in path.split("/"))]
    numbered = {match[1] for path in visible if (match := _NUMBERED.fullmatch(path))}
    if numbered:
        digits = "[0-9]" * 5
        return {name: [f"data/{_literal(name)}-{digits}-of-{digits}*.*"] for name in sorted(numbered)}
    for forms in (_IN_FOLDER, _IN_FILE):
        globs = {
            name: [form.format(word=word, sep=_BREAK) for word in words for form in forms]
            for name, words in WORDS.items()
        }
        present = {
            name: own for name, own in globs.items() if any(_matches(path, glob) for glob in own for path in visible)
        }
        if present:
            return present
    return {"train": ["**"]}


def _config(source: Source, card: str, config_name: str | None) -> tuple[str, Patterns | None]:
    """The folder of a config, and its globs; None if names decide."""
    configs = _configs(source, card)
    if not configs:
        if config_name not in (None, "default"):
            raise HubError(
                f"The README.md of {source.repository} lists no configs, and the config is {config_name!r}, expected "
                "None. Correct config_name, or choose files by globs."
            )
        return "", None
    name = config_name or _default(configs)
    if name not in configs:
        raise HubError(
            f"{source.repository} has no config {name or 'default'!r}, expected one of {sorted(configs)!r}. Correct "
            "config_name."
        )
    config = configs[name]
    folder = str(config.get("data_dir") or "").strip("/").removeprefix("./")
    data_files = config.get("data_files")
    return folder, None if data_files is None else _patterns(source, data_files)


def _configs(source: Source, card: str) -> dict[str, dict[str, Any]]:
    import yaml

    front = _FRONT.match(card)
    try:
        head = yaml.safe_load(front[1]) if front else None
        rows = (head.get("configs") if isinstance(head, dict) else None) or []
        return {str(row["config_name"]): dict(row) for row in rows}
    except (yaml.YAMLError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise HubError(
            f"The configs in the README.md of {source.repository} cannot be read ({type(error).__name__}), expected "
            "YAML with config_name in each. Choose files by globs instead."
        ) from None


def _default(configs: Mapping[str, Mapping[str, Any]]) -> str:
    if len(configs) == 1:
        return next(iter(configs))
    marked = [name for name, config in configs.items() if name == "default" or config.get("default")]
    return marked[0] if len(marked) == 1 else ""


def _patterns(source: Source, data_files: Any) -> Patterns:
    """Globs by split of the field data_files: a text, texts, or a list of {split, path}."""
    if isinstance(data_files, str):
        return {"train": _texts(data_files)}
    if isinstance(data_files, dict):
        return {str(name): _texts(globs) for name, globs in data_files.items()}
    rows: list[Any] = data_files if isinstance(data_files, list) else [None]
    if all(isinstance(glob, str) for glob in rows):
        return {"train": _texts(rows)}
    if all(isinstance(row, dict) and {"split", "path"} <= set(row) for row in rows):
        return {str(row["split"]): _texts(row["path"]) for row in rows}
    raise HubError(
        f"The README.md of {source.repository} has the data_files {data_files!r:.200}, expected globs, or rows with "
        "split and path. Choose files by globs instead."
    )


def _texts(globs: Any) -> list[str]:
    return [str(glob).removeprefix("./") for glob in (globs if isinstance(globs, list) else [globs])]


def _matches(path: str, glob: str) -> bool:
    """Whether a glob means the file: hidden folders, "__…" and files about the data must be named."""
    names, parts = path.split("/"), glob.split("/")
    if names[-1] in _NO_DATA and parts[-1] not in _NO_DATA:
        return False
    special = sum(name.startswith("__") for name in names[:-1]), sum(name.startswith("__") for name in parts[:-1])
    return special[0] == special[1] and bool(matcher([glob])(path))


def _literal(text: str) -> str:
    """A glob for the text itself."""
    return re.sub(r"([*?[])", r"[\1]", text)
