"""A job as whoever waits for it knows it, and what is asked of Ray for it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from marin_resources.ray_tpu.cluster.code.code import Code
from marin_resources.storage.output.job_notes import JobNote, Submitter
from marin_resources.wire.task import Task

PASSED_ON = (
    "MARIN_LEASE_TTL_S",
    "MARIN_MIRROR_PREFIXES",
    "MARIN_MIRROR_PRICES",
    "MARIN_MIRROR_BUDGET_GB",
    "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT",
    "STORAGE_EMULATOR_HOST",
)
"""Variables of the deployment that a job gets, if they are set. Everybody who may use the cluster can read them."""
DRIVER_CPUS = 0.1
"""Of a job whose work is done by a Ray task with a device."""


@dataclass(eq=False, kw_only=True)
class JobHandle:
    note: JobNote
    path: str
    """The note's."""
    output_path: str
    address: str
    submits: bool
    """The job is this handle's to submit."""
    owned: bool
    """It ends with this run, if that is terminated."""
    python: str = ""

    @property
    def job(self) -> str:
        return self.note.submission_id

    def describe(self) -> str:
        joined = "" if self.submits else f", which {named(self.note.by)} submitted"
        return f"as job {self.job} on {self.address}{joined}"


def runtime_env_of(code: Code) -> dict[str, Any]:
    """Ray's runtime environment of a job with this code."""
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**code.runtime_env(), **({"env_vars": passed} if passed else {})}


def entry_cpus(task: Task) -> float:
    """What the job's own process asks for: the step's CPUs, or little if a Ray task with a device does the work."""
    return DRIVER_CPUS if asks_a_device(task) else task.resources.cpus


def asks_a_device(task: Task) -> bool:
    return task.resources.gpu is not None or task.resources.tpu is not None


def metadata_of(task: Task, handle: JobHandle) -> dict[str, str]:
    told = {"step": task.output.name, "output": task.path, "attempt": str(task.attempt), "run_id": task.run_id or ""}
    return {f"marin/{name}": value for name, value in {**told, "user": handle.note.by.user or ""}.items()}


def named(submitter: Submitter) -> str:
    run = f"Dagster run {submitter.run_id}" if submitter.run_id else f"process {submitter.pid}"
    return f"{run} of {submitter.user or 'someone'} on {submitter.host}"
