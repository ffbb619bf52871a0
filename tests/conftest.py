"""What every test shares: a prefix and a Dagster home of its own, and no network."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import absl.logging
import pytest

if TYPE_CHECKING:
    import dagster as dg

os.environ.update(
    RAY_AUTH_MODE="disabled",
    RAY_USAGE_STATS_ENABLED="0",
    JAX_PLATFORMS="cpu",
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    DO_NOT_TRACK="1",
    MARIN_CONFIG="",  # no settings of the person who runs the tests
)
if inherited := os.environ.get("PYTHONPATH"):  # if it names another checkout, scripts of tests would import that one
    folders = [str(Path(__file__).parents[1]), *inherited.split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(folders))
# tests import helpers and the services of the rehearsal from there, and workers do too
sys.path.insert(0, str(Path(__file__).parents[1] / "deploy/local"))
sys.path.insert(0, str(Path(__file__).parent / "support"))

import failure_reports
import object_stores  # it sets the environment for all that follows
import quick_collection
import quick_databases
import rewritten_once
import schedule
from bubblewrap import path_with_bubblewrap
from bucket_for_tests import BucketForTests
from dagster_homes import new_home
from folder_times import FolderTimes
from ray_cluster import Cluster

from marin_resources.host.sandbox import SandboxError, require_sandbox


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(schedule)
    config.pluginmanager.register(quick_collection)
    failure_reports.register(config)
    config.pluginmanager.register(FolderTimes())
    quick_databases.quicken()
    # JAX's handler keeps the stderr of its import, which is pytest's, and would close it when a test configures logging
    absl.logging.PythonHandler.close = logging.StreamHandler.close
    rewritten_once.rewrite_once(config, Path(__file__).parent)


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background so. Dagster (1.13.27) then ignores SIGTERM too, as do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _object_stores() -> Iterator[None]:
    """The servers of buckets start with the first test that asks, and end with the session."""
    yield
    object_stores.stop_all()


@pytest.fixture(autouse=True)
def _main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that a command has read stays the main module, and children of later tests would run it."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


def _prefix_on(store: str, tmp_path: Path) -> Iterator[str]:
    fresh = {"disk": lambda: str(tmp_path / "prefix"), "gcs": object_stores.gcs_prefix, "s3": object_stores.s3_prefix}
    prefix = fresh[store]()
    yield prefix
    object_stores.forget(prefix)


@pytest.fixture(params=["disk", "gcs", "s3"])
def any_prefix(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The test on each store: a fresh prefix on a local disk, on GCS through gcsfs, and on S3 through s3fs."""
    yield from _prefix_on(request.param, tmp_path)


@pytest.fixture(params=["disk", "gcs"])
def disk_or_gcs_prefix(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The test on a local disk and on GCS."""
    yield from _prefix_on(request.param, tmp_path)


@pytest.fixture
def disk_prefix(tmp_path: Path) -> str:
    """A fresh prefix on a local disk."""
    return str(tmp_path / "prefix")


@pytest.fixture
def gcs_prefix(tmp_path: Path) -> Iterator[str]:
    """A fresh prefix on GCS."""
    yield from _prefix_on("gcs", tmp_path)


@pytest.fixture
def gcs_bucket() -> Iterator[BucketForTests]:
    """A fresh bucket of GCS, whose requests a test can let fail or be late, and look at."""
    bucket = object_stores.gcs_bucket()
    yield bucket
    bucket.forget()


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs that are not trusted run in a sandbox here; else the test is skipped with the reason."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", path_with_bubblewrap(tmp_path_factory.mktemp("bubblewrap")))
        try:
            require_sandbox()
        except SandboxError as error:
            pytest.skip(str(error))
        yield


@pytest.fixture(scope="session")
def shared_ray() -> Iterator[None]:
    """One local Ray for the tests of a session that do not care when it starts: back ends use one that is up."""
    import ray

    _start_ray()
    yield
    ray.shutdown()


@pytest.fixture
def no_ray_up() -> Iterator[None]:
    """Without the local Ray of the session: workers of one that starts in the test have the variables of the test."""
    import ray

    was_up = ray.is_initialized()
    ray.shutdown()
    yield
    if was_up:
        ray.shutdown()
        _start_ray()


def _start_ray() -> None:
    import ray

    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=80_000_000,
        log_to_driver=False,
        logging_level="ERROR",
    )


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A Ray cluster of one head with 2 CPUs, for the tests of a session that do not hurt it."""
    with Cluster(cpus=2) as cluster:
        yield cluster


@pytest.fixture(autouse=True, scope="module")
def _no_ray_is_left() -> Iterator[None]:
    """A file of tests shuts down the Ray that it starts in its own process. Else its daemons end when it is collected,
    and the process with them, during another test."""
    before = _owners_of_ray()
    yield
    assert _owners_of_ray() <= before, "a back end that has begun to start Ray is not shut down"


def _owners_of_ray() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("ray-owner")}


@pytest.fixture(autouse=True)
def _shards_run_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards run in the test's own process, though Ray may be up for other tests, unless a test asks for Ray."""
    if not {"shared_ray", "where"}.intersection(request.fixturenames):
        monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


@pytest.fixture(params=["here", "on Ray"])
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The test twice: shards one after the other in its process, and as tasks of Ray."""
    if request.param == "on Ray":
        request.getfixturevalue("shared_ray")
    else:
        monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)
    return str(request.param)


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh MARIN_PREFIX."""
    path = tmp_path / "prefix"
    monkeypatch.setenv("MARIN_PREFIX", str(path))
    return path


@pytest.fixture
def dagster_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh DAGSTER_HOME that sends nothing anywhere."""
    path = new_home(tmp_path / "dagster")
    monkeypatch.setenv("DAGSTER_HOME", str(path))
    return path


@pytest.fixture
def instance(dagster_home: Path) -> Iterator[dg.DagsterInstance]:
    """A fresh Dagster instance in files, as a deployment has it."""
    import dagster as dg

    with dg.DagsterInstance.get() as instance:
        yield instance
