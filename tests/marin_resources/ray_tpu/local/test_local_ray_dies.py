"""The raylet of a run's own Ray dies, by itself or with its agent: Ray is started again, and the steps are retried."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from running import ROOT, alive
from toy_steps import calls

RUN = """
import asyncio, logging, sys
sys.path.insert(0, {support!r})
import toy_steps
from toy_steps import toy
from marin_assets.assets.body.request import build_request
from marin_assets.step.graph import build_graph
from marin_resources.orchestrator.produce import RunCallbacks, produce
from marin_resources.ray_tpu.local.backend import LocalBackend
from marin_resources.storage.output.store import Store

logging.basicConfig(level=logging.WARNING)
backend, store = LocalBackend(cpus=2), Store({prefix!r})

def produced(step):
    graph = build_graph([step])
    request = build_request(graph[step], graph, store, "run-1")
    callbacks = RunCallbacks(log=lambda line: print(line, flush=True), on_log=lambda line: None)
    return produce(request, store, lambda: backend, callbacks=callbacks)

async def main():
    beside = asyncio.create_task(produced(toy("beside", toy_steps.wait_the_first_time, gate={folder!r} + "/beside")))
    while not toy_steps.Path({folder!r}, "beside").exists():
        await asyncio.sleep(0.05)
    killer = await produced(toy("killer", toy_steps.kill_ray_once, note={daemon!r}, gate={folder!r} + "/killer"))
    after = await produced(toy("after"))
    print("LOST", killer.lost_workers, (await beside).lost_workers, after.lost_workers)

asyncio.run(main())
backend.shutdown()
"""


@pytest.mark.long
@pytest.mark.parametrize("daemon", ["raylet", "RuntimeEnvAgent", "gcs_server"])
def test_the_steps_of_a_run_whose_ray_dies_are_retried_in_another_ray(
    tmp_path: Path, prefix: Path, daemon: str
) -> None:
    script = RUN.format(support=str(ROOT / "tests/support"), prefix=str(prefix), folder=str(tmp_path), daemon=daemon)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=240)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    # a raylet that ends with its agent kills its workers before it is gone: the next attempt may be lost too
    lost = re.search(r"LOST (\d) (\d) 0", ended.stdout)
    assert lost is not None, ended.stdout
    assert {*lost.groups()} <= ({"1"} if daemon == "raylet" else {"1", "2"})
    assert ended.stdout.count("trying again (1 of 3)") == 2
    assert ended.stderr.count("Ray is started again") == 1
    assert Counter(name.partition("-")[0] for name in calls(prefix))["after"] == 1
    assert not alive(int((tmp_path / "beside").read_text()))
