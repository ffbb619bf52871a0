"""The output of a job, from the command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs_there import JobsThere

Marin = Callable[..., tuple[int, str, str]]
GATED = "import os, time\nprint('before')\nwhile not os.path.exists({!r}): time.sleep(0.05)\nprint('after', 'ä')"


def test_what_a_job_has_printed(marin: Marin, jobs_there: JobsThere) -> None:
    job = jobs_there.run("print('hello ä'); print('no end', end='')")
    jobs_there.until_ended(job)
    code, out, err = marin("cluster", "logs", job)
    assert (code, err) == (0, "")
    assert "hello ä\nno end" in out
    assert out == jobs_there.log(job)


@pytest.mark.long
def test_it_is_followed_until_the_job_has_ended(jobs_there: JobsThere, tmp_path: Path) -> None:
    job = jobs_there.run(GATED.format(str(tmp_path / "gate")))
    follows = subprocess.Popen(
        [sys.executable, "-m", "marin_assets.cli", "cluster", "logs", job, "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert follows.stdout is not None
    assert next(line for line in follows.stdout if line == "before\n")
    (tmp_path / "gate").touch()
    rest, err = follows.communicate(timeout=240)
    assert (rest, follows.returncode) == ("after ä\n", 0)
    assert err.splitlines()[-1] == f"job {job} has ended: SUCCEEDED"


@pytest.mark.long
def test_an_unknown_job_is_reported_with_the_nearest(marin: Marin, jobs_there: JobsThere) -> None:
    job = jobs_there.run("print('x')")
    for verb in ("logs", "stop-job"):
        code, out, err = marin("cluster", verb, f"{job}x")
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert err.startswith(f"The cluster has no job '{job}x'. The nearest are {job}")
        assert job in marin("cluster", verb, job.removeprefix("job-")[:-1])[2]
    jobs_there.until_ended(job)
