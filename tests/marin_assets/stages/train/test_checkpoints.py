from __future__ import annotations

from pathlib import Path

import pytest

from marin_assets.stages.train.checkpoints import (
    last_checkpoint_step,
    outdated,
    remove_checkpoint,
    remove_unfinished,
)
from marin_resources.storage.files import stored_files, write_bytes, write_json
from marin_resources.storage.paths import join


def write_checkpoint(path: str, step: int, *, temporary: bool = False, complete: bool = True) -> None:
    write_bytes(join(path, f"step-{step}/manifest.ocdbt"), b"x")
    write_bytes(join(path, f"step-{step}/d/0123"), b"x")
    if complete:
        write_json(join(path, f"step-{step}/metadata.json"), {"step": step, "is_temporary": temporary})


def folders_of(path: str) -> set[str]:
    return {file.name.partition("/")[0] for file in stored_files(path)}


def test_the_last_checkpoint_is_the_newest_complete_one(disk_or_gcs_prefix: str) -> None:
    path = join(disk_or_gcs_prefix, "checkpoints")
    assert last_checkpoint_step(path) is None
    for step in (2, 10):
        write_checkpoint(path, step)
    write_checkpoint(path, 20, complete=False)
    assert last_checkpoint_step(path) == 10


def test_only_incomplete_checkpoints_of_a_killed_run_are_removed(disk_or_gcs_prefix: str) -> None:
    path = join(disk_or_gcs_prefix, "checkpoints")
    assert remove_unfinished(path) == []
    write_checkpoint(path, 10)
    write_checkpoint(path, 15, temporary=True)
    write_checkpoint(path, 20, complete=False)
    write_bytes(join(path, "eval_metrics.jsonl"), b"{}\n")
    assert remove_unfinished(path) == ["step-20"]
    assert folders_of(path) == {"step-10", "step-15", "eval_metrics.jsonl"}


def test_a_folder_that_a_killed_removal_has_emptied_is_removed(tmp_path: Path) -> None:
    write_checkpoint(str(tmp_path), 10)
    (tmp_path / "step-5/d").mkdir(parents=True)
    assert remove_unfinished(str(tmp_path)) == ["step-5"]
    assert [path.name for path in tmp_path.iterdir()] == ["step-10"]


@pytest.mark.parametrize("half", [b"", b'{"step": 2'])
def test_a_checkpoint_whose_metadata_is_half_written_is_incomplete(disk_or_gcs_prefix: str, half: bytes) -> None:
    path = join(disk_or_gcs_prefix, "checkpoints")
    write_checkpoint(path, 10)
    write_checkpoint(path, 20)
    write_bytes(join(path, "step-20/metadata.json"), half)
    assert last_checkpoint_step(path) == 10
    assert remove_unfinished(path) == ["step-20"]
    assert folders_of(path) == {"step-10"}


def test_at_the_end_no_temporary_checkpoint_is_left(disk_or_gcs_prefix: str) -> None:
    path = join(disk_or_gcs_prefix, "checkpoints")
    write_checkpoint(path, 10)
    write_checkpoint(path, 15, temporary=True)
    assert remove_unfinished(path, also_temporary=True) == ["step-15"]
    assert folders_of(path) == {"step-10"}


def test_the_last_checkpoints_and_every_nth_are_kept(disk_or_gcs_prefix: str) -> None:
    path = join(disk_or_gcs_prefix, "checkpoints")
    for step in range(20, 140, 20):
        write_checkpoint(path, step)
    write_checkpoint(path, 10, temporary=True)
    write_checkpoint(path, 140, complete=False)
    found = outdated(path, keep_last=2, keep_every=60)
    assert found == [join(path, f"step-{step}") for step in (20, 40, 80)]
    assert outdated(path, keep_last=9, keep_every=None) == []
    for each in found:
        remove_checkpoint(each)
        remove_checkpoint(each)  # twice, as two threads may
    assert folders_of(path) == {"step-10", "step-60", "step-100", "step-120", "step-140"}


def test_a_checkpoint_whose_removal_was_interrupted_is_not_gone_on_from(
    disk_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = join(disk_prefix, "checkpoints")
    write_checkpoint(path, 20)

    def killed(path: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("marin_assets.stages.train.checkpoints.remove_folder", killed)
    with pytest.raises(KeyboardInterrupt):
        remove_checkpoint(join(path, "step-20"))
    assert folders_of(path) == {"step-20"}
    assert last_checkpoint_step(path) is None
