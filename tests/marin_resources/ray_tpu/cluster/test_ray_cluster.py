"""The tests' cluster really fails as its methods say, so that tests of outages test outages."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import ray_cluster
from ray_cluster import Cluster

from marin_resources.ray_tpu.cluster.api.jobs_api import UnreachableError, connect
from marin_resources.ray_tpu.cluster.local.local_cluster import find
from marin_resources.ray_tpu.cluster.local.processes import processes_of

BEATS = "while true; do date +%N >> {file}; sleep 0.2; done"
STARTS_ONE = (
    "import sys; from ray_cluster import Cluster; cluster = Cluster(cpus=1); print(cluster.state, flush=True);"
    "sys.stdin.read()"
)


def until(so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not so():
        assert time.monotonic() < give_up
        time.sleep(0.1)


@pytest.mark.long
def test_a_job_on_another_node_goes_on_without_its_head_and_the_next_head_knows_nothing_of_it(tmp_path: Path) -> None:
    file = tmp_path / "beats"

    async def begin() -> str:
        async with connect(cluster.settings()) as api:
            await api.submit(
                submission_id="beats",
                entrypoint=BEATS.format(file=file),
                runtime_env={},
                metadata={},
                num_cpus=0,
                memory_bytes=None,
                resources={"elsewhere": 1},
            )
            return (await api.version()).session

    async def look() -> tuple[str, list[str]]:
        async with connect(cluster.settings()) as api:
            return (await api.version()).session, [job.submission_id for job in await api.list()]

    def goes_on() -> bool:
        before = file.stat().st_size
        until(lambda: file.stat().st_size > before)
        return True

    with Cluster(cpus=1) as cluster:
        node = cluster.add_node({"elsewhere": 1})
        session = asyncio.run(begin())
        until(file.exists)
        cluster.kill_head()
        assert goes_on()
        with pytest.raises(UnreachableError):
            asyncio.run(look())
        cluster.restart_head()
        assert goes_on()
        next_session, jobs = asyncio.run(look())
        assert next_session != session
        assert jobs == []
        cluster.kill_node(node)
        size = file.stat().st_size
        cluster.add_node({"elsewhere": 1})
        assert file.stat().st_size == size
        processes = processes_of(cluster.local)
    assert processes
    assert processes_of(cluster.local) == []


@pytest.mark.long
def test_the_cluster_of_a_test_process_that_is_killed_ends_by_itself() -> None:
    test = subprocess.Popen(
        [sys.executable, "-c", STARTS_ONE],
        cwd=Path(ray_cluster.__file__).parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert test.stdout is not None
    state = Path(test.stdout.readline().strip())
    cluster = find(state=state)
    assert cluster is not None
    test.kill()
    test.wait()
    until(lambda: not state.exists())
    assert processes_of(cluster) == []
