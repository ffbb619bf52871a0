"""Print the output of a job so far; with --follow, also new output until the job has ended."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from marin_assets.cli.verbs.cluster.support.batch_steps import find_step, show_log
from marin_assets.cli.verbs.cluster.support.connection import add_cluster, call_cluster, require_job, settings_from
from marin_assets.run.output import print_raw, print_stderr

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="its id, as `marin cluster jobs` lists it")
    add_cluster(parser)
    parser.add_argument("--follow", action="store_true", help="until it has ended")


def run(options: argparse.Namespace) -> int:
    from marin_assets.cli.verbs.cluster.support.job_output import follow

    settings = settings_from(options)

    async def show(api: JobsApi) -> int:
        if (step := await find_step(api, options.job)) is not None:
            await show_log(step, follow=options.follow)
            return 0
        await require_job(api, options.job)
        if options.follow:
            info = await follow(api, settings, options.job)
            print_stderr(f"job {options.job} has ended: {info.status}")
        else:
            print_raw(await api.logs(options.job))
        return 0

    return call_cluster(settings, show)
