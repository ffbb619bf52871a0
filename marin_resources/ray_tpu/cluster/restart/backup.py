"""Back the unfinished jobs of a cluster up, so that they can be submitted again to its next head.

In:  a cluster.   Out: a JSON file with its address, the session of its head, and for each job what submits it again.

A step has a note beside its output, which has all of it: the file names the note. A command has its entry point and
runtime environment. A batch job has none: its steps have notes, and the runs that wait for them start another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo, JobsApi
from marin_resources.ray_tpu.cluster.batch_jobs.steps import BATCH_JOB, steps_of
from marin_resources.storage.control import control
from marin_resources.storage.output.notes.job_notes import note_path
from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson

FORMAT_VERSION = 1
CPUS, MEMORY = "marin/cpus", "marin/memory_bytes"
"""Metadata of a command's job: what its entry point reserves, which Ray does not report."""


class BackupError(ControlFileError):
    """A backup of jobs that cannot be used: one sentence with its path."""


FORMAT = VersionedJson(
    kind="backup of jobs",
    newest=FORMAT_VERSION,
    error=BackupError,
    shape={
        **dict.fromkeys(("address", "session", "at"), Required(str)),
        "steps": Required([str]),
        "commands": Required([{"id": Required(str), "entrypoint": Required(str), "runtime_env": Required(dict)}]),
    },
)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A job that is no step."""

    id: str
    entrypoint: str
    runtime_env: Mapping[str, Any]
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def cpus(self) -> float | None:
        """CPUs that its entry point reserves; None if its submitter named none."""
        cpus = self.metadata.get(CPUS)
        return None if cpus is None else float(cpus)

    @property
    def memory_bytes(self) -> int | None:
        memory_bytes = self.metadata.get(MEMORY)
        return None if memory_bytes is None else int(memory_bytes)

    @property
    def package(self) -> str | None:
        """URI of its code, if that was shipped."""
        uri = self.runtime_env.get("working_dir")
        return uri if isinstance(uri, str) and uri.startswith("gcs://") else None


@dataclass(frozen=True, kw_only=True)
class Backup:
    """The unfinished jobs of one head."""

    address: str
    session: str
    at: str
    """ISO 8601, UTC."""
    steps: tuple[str, ...] = ()
    """Paths of the notes of steps."""
    commands: tuple[Command, ...] = ()


async def take_backup(api: JobsApi) -> Backup:
    """The jobs of the cluster that run or wait."""
    session = (await api.version()).session
    jobs = [job for job in await api.list() if not job.status.is_terminal]
    steps = [path for job in jobs if (path := _note_of(job)) is not None]
    steps += [step.note_path for step in await steps_of(jobs)]
    commands = [_command(job) for job in jobs if _note_of(job) is None and BATCH_JOB not in job.metadata]
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return Backup(address=api.address, session=session, at=at, steps=tuple(steps), commands=tuple(commands))


def write_backup(path: str, backup: Backup) -> None:
    """Write the file. Raises ConflictError if it exists."""
    text = json.dumps({"format_version": FORMAT_VERSION, **asdict(backup)}, indent=1)
    control.write(path, text.encode(), expected=None)


def read_backup(path: str) -> Backup:
    """Read the file. Raises BackupError and UnavailableError."""
    file = control.read(path)
    if file is None:
        raise BackupError(f"There is no backup of jobs at {path!r}.")
    fields = FORMAT.parse(file.data, path)
    return Backup(
        address=fields["address"],
        session=fields["session"],
        at=fields["at"],
        steps=tuple(fields["steps"]),
        commands=tuple(Command(**command) for command in fields["commands"]),
    )


def _note_of(job: JobInfo) -> str | None:
    """The path of the note of a step's job; None for another job."""
    output, attempt = job.metadata.get("marin/output"), job.metadata.get("marin/attempt", "")
    if output is None or not attempt.isdecimal() or BATCH_JOB in job.metadata:
        return None
    return note_path(output, int(attempt))


def _command(job: JobInfo) -> Command:
    environment = {name: value for name, value in job.runtime_env.items() if not name.startswith("_")}
    return Command(
        id=job.submission_id, entrypoint=job.entrypoint, runtime_env=environment, metadata=dict(job.metadata)
    )
