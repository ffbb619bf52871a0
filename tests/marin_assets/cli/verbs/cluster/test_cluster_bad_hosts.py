"""`marin cluster bad-hosts`, on a real cluster in which a job has reported hosts."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from jobs_there import JobsThere

from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus

Marin = Callable[..., tuple[int, str, str]]
REPORTS = """
import ray
from marin_resources.ray_tpu.slices.bad_hosts import bad_hosts, report_bad_host

ray.init()
for host, why in (("a/1", "TPU initialization failed"), ("b/0", "no step was reported for 3 s")):
    report_bad_host(host, why, "checkpoints/x")
assert set(bad_hosts()) == {"a/1", "b/0"}
"""


@pytest.mark.long
def test_the_hosts_that_steps_avoid_are_listed_and_lifted(marin: Marin, jobs_there: JobsThere) -> None:
    ended = jobs_there.until_ended(jobs_there.run(REPORTS))
    assert ended.status is JobStatus.SUCCEEDED, ended.message
    code, out, err = marin("cluster", "bad-hosts")
    head, *lines = out.splitlines()
    assert (code, err, head.split()) == (0, "", ["host", "since", "for", "step", "why"])
    assert [line.split()[0] for line in sorted(lines)] == ["a/1", "b/0"]
    assert "29 min" in lines[0]
    assert "checkpoints/x  " in lines[0]
    assert any(line.endswith("TPU initialization failed") for line in lines)

    code, out, err = marin("cluster", "bad-hosts", "--lift", "a/2")
    assert (code, out) == (1, "")
    assert err.startswith("No host 'a/2' is avoided on ")
    assert "a/1" in err

    code, out, _ = marin("cluster", "bad-hosts", "--lift", "a/1", "--json")
    found = json.loads(out)
    assert (code, found["lifted"], [each["host"] for each in found["bad_hosts"]]) == (0, ["a/1"], ["b/0"])
    assert 0 < found["bad_hosts"][0]["left_s"] <= 1800

    code, out, err = marin("cluster", "bad-hosts", "--lift", "all")
    assert (code, out) == (0, "steps may use b/0 again\n")
    assert err == f"No host is avoided on {jobs_there.address}.\n"
