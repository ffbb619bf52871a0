"""What Ray tells of a job, and of itself."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class Version:
    ray_version: str
    session: str
    """Tells one head from its successor at the same address."""


@dataclass(frozen=True, kw_only=True)
class JobInfo:
    submission_id: str
    status: JobStatus
    message: str
    """Ray's words; of a job that failed, with the end of its log. "" if it has none."""
    error_type: str | None
    exit_code: int | None
    submitted_at_s: float | None
    """Seconds since 1970."""
    ended_at_s: float | None
    metadata: Mapping[str, str]
    entrypoint: str
    node_id: str | None
    """Where its entry point runs; None until it does."""


def job_info(answer: Mapping[str, Any]) -> JobInfo:
    """Raises KeyError or ValueError for an answer that is no job."""
    return JobInfo(
        submission_id=answer["submission_id"],
        status=JobStatus(answer["status"]),
        message=answer.get("message") or "",
        error_type=answer.get("error_type"),
        exit_code=answer.get("driver_exit_code"),
        submitted_at_s=_seconds(answer.get("start_time")),
        ended_at_s=_seconds(answer.get("end_time")),
        metadata=answer.get("metadata") or {},
        entrypoint=answer["entrypoint"],
        node_id=answer.get("driver_node_id"),
    )


def _seconds(milliseconds: int | None) -> float | None:
    return milliseconds / 1000 if milliseconds else None
