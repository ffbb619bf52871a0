"""The handle of a job, its id, and the fields of its submission to Ray."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from typing import Any

from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.cluster.code.code import Code
from marin_resources.ray_tpu.cluster.settings import NODE_TYPES_VARIABLE, START_TIMEOUT_VARIABLE, ClusterSettings
from marin_resources.ray_tpu.environment.extras import FRESH_PROCESS_EXTRAS
from marin_resources.storage.output.notes.job_notes import JobNote, Submitter
from marin_resources.wire.outcome import Outcome
from marin_resources.wire.task import Task

FORWARDED_VARIABLES = (
    "MARIN_LEASE_TTL_S",
    "MARIN_MIRROR_PREFIXES",
    "MARIN_MIRROR_PRICES",
    "MARIN_MIRROR_BUDGET_GB",
    "MARIN_CONTACT",
    "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT",
    "STORAGE_EMULATOR_HOST",
)
"""Environment variables of the deployment that are copied into a job. All users of the cluster can read them."""
DRIVER_CPUS = 0.1
"""CPUs of a job whose work is done by a Ray task with a device."""
MAX_NAME_CHARACTERS = 60


@dataclass(eq=False, kw_only=True)
class JobHandle:
    note: JobNote
    note_path: str
    output_path: str
    address: str
    """URL of the cluster's dashboard."""
    submitted_here: bool
    """Whether this run submitted the job, and did not join another run's."""
    owned: bool
    """Whether the job is stopped when this run is terminated."""
    python: str = ""
    """Python on the node. Empty for a job that another run submitted."""
    refusal: Outcome | None = None
    """The outcome, if the cluster rejected the submission."""

    @property
    def job(self) -> str:
        """The id of its job on the cluster: its own, or its batch job's."""
        return self.note.job

    @property
    def id(self) -> str:
        """The id of its job for people, also if a batch job runs it."""
        return self.note.submission_id

    def describe(self) -> str:
        joined = "" if self.submitted_here else f", which {describe_submitter(self.note.by)} submitted"
        return f"as cluster job {self.id} on {self.address}{joined}"

    def describe_detached(self) -> str:
        """That the job keeps running without this run, as a clause and a sentence."""
        why = "" if self.owned else f", as {describe_submitter(self.note.owner)} waits for it"
        return (
            f"its cluster job {self.id} keeps running on {self.address}{why}. Materialize the step again to attach to "
            f"it; `marin cluster logs {self.id}` shows what it prints, `marin cluster stop-job {self.id}` ends it."
        )


def submission_id(task: Task) -> str:
    """The id of a task's job, the same for the same attempt at the same output, so that it is submitted once.

    Step name, version, digest of the path, attempt: "documents-fineweb-8c2f3a-0b6ed9c4-a3".
    """
    name = re.sub(r"[^A-Za-z0-9_]+", "-", task.output.label).strip("-")[:MAX_NAME_CHARACTERS]
    place = hashlib.sha256(f"{task.path} {task.output.identity}".encode()).hexdigest()[:8]
    return f"{name}-{task.output.version}-{place}-a{task.attempt}"


def runtime_env_of(code: Code, settings: ClusterSettings) -> dict[str, Any]:
    """Ray's runtime environment of a job with this code."""
    variables = {name: os.environ[name] for name in FORWARDED_VARIABLES if name in os.environ}
    variables[START_TIMEOUT_VARIABLE] = f"{settings.start_timeout_s:g}"
    variables |= settings.variables
    if settings.node_types:
        variables[NODE_TYPES_VARIABLE] = json.dumps(settings.node_types)
    return {**code.runtime_env(), "env_vars": variables}


def entrypoint_resources(task: Task) -> Resources:
    """The requests of the job's own process: the step's, or `DRIVER_CPUS` if a Ray task with a device does the work."""
    return Resources(cpus=DRIVER_CPUS) if needs_device(task) else task.resources


def is_small(task: Task) -> bool:
    """Whether a batch job runs the step, at a fraction of a job's cost: by its own setting, else if it requests no more
    than one CPU, and its extras do not load JAX or torch."""
    if task.own_job is not None:
        return not task.own_job
    resources = task.resources
    plain = resources.cpus <= 1 and not resources.memory_bytes and not needs_device(task)
    return plain and not task.packages and FRESH_PROCESS_EXTRAS.isdisjoint(task.extras)


def needs_device(task: Task) -> bool:
    return task.resources.gpu is not None or task.resources.tpu is not None


def metadata_of(task: Task, note: JobNote) -> dict[str, str]:
    """The job's metadata on the cluster, by which `marin cluster jobs` and the sensor recognise a step."""
    fields = {
        "step": task.output.label,
        "output": task.path,
        "attempt": str(task.attempt),
        "run_id": task.run_id or "",
        "user": note.by.user or "",
        **({"device": task.resources.describe()} if needs_device(task) else {}),
    }
    return {f"marin/{name}": value for name, value in fields.items()}


def describe_submitter(submitter: Submitter) -> str:
    run = f"Dagster run {submitter.run_id}" if submitter.run_id else f"process {submitter.pid}"
    return f"{run} of {submitter.user or 'someone'} on {submitter.host}"
