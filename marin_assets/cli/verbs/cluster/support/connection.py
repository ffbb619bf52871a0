"""The connection of the verbs of `marin cluster`: the option, the settings, and one sentence if a request fails."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from marin_assets.run.options import FailedError, OptionError
from marin_resources.host.process import user_name
from marin_resources.ray_tpu.cluster.settings import ClusterSettings

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi

NEAREST_JOBS = 3


def add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster",
        metavar="NAME",
        help="in the catalogue, or the dashboard's URL, or local (default: MARIN_CLUSTER of the environment)",
    )


def settings_from(options: argparse.Namespace) -> ClusterSettings:
    """Return the settings of the selected cluster. Raise SettingError, or OptionError if none is selected."""
    from marin_resources.ray_tpu.cluster.settings_from_env import settings_from_env

    if options.cluster is not None and not options.cluster.strip():
        raise OptionError("--cluster is empty, expected the dashboard's URL, such as http://10.0.0.5:8265, or local.")
    settings = settings_from_env(options.cluster)
    if settings is None:
        raise OptionError(
            "No cluster is selected. Set MARIN_CLUSTER, or pass --cluster: its name in the catalogue, the dashboard's "
            "URL, or local."
        )
    return settings


def call_cluster(settings: ClusterSettings, call: Callable[[JobsApi], Awaitable[int]]) -> int:
    """Return the exit code of `call`. Raise FailedError if the cluster does not answer, or rejects the request."""
    from marin_resources.ray_tpu.cluster.api.jobs_api import (
        ApiError,
        NoSuchJobError,
        RefusedError,
        UnreachableError,
        connect,
    )
    from marin_resources.ray_tpu.cluster.errors import OutageError

    async def connected() -> int:
        async with connect(settings) as api:
            return await call(api)

    try:
        return asyncio.run(connected())
    except (UnreachableError, RefusedError, NoSuchJobError, ApiError, OutageError) as error:
        raise FailedError(str(error)) from error


async def require_job(api: JobsApi, job: str) -> None:
    """Raise NoSuchJobError, with the jobs of the nearest ids, if the cluster does not have this job."""
    from marin_resources.ray_tpu.cluster.api.jobs_api import NoSuchJobError

    try:
        await api.info(job)
    except NoSuchJobError:
        ids = [info.submission_id for info in await api.list()]
        near = [submission_id for submission_id in ids if job and job in submission_id] or difflib.get_close_matches(
            job, ids, NEAREST_JOBS, 0.3
        )
        hint = f" The nearest are {', '.join(near[:NEAREST_JOBS])}." if near else ""
        raise NoSuchJobError(f"The cluster has no job {job!r}.{hint} `marin cluster jobs --all` lists them.") from None


def user_at_host() -> str:
    """The user of this command, for display to others."""
    return f"{user_name() or 'someone'}@{os.uname().nodename}"
