"""A job, and Ray's version, as the Jobs API reports them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class JobStatus(enum.StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @property
    def is_terminal(self) -> bool:
        return self not in (JobStatus.PENDING, JobStatus.RUNNING)

    @property
    def is_waiting(self) -> bool:
        """Whether it has not begun yet."""
        return self is JobStatus.PENDING


@dataclass(frozen=True, kw_only=True)
class RayVersion:
    ray_version: str
    session: str
    """Identifies one head among its successors at the same address."""


@dataclass(frozen=True, kw_only=True)
class JobInfo:
    submission_id: str
    status: JobStatus
    message: str
    """Ray's message; of a failed job, with the end of its log. "" if it has none."""
    error_type: str | None
    exit_code: int | None
    submitted_at_s: float | None
    """Seconds since 1970."""
    ended_at_s: float | None
    metadata: Mapping[str, str]
    entrypoint: str
    runtime_env: Mapping[str, Any] = field(default_factory=dict)
    node_id: str | None
    """The node of its entry point; None until that runs."""


def parse_job_info(fields: Mapping[str, Any]) -> JobInfo:
    """Raise KeyError or ValueError if the fields do not describe a job."""
    return JobInfo(
        submission_id=fields["submission_id"],
        status=JobStatus(fields["status"]),
        message=fields.get("message") or "",
        error_type=fields.get("error_type"),
        exit_code=fields.get("driver_exit_code"),
        submitted_at_s=_seconds(fields.get("start_time")),
        ended_at_s=_seconds(fields.get("end_time")),
        metadata=fields.get("metadata") or {},
        entrypoint=fields["entrypoint"],
        runtime_env=fields.get("runtime_env") or {},
        node_id=fields.get("driver_node_id"),
    )


def _seconds(milliseconds: int | None) -> float | None:
    return milliseconds / 1000 if milliseconds else None
