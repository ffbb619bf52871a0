"""A good and a failing run are careless with a secret, on a cluster with a token: neither is in what they leave."""

from __future__ import annotations

import json
import os
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_runs import env_for, start_run
from ray_cluster import Cluster

SECRET = f"sk-live-{uuid.uuid4().hex}/+=="
"""By chance, as the sources of tests are shipped too."""
SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
import careless_steps
from toy_steps import toy
from marin_assets import executor_main

good = toy("good", careless_steps.tell_all, env=("API_KEY",))
bad = toy("bad", careless_steps.fail_with_all, env=("API_KEY",))
executor_main([good, bad])
"""


@pytest.fixture
def careless(cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """The cluster, whose nodes have the secret in a folder of theirs."""
    file = cluster.secrets / "API_KEY"
    file.write_text(SECRET + "\n")
    yield cluster
    file.unlink()


@pytest.mark.long
def test_neither_the_token_nor_a_secret_is(careless: Cluster, prefix: Path, dagster_home: Path, tmp_path: Path) -> None:
    script = tmp_path / "experiment.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parents[1] / "support")))
    run = start_run(script, env_for(prefix, dagster_home, careless))
    output, _ = run.communicate(timeout=480)
    assert run.returncode == 1
    assert "1 computed, 0 reused, 1 failed" in output
    assert "the key is ***" in output, "the step has had it"
    assert "the service refused ***" in output, "and its error is told"
    token = Path(careless.token_path).read_text()
    left = {
        "what the run says": output.encode(),
        "the cluster's jobs": jobs_of(careless, token),
        **files_below(prefix),
        **files_below(dagster_home),
        **files_below(Path(careless.temp_dir)),
    }
    assert any("job-driver" in name for name in left), "Ray's logs are among them"
    for value in (SECRET, token):
        assert [name for name, data in left.items() if value.encode() in data] == []


def jobs_of(cluster: Cluster, token: str) -> bytes:
    """All that Ray tells of its jobs: entry points, metadata, environments, messages."""
    request = urllib.request.Request(f"{cluster.address}/api/jobs/", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        data = answer.read()
    assert json.loads(data)
    return data


def files_below(folder: Path) -> dict[str, bytes]:
    found = {}
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            if path.is_file():
                found[str(path)] = path.read_bytes()
    return found
