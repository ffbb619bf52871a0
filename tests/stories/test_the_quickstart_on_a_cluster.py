"""The quickstart with every step as a job of a token-authenticated cluster: the outputs that the local Ray makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cluster_runs import env_for
from quickstart_runs import paths_below, require_complete, require_equal, results_of, run_in
from ray_cluster import Cluster
from record_fields import fields_of_record

from marin_assets.experiments.quickstart import steps


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_its_outputs_are_those_of_the_local_ray_and_are_then_reused(
    tiny_quickstart: Any, cluster: Cluster, prefix: Path, dagster_home: Path, tmp_path: Path
) -> None:
    made, env = steps("tiny"), env_for(prefix, dagster_home, cluster)
    assert "22 computed, 0 reused, 0 failed" in run_in(str(prefix), "tiny", tmp_path, env)
    here, there = paths_below(str(tiny_quickstart.prefix), made), paths_below(str(prefix), made)
    require_complete(there)
    require_equal(here, there)
    different = {"report/quickstart-tiny"}  # it tells bytes of a page that shows durations
    local, jobs = results_of(here), results_of(there)
    assert {n: local[n] for n in local.keys() - different} == {n: jobs[n] for n in jobs.keys() - different}
    ids = {(fields_of_record(path) or {})["job"]["id"] for path in there.values()}
    assert len(ids) == 22
    assert "0 computed, 22 reused, 0 failed" in run_in(str(prefix), "tiny", tmp_path, env)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_at_full_size_too(full_quickstart: Any, cluster: Cluster, dagster_home: Path, tmp_path: Path) -> None:
    made, there = steps("full"), tmp_path / "jobs"
    assert "22 computed" in run_in(str(there), "full", tmp_path, env_for(there, dagster_home, cluster))
    require_complete(paths_below(str(there), made))
    require_equal(paths_below(str(full_quickstart.prefix), made), paths_below(str(there), made))
