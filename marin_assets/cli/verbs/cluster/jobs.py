"""List the jobs of all users of the cluster, the newest first: those that run or wait; with --all, also ended ones."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from marin_assets.cli.verbs.cluster.support.batch_steps import list_with_steps
from marin_assets.cli.verbs.cluster.support.connection import add_cluster, call_cluster, settings_from
from marin_assets.run.output import print_line, print_stderr
from marin_resources.types.durations import readable_duration

if TYPE_CHECKING:
    from marin_resources.types.durations import readable_duration
from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo, JobsApi

COLUMNS = ("job", "state", "step", "attempt", "who", "since", "duration")
STEP_CHARACTERS = 40


def add_options(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    parser.add_argument("--all", action="store_true", help="also jobs that have ended")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    settings = settings_from(options)

    async def show(api: JobsApi) -> int:
        waiting = await _waiting(api)
        jobs = sorted(await list_with_steps(api), key=lambda job: job.submitted_at_s or 0.0, reverse=True)
        shown = [job for job in jobs if options.all or not job.status.is_terminal]
        if options.json:
            listed = [_as_json(job, waiting) for job in shown]
            print_line(json.dumps({"cluster": settings.address, "jobs": listed}, indent=2, ensure_ascii=False))
        else:
            for line in lines_of(shown, time.time(), waiting):
                print_line(line)
            _print_rest(settings.address, len(shown), len(jobs))
        return 0

    return call_cluster(settings, show)


async def _waiting(api: JobsApi) -> frozenset[str]:
    """The ids of the jobs that run and whose step waits for hosts with its devices."""
    from marin_resources.ray_tpu.slices.reservation import NAME_END  # late, for its weight

    return frozenset(name.rpartition(NAME_END)[0] for name in await api.waiting_groups())


def lines_of(jobs: Sequence[JobInfo], now_s: float, waiting: Collection[str] = ()) -> Iterator[str]:
    """A table with a header; no lines without jobs. `waiting`: ids of jobs that wait for hosts with devices."""
    rows = [COLUMNS, *(_row(job, now_s, waiting) for job in jobs)] if jobs else []
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))] if rows else []
    for row in rows:
        yield "  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip()


def _print_rest(address: str, shown: int, total: int) -> None:
    if not shown:
        print_stderr(f"No job runs or waits on {address}." if total else f"The cluster {address} has had no job yet.")
    if total > shown:
        print_stderr(f"{total - shown} more {'has' if total - shown == 1 else 'have'} ended: --all")


def _row(job: JobInfo, now_s: float, waiting: Collection[str]) -> tuple[str, ...]:
    began_s = job.submitted_at_s
    since = "-" if began_s is None else datetime.fromtimestamp(began_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    duration = "-" if began_s is None else readable_duration((job.ended_at_s or now_s) - began_s)
    step = job.metadata.get("marin/step") or _short(job.entrypoint)
    attempt, user = (job.metadata.get(name) or "-" for name in ("marin/attempt", "marin/user"))
    state = f"waiting for a {_device(job)}" if _waits_for(job, waiting) else str(job.status)
    return (job.submission_id, state, step, attempt, user, since, duration)


def _waits_for(job: JobInfo, waiting: Collection[str]) -> str | None:
    """The device that a job waits for while it runs; None if it waits for nothing."""
    return job.metadata.get("marin/device") if job.submission_id in waiting and not job.status.is_terminal else None


def _device(job: JobInfo) -> str:
    return "slice" if "slice" in job.metadata["marin/device"] else "GPU"


def _short(entrypoint: str) -> str:
    line = " ".join(entrypoint.split())
    return line if len(line) <= STEP_CHARACTERS else f"{line[: STEP_CHARACTERS - 1]}…"


def _as_json(job: JobInfo, waiting: Collection[str]) -> dict[str, Any]:
    return {
        "job": job.submission_id,
        "state": str(job.status),
        "waits_for": _waits_for(job, waiting),
        "step": job.metadata.get("marin/step"),
        "output": job.metadata.get("marin/output"),
        "attempt": int(job.metadata["marin/attempt"]) if "marin/attempt" in job.metadata else None,
        "run_id": job.metadata.get("marin/run_id") or None,
        "who": job.metadata.get("marin/user") or None,
        "since": _iso(job.submitted_at_s),
        "ended": _iso(job.ended_at_s),
        "exit_code": job.exit_code,
        "message": job.message,
        "entrypoint": job.entrypoint,
    }


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
