"""The cluster of this machine, from the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from jobs_there import JobsThere

Marin = Callable[..., tuple[int, str, str]]


def test_where_it_is_and_how_to_use_it(marin: Marin, jobs_there: JobsThere) -> None:
    code, out, _ = marin("cluster", "local", "status")
    assert code == 0
    assert f"The local cluster at {jobs_there.address} answers: 2 CPUs" in out
    assert "export MARIN_CLUSTER=local" in out


def test_one_that_is_up_is_found(marin: Marin, jobs_there: JobsThere) -> None:
    code, out, _ = marin("cluster", "local", "up")
    assert code == 0
    assert jobs_there.address in out


def test_one_of_another_size_is_reported(marin: Marin, jobs_there: JobsThere) -> None:
    code, out, err = marin("cluster", "local", "up", "--cpus", "7")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "is up with 2 CPUs, and 7 are requested" in err


def test_where_there_is_none(marin: Marin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_STATE_DIR", str(tmp_path))
    assert marin("cluster", "local", "status")[:2] == (
        1,
        "No local cluster is up. Start it: marin cluster local up\n",
    )
    assert marin("cluster", "local", "down")[:2] == (0, "No local cluster was up.\n")
    assert marin("cluster", "preempt", "pod-1") == (
        1,
        "",
        "The local cluster has no fake slice 'pod-1' that is up. Start one: marin cluster local up --fake v4-16\n",
    )
    code, _, said = marin("cluster", "preempt", "pod-1", "--notice", "soon")
    assert code == 2
    assert "argument --notice: got 'soon', expected seconds of at least 0, such as 30" in said
