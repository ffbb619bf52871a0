from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedule import mostly_on_a_disk

from marin_resources.ray_tpu.shards import notes as shard_notes
from marin_resources.ray_tpu.shards.file_shards import MAX_GROUP_BYTES, MAX_SMALL_GROUPS, FileShard, file_shards
from marin_resources.ray_tpu.shards.map_shards import Counts, ShardError, map_shards
from marin_resources.ray_tpu.shards.notes import ShardLostError, ShardNotes
from marin_resources.storage.files import (
    StoredFile,
    read_from,
    read_json,
    remove,
    sizes_below,
    stored_files,
    write_bytes,
)
from marin_resources.storage.paths import join

STAGE = '''
"""Upper case, file by file; `calls` tells which files were worked on."""
import os
from dataclasses import dataclass
from pathlib import Path
from marin_resources.storage.files import read_from, remove, write_bytes

@dataclass(frozen=True)
class Ask:
    calls: str
    suffix: str = "!"
    lost: int = 0
    poison: str = ""
    forget: bool = False

def die_writing_once(shard):
    folder, _, name = shard.outputs[0].rpartition("/")
    marker = Path(shard.config.calls + "." + name)
    if not marker.exists():
        marker.touch()
        write_bytes(f"{folder}/.{name}.0123abcd.tmp", b"half")
        write_bytes(shard.outputs[0], b"what nobody has noted")
        os._exit(9)
    return shout(shard)

def rob_the_first(shard):
    folder, _, name = shard.outputs[0].rpartition("/")
    if name == "b.txt":
        remove(f"{folder}/a.txt")
    return shout(shard)

def shout(shard):
    words = 0
    for file, output in zip(shard.inputs, shard.outputs, strict=True):
        with open(shard.config.calls, "a") as calls:
            calls.write(file.name + "\\n")
        if file.name == shard.config.poison:
            raise ValueError("this one is bad")
        text = read_from(file.path, 0).decode()
        words += len(text.split())
        if not shard.config.forget:
            write_bytes(output, (text.upper() + shard.config.suffix).encode(), replace=False)
    return {"documents": words, "kept": words - shard.config.lost, "rejected": 0}
'''


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    name = f"files_of_{abs(hash(request.node.nodeid))}"
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / f"{name}.py").write_text(STAGE)
    monkeypatch.syspath_prepend(tmp_path / "code")
    yield importlib.import_module(name)
    sys.modules.pop(name, None)


@dataclass
class Folder:
    """Input files, an output, and who was worked on since the last question."""

    prefix: str
    local: Path
    stage: ModuleType

    def write(self, name: str, text: str) -> None:
        write_bytes(join(self.prefix, name), text.encode())

    def run(self, fn: str = "shout", **changes: object) -> Counts:
        files, out = stored_files(join(self.prefix, "in")), join(self.prefix, "out")
        ask = self.stage.Ask(calls=str(self.local / "calls"), **changes)
        outputs = [join(out, file.name) for file in files]
        return map_shards(getattr(self.stage, fn), file_shards(files, outputs, config=ask), output_path=out)

    def worked_on(self) -> list[str]:
        calls = self.local / "calls"
        lines = sorted(calls.read_text().split()) if calls.exists() else []
        calls.write_text("")
        return lines

    def outputs(self) -> dict[str, str]:
        return {file.name: read_from(file.path, 0).decode() for file in stored_files(join(self.prefix, "out"))}

    def notes(self) -> list[dict[str, Any]]:
        folder = join(self.prefix, "out/.marin/shards/shout")
        return [read_json(join(folder, name)) for name in noted(folder)]

    def temporaries(self) -> list[str]:
        return [name for name in sizes_below(join(self.prefix, "out")) if name.endswith(".tmp")]


@pytest.fixture
def folder(any_prefix: str, tmp_path: Path, stage: ModuleType) -> Folder:
    folder = Folder(any_prefix, tmp_path, stage)
    for name, text in {"a.txt": "one two", "b.txt": "three", "deep/c.txt": "four five six"}.items():
        folder.write(f"in/{name}", text)
    return folder


def test_every_file_has_its_output_and_the_counts_are_added_up(where: str, folder: Folder) -> None:
    assert folder.run() == {"documents": 6, "kept": 6, "rejected": 0}
    assert folder.outputs() == {"a.txt": "ONE TWO!", "b.txt": "THREE!", "deep/c.txt": "FOUR FIVE SIX!"}


def test_a_finished_shard_whose_output_somebody_removed_meanwhile_is_missed(folder: Folder) -> None:
    with pytest.raises(ShardLostError, match=r"'a.txt' below .* is missing, and its shard wrote 8 bytes"):
        folder.run("rob_the_first")
    folder.run()
    assert folder.outputs()["a.txt"] == "ONE TWO!"


def test_a_finished_shard_is_not_worked_on_again(where: str, folder: Folder) -> None:
    first = folder.run()
    assert folder.worked_on() == ["a.txt", "b.txt", "deep/c.txt"]
    assert folder.run() == first
    assert folder.worked_on() == []


def test_an_input_that_changed_is_worked_on_again_and_no_other(folder: Folder) -> None:
    folder.run()
    folder.worked_on()
    folder.write("in/b.txt", "tree!")  # as long as before
    folder.run()
    assert folder.worked_on() == ["b.txt"]
    assert folder.outputs()["b.txt"] == "TREE!!"


@pytest.mark.parametrize("damage", ["missing", "shorter"])
def test_an_output_that_is_gone_or_of_another_size_is_made_again(folder: Folder, damage: str) -> None:
    folder.run()
    folder.worked_on()
    remove(join(folder.prefix, "out/b.txt")) if damage == "missing" else folder.write("out/b.txt", "TH")
    folder.run()
    assert folder.worked_on() == ["b.txt"]
    assert folder.outputs()["b.txt"] == "THREE!"


def test_a_shard_finished_under_another_config_is_never_reused(folder: Folder) -> None:
    folder.run(suffix="!")
    folder.worked_on()
    folder.run(suffix="?")
    assert folder.worked_on() == ["a.txt", "b.txt", "deep/c.txt"]
    assert set(folder.outputs().values()) == {"ONE TWO?", "THREE?", "FOUR FIVE SIX?"}
    assert len(folder.notes()) == 3


def test_what_other_work_left_below_the_output_is_removed(folder: Folder) -> None:
    folder.run()
    remove(join(folder.prefix, "in/b.txt"))
    folder.write("out/.b.txt.0123abcd.tmp", "a killed worker was writing this")
    folder.run()
    assert list(folder.outputs()) == ["a.txt", "deep/c.txt"]
    assert len(folder.notes()) == 2
    assert not folder.temporaries()


def test_what_a_killed_run_wrote_of_an_input_that_is_gone_now_is_removed(folder: Folder) -> None:
    folder.run()
    notes = join(folder.prefix, "out/.marin/shards/shout")
    [of_b] = [name for name in noted(notes) if "b.txt" in read_json(join(notes, name))["outputs"]]
    remove(join(notes, of_b))  # as if the run was killed before it noted the shard
    remove(join(folder.prefix, "in/b.txt"))
    folder.run()
    assert list(folder.outputs()) == ["a.txt", "deep/c.txt"]
    assert len(noted(notes)) == 2


def test_what_a_late_worker_of_an_earlier_run_writes_is_removed_at_the_end(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.run()
    remove(join(folder.prefix, "in/b.txt"))
    folder.write("in/d.txt", "seven")
    write = ShardNotes.write

    def write_and_be_late(self: ShardNotes, index: int, counts: Counts, seconds: float) -> None:
        folder.write("out/b.txt", "late")
        write(self, index, counts, seconds)

    monkeypatch.setattr(ShardNotes, "write", write_and_be_late)
    folder.run()
    assert list(folder.outputs()) == ["a.txt", "d.txt", "deep/c.txt"]


def noted(folder: str) -> list[str]:
    return [name for name in sizes_below(folder) if name.endswith(".json")]


@mostly_on_a_disk
def test_what_a_lost_worker_has_written_is_removed_and_its_shard_made_again(shared_ray: None, folder: Folder) -> None:
    folder.run(fn="die_writing_once")
    assert folder.outputs() == {"a.txt": "ONE TWO!", "b.txt": "THREE!", "deep/c.txt": "FOUR FIVE SIX!"}
    assert not folder.temporaries()


def test_what_is_there_of_a_shard_without_a_note_is_removed_before_it_is_worked_on(folder: Folder) -> None:
    folder.write("out/b.txt", "what a killed stage has left")
    folder.write("out/other.txt", "what no shard of this function writes")
    folder.run()
    assert folder.outputs()["b.txt"] == "THREE!"
    assert "other.txt" in folder.outputs()


def test_what_a_newer_writer_has_made_meanwhile_is_not_removed(
    gcs_prefix: str, tmp_path: Path, stage: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(gcs_prefix, tmp_path, stage)
    folder.write("in/b.txt", "three")
    folder.write("out/b.txt", "what a killed stage has left")

    def after_a_long_pause(file: StoredFile, reason: str) -> None:
        folder.write("out/b.txt", "a newer writer's")
        remove_unfinished(file, reason)

    remove_unfinished = shard_notes._remove
    monkeypatch.setattr(shard_notes, "_remove", after_a_long_pause)
    with pytest.raises(ShardError, match=r"b\.txt' already exists with other bytes"):
        folder.run()
    assert folder.outputs() == {"b.txt": "a newer writer's"}


def test_a_writer_that_comes_too_late_changes_nothing(folder: Folder) -> None:
    folder.run()
    before = stored_files(join(folder.prefix, "out"))
    late = FileShard(
        inputs=tuple(stored_files(join(folder.prefix, "in"))),
        outputs=tuple(file.path for file in before),
        config=folder.stage.Ask(calls=str(folder.local / "calls"), suffix="?"),
    )
    with pytest.raises(FileExistsError, match=r"a\.txt' already exists with other bytes"):
        folder.stage.shout(late)
    assert stored_files(join(folder.prefix, "out")) == before


def test_what_failed_is_worked_on_again_and_what_was_finished_is_not(folder: Folder) -> None:
    with pytest.raises(ShardError, match="this one is bad"):
        folder.run(poison="a.txt")  # the largest goes first, the smallest last
    folder.worked_on()
    finished = {name for note in folder.notes() for name in note["outputs"]}
    assert finished == {"deep/c.txt"}


def test_a_shard_that_says_it_is_done_and_wrote_nothing_fails(folder: Folder) -> None:
    with pytest.raises(FileNotFoundError, match=r"The shard returned, but its output '.*c\.txt' does not exist"):
        folder.run(forget=True)


def test_counts_that_do_not_add_up_fail_the_stage(where: str, folder: Folder) -> None:
    with pytest.raises(ShardError, match=r"documents came in, .* do not add up"):
        folder.run(lost=1)


def files(sizes: list[int]) -> list[StoredFile]:
    return [StoredFile(path=f"/in/{i}", name=str(i), size_bytes=size, stamp="") for i, size in enumerate(sizes)]


def grouped(sizes: list[int]) -> list[FileShard]:
    return file_shards(files(sizes), [f"/out/{i}" for i in range(len(sizes))], config=None)


def test_a_few_files_are_a_group_each() -> None:
    assert [len(shard.inputs) for shard in grouped([10, 1, 500, 3])] == [1, 1, 1, 1]


def test_many_small_files_share_groups_and_large_ones_stand_alone() -> None:
    assert len(grouped([1000] * 100_000)) <= MAX_SMALL_GROUPS + 1
    assert [len(shard.inputs) for shard in grouped([2 * MAX_GROUP_BYTES] * 3)] == [1, 1, 1]


@given(st.lists(st.integers(min_value=0, max_value=10**9), max_size=600))
def test_every_file_is_in_one_group_in_its_order_with_its_output(sizes: list[int]) -> None:
    shards = grouped(sizes)
    assert [file.name for shard in shards for file in shard.inputs] == [str(i) for i in range(len(sizes))]
    assert [output for shard in shards for output in shard.outputs] == [f"/out/{i}" for i in range(len(sizes))]
    assert all(shard.inputs for shard in shards)
    assert sum(file.size_bytes for shard in shards for file in shard.inputs) == sum(sizes)
