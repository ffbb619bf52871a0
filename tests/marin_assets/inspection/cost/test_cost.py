"""What an output has cost with all that it was made from, and what the sums lack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fleets import use, write_catalogue
from recorded_steps import Recorded, step

from marin_assets.inspection.cost.lineage import costs_again, costs_of
from marin_assets.inspection.cost.lines import gaps, lines_of
from marin_assets.inspection.cost.sums import OutputCost, total_of
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_resources.hardware.resources import Resources, cpu, tpu
from marin_resources.storage.files import remove_folder
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.output.notes.cost import spent_of
from marin_resources.storage.output.record import read_record
from marin_resources.storage.output.store import Store
from marin_resources.types.record import Record


@pytest.fixture
def here(disk_prefix: str) -> Recorded:
    return Recorded(Store(disk_prefix))


def spent(wall_s: float, resources: Resources | None = None) -> dict[str, Any]:
    return {"spent": spent_of(resources or cpu(), wall_s, wall_s / 2)}


def made(here: Recorded, last: Step) -> tuple[list[OutputCost], CompleteOutputs]:
    complete = CompleteOutputs(here.store.prefix)
    [node] = [node for node in build_graph([last]) if node.name == last.name]
    path = here.store.locate(node.output)
    return costs_of(path, read_record(path) or Record(), complete), complete


def diamond(value: int = 1) -> tuple[Step, ...]:
    raw = step("raw", value)
    left, right = step("left", 1, raw), step("right", 1, raw)
    return raw, left, right, step("last", 1, left, right)


def test_a_shared_ancestor_is_summed_once(disk_or_gcs_prefix: str) -> None:
    here = Recorded(Store(disk_or_gcs_prefix))
    steps = diamond()
    for wall_s, each in zip((100.0, 20.0, 30.0, 4.0), steps, strict=True):
        here.make(each, **spent(wall_s))
    costs, complete = made(here, steps[-1])
    assert sorted(each.label for each in costs) == ["last", "left", "raw", "right"]
    totals = total_of(costs)
    assert (totals["wall_s"].amount, totals["cpu_s"].amount, totals["wall_s"].unknown) == (154.0, 77.0, 0)
    assert costs[0].cost.bytes_in == sum(each.cost.bytes_out or 0 for each in costs if each.label in ("left", "right"))
    assert total_of(costs_again(costs, complete))["wall_s"].amount == 154.0


def test_to_make_again_is_the_median_of_the_steps_newest_outputs(here: Recorded) -> None:
    for value, wall_s in ((1, 10.0), (2, 400.0), (3, 30.0)):
        here.make(step("raw", value), **spent(wall_s))
    costs, complete = made(here, step("raw", 2))
    [again] = costs_again(costs, complete)
    assert (costs[0].cost.wall_s, again.cost.wall_s) == (400.0, 30.0)


def test_what_is_not_known_is_said_and_is_in_no_sum(here: Recorded) -> None:
    raw, left, right, last = diamond()
    here.make(raw, **spent(100.0))
    here.make(left)  # as older records are
    here.make(right, **spent(30.0))
    here.make(last, **spent(4.0, tpu("v4-8")))
    remove_folder(here.store.locate(build_graph([raw]).nodes[0].output))
    costs, complete = made(here, last)
    totals = total_of(costs)
    assert (totals["cpu_s"].amount, totals["cpu_s"].known, totals["cpu_s"].unknown) == (17.0, 2, 2)
    said = list(gaps(costs))
    assert said == [
        "1 of 4 steps has no record: raw-" + next(e.label for e in costs if not e.recorded)[-6:],
        "1 of 4 steps has no record of CPU seconds",
        "1 of 4 steps has no record of device hours",
        "1 of 4 steps has no price: no price of tpu_v4_8",
        "1 of 4 steps has no price: its record says nothing of devices",
        "1 of 4 steps has no price: no price of a CPU of the machine it ran on",
    ]
    lines = list(lines_of(costs, costs_again(costs, complete), "Today."))
    assert next(line for line in lines if line.startswith("CPU time")).split()[2:5] == ["at", "least", "17"]
    assert next(line for line in lines if line.startswith("price")).split() == ["price", "not", "known", "not", "known"]


def test_an_ancestor_that_was_collected_has_cost_what_its_record_says(here: Recorded) -> None:
    raw, *_, last = steps = diamond()
    for each in steps:
        here.make(each, **spent(10.0))
    here.collect(build_graph([raw]).nodes[0])
    costs, _ = made(here, last)
    assert total_of(costs)["wall_s"].amount == 40.0
    assert list(gaps(costs)) == ["4 of 4 steps have no price: no price of a CPU of the machine it ran on"]


def test_prices_are_those_of_the_catalogue_and_of_the_declared_devices(
    here: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(write_catalogue(tmp_path, of_central="cpu_dollars = 0.5"), monkeypatch)
    monkeypatch.setenv("MARIN_DEVICE_PRICES", "v4=2@2026-11-01")
    raw, model = step("raw"), step("model", 1, step("raw"))
    here.make(raw, cluster="central", **spent(3600.0, cpu(4)))
    here.make(model, **spent(7200.0, tpu("v4-8")))
    costs, complete = made(here, model)
    assert {each.label: each.dollars for each in costs} == {"raw": 2.0, "model": 16.0}
    lines = list(lines_of(costs, costs_again(costs, complete), "Today."))
    assert next(line for line in lines if line.startswith("price")).split() == ["price", "$18.00", "$18.00"]
    assert lines[lines.index("most:") + 1] == "  model: 2 h 0 min, 8 h 0 min of devices, $16.00"


def test_a_lineage_of_a_moved_prefix_is_found(here: Recorded, tmp_path: Path) -> None:
    *_, last = steps = diamond()
    for each in steps:
        here.make(each, **spent(10.0))
    moved = tmp_path / "moved"
    Path(here.store.prefix).rename(moved)
    costs, _ = made(Recorded(Store(str(moved))), last)
    assert [each.recorded for each in costs] == [True] * 4
