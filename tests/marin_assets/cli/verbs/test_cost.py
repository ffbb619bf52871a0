"""`marin cost`: what an output has cost with all that it was made from, and what the sums lack."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleets import use, write_catalogue
from location import Location
from one_sentence import one_sentence
from recorded_steps import Recorded, step

from marin_assets.cli.verbs.cost import OutputCost, costs_of, lines_of
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_resources.hardware.resources import Resources, cpu, tpu
from marin_resources.storage.files import remove_folder
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.output.notes.cost import spent_of
from marin_resources.storage.output.record import read_record
from marin_resources.storage.output.store import Store
from marin_resources.types.record import Record

Marin = Callable[..., tuple[int, str, str]]


@pytest.fixture
def here(disk_prefix: str) -> Recorded:
    return Recorded(Store(disk_prefix))


def spent(wall_s: float, resources: Resources | None = None) -> dict[str, Any]:
    return {"spent": spent_of(resources or cpu(), wall_s, wall_s / 2)}


def made(here: Recorded, last: Step) -> list[OutputCost]:
    [node] = [node for node in build_graph([last]) if node.name == last.name]
    path = here.store.locate(node.output)
    return costs_of(path, read_record(path) or Record(), CompleteOutputs(here.store.prefix))


def diamond(value: int = 1) -> tuple[Step, ...]:
    raw = step("raw", value)
    left, right = step("left", 1, raw), step("right", 1, raw)
    return raw, left, right, step("last", 1, left, right)


def test_a_shared_ancestor_is_summed_once(disk_or_gcs_prefix: str) -> None:
    here = Recorded(Store(disk_or_gcs_prefix))
    steps = diamond()
    for wall_s, each in zip((100.0, 20.0, 30.0, 4.0), steps, strict=True):
        here.make(each, **spent(wall_s))
    costs = made(here, steps[-1])
    assert sorted(each.step for each in costs) == ["last", "left", "raw", "right"]
    assert sum(each.cost.wall_s or 0 for each in costs) == 154.0
    assert list(lines_of(costs))[:2] == ["time         2 min 34 s", "CPU time     1 min 17 s"]
    assert costs[0].cost.bytes_in == sum(each.cost.bytes_out or 0 for each in costs if each.step in ("left", "right"))


def test_what_is_not_known_is_counted_and_is_in_no_sum(here: Recorded) -> None:
    raw, left, right, last = diamond()
    here.make(raw, **spent(100.0))
    here.make(left)  # as older records are
    here.make(right, **spent(30.0))
    here.make(last, **spent(4.0, tpu("v4-8")))
    remove_folder(here.store.locate(build_graph([raw]).nodes[0].output))
    lines = list(lines_of(made(here, last)))
    assert lines[1] == "CPU time     at least 17 s"
    assert lines[5] == "price        not known"
    assert "2 of 4 outputs without a record of CPU time" in lines
    assert "1 of 4 outputs without a price: no record" in lines
    assert "1 of 4 outputs without a price: no price of tpu_v4_8" in lines


def test_an_ancestor_that_was_collected_has_cost_what_its_record_says(here: Recorded) -> None:
    raw, *_, last = steps = diamond()
    for each in steps:
        here.make(each, **spent(10.0))
    here.collect(build_graph([raw]).nodes[0])
    assert sum(each.cost.wall_s or 0 for each in made(here, last)) == 40.0


def test_prices_are_those_of_the_catalogue_and_of_the_declared_devices(
    here: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(write_catalogue(tmp_path, of_central="cpu_dollars = 0.5"), monkeypatch)
    monkeypatch.setenv("MARIN_DEVICE_PRICES", "v4=2@2026-11-01")
    raw, model = step("raw"), step("model", 1, step("raw"))
    here.make(raw, cluster="central", **spent(3600.0, cpu(4)))
    here.make(model, **spent(7200.0, tpu("v4-8")))
    costs = made(here, model)
    assert {each.step: each.bill.dollars for each in costs} == {"raw": 2.0, "model": 16.0}
    lines = list(lines_of(costs))
    assert lines[5] == "price        $18.00"
    assert lines[lines.index("most:") + 1] == "  model: price $16.00, device time 8 h 0 min, time 2 h 0 min"


def test_a_lineage_of_a_moved_prefix_is_found(here: Recorded, tmp_path: Path) -> None:
    *_, last = steps = diamond()
    for each in steps:
        here.make(each, **spent(10.0))
    moved = tmp_path / "moved"
    Path(here.store.prefix).rename(moved)
    assert [each.cost.wall_s for each in made(Recorded(Store(str(moved))), last)] == [10.0] * 4


def test_what_a_step_has_cost_is_printed(made: Location, marin: Marin) -> None:
    code, out, _ = marin("cost", "model")
    assert code == 0
    assert "1 of 1 output without a record of CPU time" in out.splitlines()
    code, out, _ = marin("cost", "model", "--json")
    found = json.loads(out)
    assert (found["step"], found["to_make"]["wall_s"]["known"], found["to_make"]["cpu_s"]["unknown"]) == (
        "toy/model",
        1,
        1,
    )


@pytest.mark.parametrize("disk_or_gcs_prefix", ["disk"], indirect=True)
def test_a_step_that_the_code_has_no_more_has_a_cost(location: Location, marin: Marin) -> None:
    Recorded(location.store).make(step("gone/x", 1, step("gone/raw")))
    code, out, _ = marin("cost", "gone/x")
    assert code == 0
    assert out.startswith("gone/x, version ")
    assert "2 outputs with all that it was made from" in out


@pytest.mark.parametrize("disk_or_gcs_prefix", ["disk"], indirect=True)
def test_wrong_words_are_one_sentence(location: Location, marin: Marin, monkeypatch: pytest.MonkeyPatch) -> None:
    location.make("toy/data")
    code, _, err = marin("cost", "database")
    assert (code, "No record of the step 'toy/database'" in one_sentence(ValueError(err.strip()))) == (2, True)
    monkeypatch.setenv("MARIN_DEVICE_PRICES", "v99=1@2026-11-01")
    code, _, err = marin("cost", "data")
    assert (code, "v99" in one_sentence(ValueError(err.strip()))) == (2, True)
