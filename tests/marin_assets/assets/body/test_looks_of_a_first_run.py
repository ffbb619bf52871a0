"""How often a first run looks at an output: once before it is computed, and once after."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from partition_steps import part
from toy_steps import toy

from marin_assets import executor_main
from marin_assets.step.partitions.sets import static
from marin_assets.step.step import Step
from marin_resources.orchestrator import run_state
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Observed, Output

pytestmark = pytest.mark.usefixtures("shared_ray", "prefix", "dagster_home")
Looks = Callable[[Step], Counter[str]]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """Run a script of the steps in this process. Return the number of looks at each output."""
    counted: Counter[str] = Counter()
    look = Store.look

    def count(store: Store, outputs: Iterable[Output]) -> dict[Output, Observed]:
        requested = list(outputs)
        counted.update(output.label for output in requested)
        return look(store, requested)

    def run(step: Step) -> Counter[str]:
        monkeypatch.setattr(Store, "look", count)
        executor_main([step])
        return counted

    monkeypatch.setattr(sys, "argv", ["script.py"])
    return run


def test_each_output_is_looked_at_once_before_and_once_after(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow this machine is: the states of the plan and of the inputs are recent."""
    monkeypatch.setattr(run_state, "RECENT_S", math.inf)
    assert looks(toy("b", reads=toy("a"))) == {"toy/a": 2, "toy/b": 2}


def test_so_is_each_partition(looks: Looks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run_state, "RECENT_S", math.inf)
    counted = looks(part("a", static("x", "y"), tmp_path / "calls.txt"))
    assert (counted["parts/a[x]"], counted["parts/a[y]"]) == (2, 2)


def test_what_was_read_long_ago_is_looked_at_again(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the plan, by the step that begins, when its task is submitted, after the task, and by each reader."""
    monkeypatch.setattr(run_state, "RECENT_S", -1.0)
    assert looks(toy("b", reads=toy("a"))) == {"toy/a": 5, "toy/b": 4}
