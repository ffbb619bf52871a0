"""A config and a split choose the files that the library `datasets` chooses."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from dataset_hub import DatasetHub
from hub_downloads import NAME, download, files_of

from marin_assets.stages.download.hub.repository import HubError
from marin_assets.stages.download.hub.splits import by_names

CARD = b"""---
license: mit
configs:
- config_name: en
  default: true
  data_files:
  - split: train
    path: ["en/part-*.txt", "more/en.txt"]
  - split: test
    path: en/held out.txt
- config_name: de
  data_files: "de/*.txt"
- config_name: named
  data_dir: by names
---
# Texts
"""
PATHS = ("en/part-0.txt", "en/part-1.txt", "more/en.txt", "en/held out.txt", "de/a.txt", "de/b.txt",
         "by names/train-0.txt", "by names/dev/x.txt", "other.txt")  # fmt: skip


def add(hub: DatasetHub, *paths: str, card: bytes | None = None, branch: str = "main") -> None:
    files = {path: path.encode() for path in paths}
    hub.add(NAME, files if card is None else {**files, "README.md": card}, branch=branch)


@pytest.mark.parametrize(
    ("fields", "chosen"),
    [
        ({"split": "train"}, {"en/part-0.txt", "en/part-1.txt", "more/en.txt"}),
        ({"config_name": "en", "split": "test"}, {"en/held out.txt"}),
        ({"config_name": "en"}, {"en/part-0.txt", "en/part-1.txt", "more/en.txt", "en/held out.txt"}),
        ({"config_name": "de", "split": "train"}, {"de/a.txt", "de/b.txt"}),
        ({"config_name": "de", "include": ("**/b.txt",)}, {"de/b.txt"}),
        ({"config_name": "named", "split": "validation"}, {"by names/dev/x.txt"}),
    ],
)
def test_the_card_of_a_dataset_has_its_configs_and_splits(
    hub: DatasetHub, output: Path, fields: dict[str, Any], chosen: set[str]
) -> None:
    add(hub, *PATHS, card=CARD)
    download(output, **fields)
    assert set(files_of(output)) == chosen


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"config_name": "fr"}, r"has no config 'fr', expected one of \['de', 'en', 'named'\]"),
        (
            {"config_name": "en", "split": "dev"},
            r"has no split 'dev' in the config 'en', expected one of \['test",
        ),
    ],
)
def test_a_config_or_split_that_does_not_exist_names_the_others(
    hub: DatasetHub, output: Path, fields: dict[str, str], sentence: str
) -> None:
    add(hub, *PATHS, card=CARD)
    with pytest.raises(HubError, match=sentence):
        download(output, **fields)


@pytest.mark.parametrize(
    "card", [b"---\nconfigs: 7\n---\n", b"---\nconfigs: [{a: b}]\n---\n", b"---\nconfigs: [\n---\n"]
)
def test_a_card_that_cannot_be_read_is_a_sentence(hub: DatasetHub, output: Path, card: bytes) -> None:
    add(hub, *PATHS, card=card)
    with pytest.raises(HubError, match=r"The configs in the README\.md of the dataset 'lab/texts' cannot be read"):
        download(output, split="train")


TREES = [
    ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet", "data/odd-00000-of-00001.parquet"],
    ["train/a.txt", "train/deep/b.txt", "valid/a.txt", "README.md"],
    ["en_train/a.txt", "fr-test 2/a.txt", "x/evaluation/y.txt"],
    ["train.csv", "my_dev_set.csv", "testing-1.csv", "notes.txt"],
    ["training.csv", "sub/eval.csv", "contest.csv", "brain.csv"],
    ["a.txt", "b/c.txt", "config.json", "__pycache__/x.txt"],
    ["Train.txt", "latest/a.txt", "data/validation/0.txt"],
]


@pytest.mark.parametrize("paths", TREES, ids=lambda paths: paths[0])
def test_names_decide_as_in_the_library(paths: list[str], tmp_path: Path, hub: DatasetHub, output: Path) -> None:
    datasets = pytest.importorskip("datasets")
    for path in paths:
        (tmp_path / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / path).write_text(path)
    base = str(tmp_path / "tree")
    patterns = datasets.data_files.get_data_patterns(base)
    theirs = {
        str(split): {str(PurePosixPath(file).relative_to(base)) for file in files}
        for split, files in datasets.data_files.DataFilesDict.from_patterns(patterns, base).items()
    }
    add(hub, *paths)
    assert set(by_names(paths)) == set(theirs)
    for split, chosen in theirs.items():
        download(output / split, split=split)
        assert set(files_of(output / split)) == chosen


EXPORT = ["default/train/0000.parquet", "default/train/0001.parquet", "default/test/0000.parquet",
          "en/partial-train/0000.parquet"]  # fmt: skip


def test_the_parquet_export_is_chosen_by_config_and_split(hub: DatasetHub, output: Path) -> None:
    add(hub, *EXPORT, branch="refs/convert/parquet")
    result = download(output, parquet_export=True, config_name="default", split="train")
    assert set(files_of(output)) == set(EXPORT[:2])
    assert result["commit"] == hub.repos[f"datasets/{NAME}"].branches["refs/convert/parquet"]


def test_an_export_that_is_partial_is_refused_unless_it_is_allowed(hub: DatasetHub, output: Path) -> None:
    add(hub, *EXPORT, branch="refs/convert/parquet")
    with pytest.raises(HubError, match=r"is partial: it has 'en/partial-train/0000\.parquet', the first 5 GB"):
        download(output, parquet_export=True, config_name="en", split="train")
    download(output / "2", parquet_export=True, config_name="en", split="train", allow_partial=True)
    assert set(files_of(output / "2")) == {EXPORT[3]}


def test_an_export_without_the_config_is_a_sentence(hub: DatasetHub, output: Path) -> None:
    add(hub, *EXPORT, branch="refs/convert/parquet")
    with pytest.raises(HubError, match="The parquet export of the dataset 'lab/texts' has no config 'fr' with a split"):
        download(output, parquet_export=True, config_name="fr", split="train")
