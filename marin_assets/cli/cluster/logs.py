"""Print what a job has printed; with --follow also what it prints from now on, until it has ended."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from marin_assets.cli.cluster.connection import add_cluster, ask_cluster, refuse_unknown, settings_from
from marin_assets.cli.output import pass_on, warn

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="its id, as `marin cluster jobs` lists it")
    add_cluster(parser)
    parser.add_argument("--follow", action="store_true", help="until it has ended")


def run(options: argparse.Namespace) -> int:
    from marin_assets.cli.cluster.job_output import follow

    settings = settings_from(options)

    async def show(api: JobsApi) -> int:
        await refuse_unknown(api, options.job)
        if options.follow:
            info = await follow(api, settings, options.job)
            warn(f"job {options.job} has ended: {info.status}")
        else:
            pass_on(await api.logs(options.job))
        return 0

    return ask_cluster(settings, show)
