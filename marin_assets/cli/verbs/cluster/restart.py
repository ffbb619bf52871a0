"""Restart the head of a cluster, and submit its jobs again: `marin cluster restart us-central2 --yes`.

Its unfinished jobs are backed up below the prefix, the head and the workers without a TPU restart, and
the jobs are submitted to the new head. Slices stay: their hosts join again. A step resumes its checkpoint or its
finished shards, as another attempt; a command begins again. `local` is the cluster of this machine.

If it is interrupted, --from with the backup's path submits what is left.
"""

from __future__ import annotations

import argparse
import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from marin_assets.cli.verbs.cluster.support.commands import call, ray, rendered_file
from marin_assets.cli.verbs.cluster.support.connection import call_cluster
from marin_assets.run.options import FailedError, OptionError
from marin_assets.run.output import print_line, print_stderr
from marin_resources.configuration.settings import default_prefix

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi
    from marin_resources.ray_tpu.cluster.restart.backup import Backup
    from marin_resources.ray_tpu.cluster.settings import ClusterSettings

FOLDER = ".marin/clusters"
"""Below the prefix."""
HEAD_TIMEOUT_S = 900.0
LOCAL = "local"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the cluster's name in infra/clusters.toml, or local")
    parser.add_argument("--yes", action="store_true", help="all jobs may be interrupted")
    parser.add_argument("--without-jobs", action="store_true", help="the head does not answer: no job is backed up")
    parser.add_argument(
        "--from", dest="backup", metavar="FILE", help="only submit the jobs of this backup again; restart nothing"
    )
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="only print what would be done")


def run(options: argparse.Namespace) -> int:
    # late, for their weight
    from marin_resources.clusters.catalogue import find_cluster
    from marin_resources.ray_tpu.cluster.settings_from_env import settings_from_env

    if not (options.yes or options.dry_run or options.backup):
        raise OptionError(
            f"marin cluster restart: all jobs on {options.name} are interrupted. Pass --yes, or look with --dry-run."
        )
    if options.backup and options.without_jobs:
        raise OptionError("marin cluster restart: --from has jobs, and --without-jobs has none. Pass one of them.")
    if options.name != LOCAL and not options.backup:
        rendered_file(find_cluster(options.name))  # its sentence comes before anything is done
    settings = settings_from_env(options.name)
    assert settings is not None
    if options.backup:
        return _submit_again(options.backup, settings)
    path = None if options.without_jobs else _backup_path(options.name)
    if path is not None and (code := _back_up(path, settings, dry_run=options.dry_run)):
        return code
    if code := _restart(options.name, dry_run=options.dry_run):
        how = f" Then: marin cluster restart {options.name} --from {path}" if path else ""
        print_stderr(f"The head of {options.name} was not restarted, exit code {code}. Bring it up.{how}")
        return 1
    return 0 if path is None or options.dry_run else _submit_again(path, settings)


def _backup_path(name: str) -> str:
    from marin_resources.storage.paths import join  # late, for its weight

    return join(default_prefix(), FOLDER, f"{name}-jobs-{datetime.now(UTC):%Y%m%dT%H%M%S}.json")


def _back_up(path: str, settings: ClusterSettings, *, dry_run: bool) -> int:
    # late, for their weight
    from marin_resources.ray_tpu.cluster.restart.backup import take_backup, write_backup
    from marin_resources.storage.control.protocol import ConflictError, UnavailableError

    async def back_up(api: JobsApi) -> int:
        backup = await take_backup(api)
        if not dry_run:
            await asyncio.to_thread(write_backup, path, backup)
        print_line(f"{_counted(backup)} in {path}")
        return 0

    try:
        code = call_cluster(settings, back_up)
    except FailedError as error:
        print_stderr(str(error))
        code = 1
    except (UnavailableError, ConflictError) as error:
        print_stderr(f"The backup {path!r} cannot be written ({error}).")
        code = 1
    if code:
        print_stderr("No job is backed up, and nothing is restarted. If its jobs may be lost: --without-jobs.")
    return code


def _counted(backup: Backup) -> str:
    steps, commands = len(backup.steps), len(backup.commands)
    return f"{steps} step{'' if steps == 1 else 's'}, {commands} command{'' if commands == 1 else 's'}"


def _restart(name: str, *, dry_run: bool) -> int:
    """The exit code of Ray's launcher, or of the cluster of this machine."""
    if name == LOCAL:
        from marin_resources.ray_tpu.cluster.local import local_cluster

        if dry_run:
            print_line("restart the head on this machine")
            return 0
        try:
            print_line(local_cluster.describe(local_cluster.restart()))
        except local_cluster.LocalClusterError as error:
            print_stderr(str(error))
            return 1
        return 0
    from marin_resources.clusters.catalogue import find_cluster

    file = str(rendered_file(find_cluster(name)))
    return call(ray("down", "--yes", file), dry_run=dry_run) or call(
        ray("up", "--yes", "--no-config-cache", file), dry_run=dry_run
    )


def _submit_again(path: str, settings: ClusterSettings) -> int:
    # late, for their weight
    from marin_resources.ray_tpu.cluster.restart.backup import read_backup
    from marin_resources.ray_tpu.cluster.restart.submit_again import Fate, SameHeadError, submit_again
    from marin_resources.ray_tpu.cluster.retry import RetryWhileUnreachable
    from marin_resources.storage.control.protocol import UnavailableError
    from marin_resources.types.versioned_json import ControlFileError

    retry = RetryWhileUnreachable(settings.address, HEAD_TIMEOUT_S, print_stderr)

    async def restore(api: JobsApi) -> int:
        backup = await asyncio.to_thread(read_backup, path)
        restored = await submit_again(backup, api, settings, retry, default_prefix())
        for job in restored:
            print_line(job.describe())
        if lost := sum(job.fate is Fate.LOST for job in restored):
            print_stderr(f"{lost} of {len(restored)} jobs were not submitted again. Submit them by hand.")
        return 1 if lost else 0

    try:
        return call_cluster(settings, restore)
    except (ControlFileError, UnavailableError, SameHeadError) as error:
        print_stderr(str(error))
        return 1
