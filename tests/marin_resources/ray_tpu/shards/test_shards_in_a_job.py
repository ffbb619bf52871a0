"""Jobs of a real cluster whose steps map shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import shard_steps
from job_process import Job, new_job
from ray_cluster import Cluster
from running import alive, wait_until
from shard_steps import numbers_told
from submitted_jobs import END_TIMEOUT_S, submit

from marin_resources.hardware.resources import cpu
from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus
from marin_resources.storage.output.attempts import log_path, read_attempt

NewJob = Callable[..., Job]


@pytest.fixture
def told(tmp_path: Path) -> Path:
    folder = tmp_path / "told"
    folder.mkdir()
    return folder


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """A file for which jobs wait until it is gone: at the latest with the test, so that none keeps its CPU."""
    gate = tmp_path / "gate"
    gate.touch()
    yield gate
    gate.unlink(missing_ok=True)


@pytest.fixture
def mapping(disk_prefix: str, tmp_path: Path, told: Path) -> NewJob:
    """A job that holds one CPU and maps a function of `shard_steps.py`."""

    def new(number: int = 0, *, env: tuple[str, ...] = (), **config: Any) -> Job:
        return new_job(
            f"{disk_prefix}-{number}",
            tmp_path / f"code-{number}",
            Path(shard_steps.__file__).read_text(),
            "map_marked",
            config={"told": str(told), **config},
            resources=cpu(1),
            env=env,
        )

    return new


@pytest.mark.long
def test_jobs_that_hold_all_cpus_map_their_shards_all_the_same(
    cluster: Cluster, mapping: NewJob, told: Path, gate: Path
) -> None:
    jobs = [submit(cluster, mapping(number, maps="mark", shards=6, gate=str(gate))) for number in range(2)]
    wait_until(lambda: len(list(told.glob("job-*"))) == 2, "both jobs to hold their CPU", END_TIMEOUT_S)
    gate.unlink()
    assert [job.ended().status for job in jobs] == [JobStatus.SUCCEEDED] * 2, [job.logs() for job in jobs]
    assert numbers_told(told) == [0, 1, 2, 3, 4, 5]


@pytest.mark.long
def test_a_job_uses_a_cpu_that_is_free_beyond_its_own(cluster: Cluster, mapping: NewJob) -> None:
    job = submit(cluster, mapping(maps="meet", shards=4, meets=2))
    assert job.ended().status is JobStatus.SUCCEEDED, job.logs()


@pytest.mark.long
def test_shards_get_their_steps_secrets_and_print_into_the_log_of_the_attempt_once_and_without_them(
    cluster: Cluster, mapping: NewJob, told: Path, tmp_path: Path
) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "SHARD_TOKEN").write_text("s3cr3t-of-a-shard\n")
    asked = mapping(maps="tell_variable", shards=3, variable="SHARD_TOKEN", env=("SHARD_TOKEN",))
    job = submit(cluster, asked, environ={"MARIN_SECRETS_DIR": str(secrets)})
    assert job.ended().status is JobStatus.SUCCEEDED, job.logs()
    assert {(told / str(number)).read_text() for number in range(3)} == {"s3cr3t-of-a-shard"}
    log = Path(log_path(asked.output_path, 1)).read_text()
    assert sorted(line for line in log.splitlines() if "has" in line) == [f"shard {n} has ***" for n in range(3)]
    assert log in job.logs()
    assert "s3cr3t" not in job.logs()


@pytest.mark.long
def test_shards_end_with_a_job_that_is_stopped(cluster: Cluster, mapping: NewJob, told: Path) -> None:
    asked = mapping(maps="wait", shards=2)
    job = submit(cluster, asked)
    wait_until(lambda: numbers_told(told) == [0, 1], "two shards to be at work")
    workers = [int((told / str(number)).read_text()) for number in range(2)]
    job.stop()
    assert job.ended().status is JobStatus.STOPPED
    wait_until(lambda: not any(map(alive, workers)), "the shards to be gone", timeout_s=10)
    assert read_attempt(asked.output_path, 1)["error"] == "stopped from outside (SIGTERM)"
