"""The quickstart with MARIN_PREFIX=gs://…: the outputs that a disk has, caches and checkpoints of Levanter included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from quickstart_runs import paths_below, require_complete, require_equal, results_of, run_in

from marin_assets.experiments.quickstart import steps


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_its_outputs_are_those_of_a_disk_and_are_then_reused(
    tiny_quickstart: Any, gcs_prefix: str, dagster_home: Path, tmp_path: Path
) -> None:
    made = steps("tiny")
    assert "22 computed, 0 reused, 0 failed" in run_in(gcs_prefix, "tiny", tmp_path)
    on_disk, in_bucket = paths_below(str(tiny_quickstart.prefix), made), paths_below(gcs_prefix, made)
    require_complete(in_bucket)
    require_equal(on_disk, in_bucket)
    different = {"report/quickstart-tiny"}  # it tells bytes of a page that shows durations
    here, there = results_of(on_disk), results_of(in_bucket)
    assert {name: here[name] for name in here.keys() - different} == {n: there[n] for n in there.keys() - different}
    assert "0 computed, 22 reused, 0 failed" in run_in(gcs_prefix, "tiny", tmp_path)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_at_full_size_too(full_quickstart: Any, gcs_prefix: str, dagster_home: Path, tmp_path: Path) -> None:
    made = steps("full")
    assert "22 computed, 0 reused, 0 failed" in run_in(gcs_prefix, "full", tmp_path)
    require_complete(paths_below(gcs_prefix, made))
    require_equal(paths_below(str(full_quickstart.prefix), made), paths_below(gcs_prefix, made))
