"""A folder or bucket with the hub's paths gives the same output as the hub."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dataset_hub import DatasetHub
from hub_downloads import FILES, NAME, download, files_of
from hub_mirrors import COMMIT, write_mirror

from marin_assets.stages.download.hub.repository import HubError
from marin_resources.ray_tpu.shards.map_shards import ShardError
from marin_resources.storage.files import read_json, remove, write_bytes
from marin_resources.storage.paths import join


def test_a_mirror_on_any_store_gives_the_output_of_the_hub(hub: DatasetHub, any_prefix: str, tmp_path: Path) -> None:
    commit = hub.repos[f"datasets/{NAME}"].branches["main"]
    mirror = write_mirror(join(any_prefix, "mirror"), NAME, FILES, commit=commit)
    online = download(tmp_path / "online")
    hub.requests.clear()
    mirrored = download(tmp_path / "mirrored", mirror=mirror)
    assert files_of(tmp_path / "mirrored") == FILES
    assert (tmp_path / "mirrored/checksums.json").read_bytes() == (tmp_path / "online/checksums.json").read_bytes()
    assert {key: mirrored[key] for key in ("sha256", "commit", "files")} == {
        key: online[key] for key in ("sha256", "commit", "files")
    }
    assert hub.requests == []


def test_an_output_in_a_bucket_is_that_on_a_disk(hub: DatasetHub, any_prefix: str, tmp_path: Path) -> None:
    assert download(join(any_prefix, "raw"))["sha256"] == download(tmp_path / "disk")["sha256"]
    on_disk = json.loads((tmp_path / "disk/checksums.json").read_text())
    assert read_json(join(any_prefix, "raw/checksums.json")) == on_disk


def test_globs_and_ranges_work_on_a_mirror(tmp_path: Path) -> None:
    mirror = write_mirror(str(tmp_path / "mirror"), NAME, FILES)
    download(tmp_path / "output", mirror=mirror, include=("data/*.bin",), range_bytes=7000, revision=COMMIT)
    assert files_of(tmp_path / "output") == {name: FILES[name] for name in ("data/a.bin", "data/b.bin")}


def test_a_branch_of_a_mirror_is_resolved(tmp_path: Path) -> None:
    mirror = write_mirror(str(tmp_path / "mirror"), NAME, FILES, branch="dev/v2")
    assert download(tmp_path / "output", mirror=mirror, revision="dev/v2")["commit"] == COMMIT


def test_a_damaged_file_of_a_mirror_is_an_error(tmp_path: Path) -> None:
    mirror = write_mirror(str(tmp_path / "mirror"), NAME, FILES)
    write_bytes(join(mirror, "datasets", NAME, "resolve", COMMIT, "data/b.bin"), b"c" * 50_000)
    with pytest.raises(ShardError, match=r"The file 'data/b\.bin' of the dataset 'lab/texts' has the SHA-256"):
        download(tmp_path / "output", mirror=mirror)
    assert "data/b.bin" not in files_of(tmp_path / "output")


def test_a_mirror_that_is_not_complete_is_a_sentence(tmp_path: Path) -> None:
    mirror = write_mirror(str(tmp_path / "mirror"), NAME, FILES)
    place = join(mirror, "datasets", NAME, "resolve", COMMIT, "data/b.bin")
    write_bytes(place, b"short")
    with pytest.raises(ShardError, match="has 5 bytes, expected 50000 by the mirror's listing"):
        download(tmp_path / "output", mirror=mirror)
    remove(place)
    with pytest.raises(ShardError, match="does not exist, and the mirror's listing has it"):
        download(tmp_path / "output", mirror=mirror)
    with pytest.raises(HubError, match=r"has no revision 'v2' of the dataset 'lab/texts': 'api/datasets/lab/texts/rev"):
        download(tmp_path / "v2", mirror=mirror, revision="v2")
    with pytest.raises(HubError, match="has no listing of the commit 1111"):
        download(tmp_path / "other", mirror=mirror, revision="1" * 40)
