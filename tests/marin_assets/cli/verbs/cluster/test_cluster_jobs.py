"""The table and the JSON of `marin cluster jobs`."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from jobs_there import JobsThere

from marin_assets.cli.verbs.cluster.jobs import lines_of
from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo, JobStatus
from marin_resources.types.durations import readable_duration

Marin = Callable[..., tuple[int, str, str]]
WAITS = """
import json, os, time
import ray
from marin_resources.hardware.resources import tpu
from marin_resources.ray_tpu.slices.bundles import group_of
from marin_resources.ray_tpu.slices.reservation import request

ray.init()
job = json.loads(os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"])["metadata"]["job_submission_id"]
groups = request(group_of(tpu("v4-16")), 2, job)
print(f"requested {len(groups)} groups", flush=True)  # Ray logs this program too
time.sleep(60)
"""
OF_A_STEP = {
    "marin/step": "toy/data",
    "marin/output": "gs://bucket/toy/data-1",
    "marin/attempt": "3",
    "marin/run_id": "a-run",
    "marin/user": "ann@laptop",
}


def test_it_lists_what_runs_and_on_demand_what_has_ended(marin: Marin, jobs_there: JobsThere) -> None:
    ended = jobs_there.run("print('done')")
    jobs_there.until_ended(ended)
    runs = jobs_there.run("import time; time.sleep(60)", metadata=OF_A_STEP)
    jobs_there.until_running(runs)
    try:
        code, out, err = marin("cluster", "jobs")
        assert code == 0
        [line] = [line for line in out.splitlines() if runs in line]
        assert line.split()[:5] == [runs, "RUNNING", "toy/data", "3", "ann@laptop"]
        assert out.split()[:3] == ["job", "state", "step"]
        assert ended not in out
        assert "more ha" in err
        assert "ended: --all" in err
        both = marin("cluster", "jobs", "--all")[1]
        assert both.index(runs) < both.index(ended), "the newest is first"
        [line] = [line for line in both.splitlines() if ended in line]
        assert line.split()[1] == "SUCCEEDED"
    finally:
        jobs_there.end(runs)


@pytest.mark.long
def test_a_script_is_reported_in_json(marin: Marin, jobs_there: JobsThere) -> None:
    job = jobs_there.run("raise SystemExit(7)", metadata=OF_A_STEP)
    ended = jobs_there.until_ended(job)
    told = json.loads(marin("cluster", "jobs", "--all", "--json")[1])
    assert told["cluster"] == jobs_there.address
    [mine] = [entry for entry in told["jobs"] if entry["job"] == job]
    assert (mine["state"], mine["exit_code"], mine["attempt"], mine["who"]) == ("FAILED", 7, 3, "ann@laptop")
    assert (mine["step"], mine["output"], mine["run_id"]) == ("toy/data", "gs://bucket/toy/data-1", "a-run")
    assert (mine["entrypoint"], mine["message"]) == (ended.entrypoint, ended.message)
    assert mine["since"] <= mine["ended"]
    assert job not in {entry["job"] for entry in json.loads(marin("cluster", "jobs", "--json")[1])["jobs"]}


def test_a_job_of_another_kind_is_listed_by_its_command() -> None:
    job = JobInfo(
        submission_id="raysubmit_1",
        status=JobStatus.PENDING,
        message=None,
        error_type=None,
        exit_code=None,
        submitted_at_s=None,
        ended_at_s=None,
        metadata={},
        entrypoint="python   train.py\n --model a-very-long-name-indeed",
        node_id=None,
    )
    head, line = lines_of([job], now_s=0.0)
    assert line.split("  ")[:2] == ["raysubmit_1", "PENDING"]
    assert "python train.py --model a-very-long-nam…" in line
    assert head.index("attempt") == line.index("-  ", line.index("…"))
    assert list(lines_of([], now_s=0.0)) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("device", "said"),
    [("1 CPU, 1 slice(s) of TPU v4-16", "waiting for a slice"), ("1 CPU, 1 GPU", "waiting for a GPU")],
)
def test_a_job_that_waits_for_its_devices_says_so(marin: Marin, jobs_there: JobsThere, device: str, said: str) -> None:
    """By the placement group that the job has requested, which Ray cannot place."""
    job = jobs_there.run(WAITS, metadata={**OF_A_STEP, "marin/device": device})
    try:
        jobs_there.until_it_says(job, "requested 2 groups")
        [line] = [line for line in marin("cluster", "jobs")[1].splitlines() if job in line]
        assert said in line
        told = json.loads(marin("cluster", "jobs", "--json")[1])
        [mine] = [entry for entry in told["jobs"] if entry["job"] == job]
        assert (mine["state"], mine["waits_for"]) == ("RUNNING", device)
    finally:
        jobs_there.end(job)


@pytest.mark.parametrize(
    ("duration_s", "said"),
    [(-3, "0 s"), (59.4, "59 s"), (60, "1 min 0 s"), (3599.6, "1 h 0 min"), (90_061, "25 h 1 min")],
)
def test_a_duration_is_two_words(duration_s: float, said: str) -> None:
    assert readable_duration(duration_s) == said
