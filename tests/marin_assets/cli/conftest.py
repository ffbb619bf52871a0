"""The outputs of the toy experiment, complete on a disk or on GCS."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from jobs_there import JobsThere
from location import Location
from ray_cluster import Cluster

from marin_assets.catalog.experiments_folder import load_experiments
from marin_assets.cli.main import main
from marin_assets.step.graph import build_graph
from marin_resources.storage.output.store import Store


@pytest.fixture
def location(experiment: str, disk_or_gcs_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Location:
    monkeypatch.setenv("MARIN_PREFIX", disk_or_gcs_prefix)
    return Location(experiment, build_graph(load_experiments().steps[experiment]), Store(disk_or_gcs_prefix))


@pytest.fixture
def made(location: Location) -> Location:
    """All outputs but that of toy/database."""
    for name in ("toy/data", "toy/tokens", "toy/model"):
        location.make(name)
    return location


@pytest.fixture
def marin(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command line in this process; return exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def jobs_there(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> JobsThere:
    """The tests' cluster as that of this machine and of MARIN_CLUSTER."""
    monkeypatch.setenv("MARIN_STATE_DIR", str(cluster.state))
    monkeypatch.setenv("MARIN_CLUSTER", "local")
    monkeypatch.delenv("RAY_AUTH_MODE")
    return JobsThere(cluster.settings())
