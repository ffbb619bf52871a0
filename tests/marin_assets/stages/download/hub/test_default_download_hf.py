"""The step of a download: what enters its version, and what it resolves to."""

from __future__ import annotations

from pathlib import Path

import pytest
from dataset_hub import DatasetHub
from hub_downloads import NAME, files_of
from hub_mirrors import COMMIT, write_mirror

from marin_assets.defaults import default_download_hf
from marin_assets.stages.download.hub.download_hf import DownloadHfConfig, download_hf
from marin_assets.step.graph import build_graph
from marin_assets.step.partitions.sets import dynamic
from marin_assets.step.resolve import resolve
from marin_assets.step.step import Step
from marin_assets.step.values import this_partition


def version_of(step: Step) -> str:
    return build_graph([step])[step].version.hash


def test_the_version_has_the_revision_and_the_choice_and_neither_mirror_nor_token() -> None:
    plain = version_of(default_download_hf("texts", NAME, "main"))
    assert version_of(default_download_hf("texts", NAME)) == plain
    assert (
        version_of(default_download_hf("texts", NAME, mirror="gs://b/hub", env=["HF_TOKEN"], max_requests_per_5_min=9))
        == plain
    )
    others = [
        default_download_hf("texts", "lab/other"),
        default_download_hf("texts", NAME, COMMIT),
        default_download_hf("texts", NAME, globs="data/*"),
        default_download_hf("texts", NAME, exclude=["x"]),
        default_download_hf("texts", NAME, split="train"),
        default_download_hf("texts", NAME, config_name="en"),
        default_download_hf("texts", NAME, parquet_export=True),
        default_download_hf("texts", NAME, repo_type="model"),
    ]
    assert len({plain, *map(version_of, others)}) == 1 + len(others)


def test_the_version_does_not_depend_on_how_the_files_are_fetched() -> None:
    def step(**fields: int) -> Step:
        return Step(name="raw/texts", fn=download_hf, config=DownloadHfConfig(dataset=NAME, **fields))  # type: ignore[arg-type]

    assert version_of(step()) == version_of(
        step(max_requests_per_5_min=9, ranges_in_flight=1, range_bytes=10, max_shard_files=1, max_shard_bytes=1)
    )


def test_each_partition_is_a_commit(hub: DatasetHub, tmp_path: Path) -> None:
    mirror = write_mirror(str(tmp_path / "mirror"), NAME, {"a.txt": b"a"})
    step = default_download_hf("texts", NAME, this_partition(), mirror=mirror, partitions=dynamic("texts"))
    graph = build_graph([step])
    config = resolve(graph[step].at(COMMIT), graph, lambda output: str(tmp_path / output.relative()), "/p")
    assert download_hf(config)["commit"] == COMMIT
    assert files_of(config.output_path) == {"a.txt": b"a"}


def test_the_token_is_named_and_never_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    step = default_download_hf("texts", NAME, env=["HF_TOKEN"])
    assert step.env == ("HF_TOKEN",)
    assert "hf_secret" not in repr(step)
