"""What the verbs of `marin cluster` share: which cluster, how it is asked, and what is said if it does not answer."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from marin_assets.cli.options import OptionError
from marin_assets.cli.output import warn
from marin_resources.process import user_name
from marin_resources.ray_tpu.cluster.settings import ClusterSettings

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi

NEAREST_JOBS = 3


def add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster", metavar="URL", help="the dashboard's URL, or local (default: MARIN_CLUSTER of the environment)"
    )


def settings_from(options: argparse.Namespace) -> ClusterSettings:
    """The cluster that is meant. Raises SettingError, or OptionError if none is."""
    from marin_resources.ray_tpu.cluster.configured import settings_of

    if options.cluster is not None and not options.cluster.strip():
        raise OptionError("--cluster is empty, expected the dashboard's URL, such as http://10.0.0.5:8265, or local.")
    settings = settings_of(options.cluster)
    if settings is None:
        raise OptionError("No cluster is named. Set MARIN_CLUSTER, or pass --cluster: the dashboard's URL, or local.")
    return settings


def ask_cluster(settings: ClusterSettings, ask: Callable[[JobsApi], Awaitable[int]]) -> int:
    """The exit code of what is asked; 1 with one sentence if the cluster does not answer, or refuses."""
    from marin_resources.ray_tpu.cluster.api.jobs_api import (
        ApiError,
        NoSuchJobError,
        RefusedError,
        UnreachableError,
        connect,
    )
    from marin_resources.ray_tpu.cluster.outage import OutageError

    async def asked() -> int:
        async with connect(settings) as api:
            return await ask(api)

    try:
        return asyncio.run(asked())
    except (UnreachableError, RefusedError, NoSuchJobError, ApiError, OutageError) as error:
        warn(str(error))
        return 1


async def refuse_unknown(api: JobsApi, job: str) -> None:
    """Raise NoSuchJobError, with the jobs whose ids are nearest, if the cluster does not have this one."""
    from marin_resources.ray_tpu.cluster.api.jobs_api import NoSuchJobError

    try:
        await api.info(job)
    except NoSuchJobError:
        ids = [info.submission_id for info in await api.list()]
        near = [known for known in ids if job and job in known] or difflib.get_close_matches(
            job, ids, NEAREST_JOBS, 0.3
        )
        told = f" The nearest are {', '.join(near[:NEAREST_JOBS])}." if near else ""
        raise NoSuchJobError(f"The cluster has no job {job!r}.{told} `marin cluster jobs --all` lists them.") from None


def who() -> str:
    """The person at this machine, for others to read."""
    return f"{user_name() or 'someone'}@{os.uname().nodename}"
