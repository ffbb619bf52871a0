from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from one_sentence import one_sentence

from marin_resources.hardware.resources import cpu
from marin_resources.ray_tpu.shards.cpu_elsewhere import cpu_elsewhere_s
from marin_resources.ray_tpu.shards.map_shards import ShardError, map_shards
from marin_resources.ray_tpu.shards.notes import ShardNoteError

MODULE = '''
"""A stage's shard function, in a module that only this test's process has on its path."""
import os
from dataclasses import dataclass
from pathlib import Path

@dataclass(frozen=True)
class Shard:
    number: int
    calls: str
    scale: float = 1
    poison: bool = False
    inputs: tuple = ()

def count(shard: Shard) -> dict[str, float]:
    with open(shard.calls, "a") as file:
        file.write(f"{shard.number} {os.getpid()}\\n")
    if shard.poison:
        raise ValueError(f"number {shard.number} is bad")
    return {"shards": 1, "sum": shard.number * shard.scale, **({"odd": 1} if shard.number % 2 else {})}

def die(shard: Shard) -> dict[str, float]:
    os._exit(9)

def die_once(shard: Shard) -> dict[str, float]:
    marker = Path(f"{shard.calls}.{shard.number}")
    if not marker.exists():
        marker.touch()
        os._exit(9)
    return count(shard)

def refuse(shard: Shard) -> dict[str, float]:
    from marin_resources.types.errors import MarinError
    raise MarinError("The file 'a' has no column 'b'. Name another.")

def not_counts(shard: Shard) -> int:
    return 3

def count_with_numpy(shard: Shard) -> dict[str, object]:
    import numpy as np
    return {"shards": np.int64(1), "share": np.float32(0.5), "all": np.array(2)}

def count_nothing(shard: Shard) -> dict[str, float]:
    return {"mean": float("nan")}

def count_words(shard: Shard) -> dict[str, str]:
    return {"mean": "many"}
'''


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    name = f"stage_of_{abs(hash(request.node.nodeid))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(name)
    sys.modules.pop(name)


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    path = tmp_path / "calls.txt"
    path.touch()
    return path


def numbers(calls: Path) -> list[int]:
    return sorted(int(line.split()[0]) for line in calls.read_text().splitlines())


def shards(stage: ModuleType, calls: Path, count: int = 5, **changes: Any) -> list[Any]:
    return [stage.Shard(number=i, calls=str(calls), **changes) for i in range(count)]


def test_counts_are_added_up_by_key(where: str, stage: ModuleType, calls: Path, tmp_path: Path) -> None:
    counted = map_shards(stage.count, shards(stage, calls), output_path=str(tmp_path / "out"))
    assert counted == {"shards": 5, "sum": 10, "odd": 2}
    assert numbers(calls) == [0, 1, 2, 3, 4]


def test_counts_of_numpy_are_numbers(where: str, stage: ModuleType, calls: Path, tmp_path: Path) -> None:
    counted = map_shards(stage.count_with_numpy, shards(stage, calls), output_path=str(tmp_path / "out"))
    assert counted == {"shards": 5, "share": 2.5, "all": 10}
    assert {type(count) for count in counted.values()} == {int, float}


@pytest.mark.parametrize(("fn", "said"), [("count_nothing", "nan"), ("count_words", "'many'")])
def test_a_count_that_cannot_be_added_up_is_named(
    stage: ModuleType, calls: Path, tmp_path: Path, fn: str, said: str
) -> None:
    with pytest.raises(ShardError, match=f"the count 'mean' is {said}, expected a finite number"):
        map_shards(getattr(stage, fn), shards(stage, calls), output_path=str(tmp_path / "out"))


def test_finished_shards_are_skipped_and_counted_all_the_same(
    where: str, stage: ModuleType, calls: Path, tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    first = map_shards(stage.count, shards(stage, calls, 3), output_path=out)
    assert (first["shards"], numbers(calls)) == (3, [0, 1, 2])
    assert map_shards(stage.count, shards(stage, calls), output_path=out) == {"shards": 5, "sum": 10, "odd": 2}
    assert numbers(calls) == [0, 1, 2, 3, 4]


def test_a_shard_asked_with_other_values_is_not_reused(
    where: str, stage: ModuleType, calls: Path, tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    map_shards(stage.count, shards(stage, calls, 2), output_path=out)
    scaled = map_shards(stage.count, shards(stage, calls, 2, scale=10.0), output_path=out)
    assert scaled["sum"] == 10
    assert numbers(calls) == [0, 0, 1, 1]


def test_a_failing_shard_names_itself_and_what_it_was_asked(
    where: str, stage: ModuleType, calls: Path, tmp_path: Path
) -> None:
    asked = shards(stage, calls)
    asked[3] = dataclasses.replace(asked[3], poison=True)
    with pytest.raises(ShardError) as caught:
        map_shards(stage.count, asked, output_path=str(tmp_path / "out"))
    sentence = str(caught.value)
    assert sentence.startswith(f"Shard 3 of '{stage.__name__}:count' failed: ValueError: number 3 is bad")
    assert '"poison": true' in sentence


def test_an_error_that_is_a_sentence_is_all_that_a_failing_shard_says(
    where: str, stage: ModuleType, calls: Path, tmp_path: Path
) -> None:
    with pytest.raises(ShardError) as caught:
        map_shards(stage.refuse, shards(stage, calls), output_path=str(tmp_path / "out"))
    assert str(caught.value) == "The file 'a' has no column 'b'. Name another."


def test_after_a_failure_what_is_finished_is_kept(where: str, stage: ModuleType, calls: Path, tmp_path: Path) -> None:
    asked = shards(stage, calls, 4)
    poisoned = [*asked[:3], dataclasses.replace(asked[3], poison=True)]
    out = str(tmp_path / "out")
    with pytest.raises(ShardError):
        map_shards(stage.count, poisoned, output_path=out)
    kept = len(list((tmp_path / "out/.marin/shards/count").glob("*.json")))
    calls.write_text("")
    assert map_shards(stage.count, asked, output_path=out)["shards"] == 4
    assert len(numbers(calls)) == 4 - kept


def test_a_finished_shard_is_noted_with_its_function_and_counts(
    where: str, stage: ModuleType, calls: Path, tmp_path: Path
) -> None:
    map_shards(stage.count, shards(stage, calls, 1), output_path=str(tmp_path))
    [note] = (tmp_path / ".marin/shards/count").iterdir()
    noted = json.loads(note.read_text())
    assert noted.pop("seconds") >= 0
    assert noted == {
        "format_version": 2,
        "fn": f"{stage.__name__}:count",
        "outputs": {},
        "counts": {"shards": 1, "sum": 0},
    }


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, '{"format_version": 2, "outputs": [], "counts": {}}'])
def test_a_damaged_note_is_one_sentence_with_its_path(
    stage: ModuleType, calls: Path, tmp_path: Path, text: str
) -> None:
    map_shards(stage.count, shards(stage, calls, 1), output_path=str(tmp_path))
    [note] = (tmp_path / ".marin/shards/count").iterdir()
    note.write_text(text)
    with pytest.raises(ShardNoteError) as raised:
        map_shards(stage.count, shards(stage, calls, 1), output_path=str(tmp_path))
    assert one_sentence(raised).startswith(f"The note of a shard {str(note)!r} ")


def test_no_shards_are_no_counts(where: str, stage: ModuleType, tmp_path: Path) -> None:
    assert map_shards(stage.count, [], output_path=str(tmp_path)) == {}


def test_on_ray_shards_run_in_other_processes_and_more_than_there_are_cpus(
    shared_ray: None, stage: ModuleType, calls: Path, tmp_path: Path
) -> None:
    import os

    before_s = cpu_elsewhere_s()
    counted = map_shards(stage.count, shards(stage, calls, 40), output_path=str(tmp_path / "out"), resources=cpu(0.5))
    assert counted["shards"] == 40
    assert str(os.getpid()) not in {line.split()[1] for line in calls.read_text().splitlines()}
    assert cpu_elsewhere_s() > before_s


def test_on_ray_a_shard_whose_worker_dies_is_run_again(
    shared_ray: None, stage: ModuleType, calls: Path, tmp_path: Path
) -> None:
    counted = map_shards(stage.die_once, shards(stage, calls, 2), output_path=str(tmp_path / "out"))
    assert counted["shards"] == 2


@pytest.mark.long
def test_on_ray_a_shard_whose_worker_dies_each_time_fails_the_stage(
    shared_ray: None, stage: ModuleType, calls: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ShardError, match=r"Shard 0 of .*:die' failed: WorkerCrashedError"):
        map_shards(stage.die, shards(stage, calls, 1), output_path=str(tmp_path / "out"))
    assert sum("lost its worker" in message for message in caplog.messages) == 3


def test_a_shard_that_cannot_be_sent_is_refused_by_its_field(stage: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"shard\.calls is <object"):
        map_shards(stage.count, [stage.Shard(0, object())], output_path=str(tmp_path))


def test_a_function_that_a_worker_could_not_import_is_refused(stage: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a worker cannot import it"):
        map_shards(lambda shard: {}, shards(stage, tmp_path, 1), output_path=str(tmp_path))


def test_a_function_that_returns_no_counts_is_refused_by_the_shard(stage: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ShardError, match=r"Shard 0 of .*not_counts' failed: TypeError"):
        map_shards(stage.not_counts, shards(stage, tmp_path, 1), output_path=str(tmp_path))
