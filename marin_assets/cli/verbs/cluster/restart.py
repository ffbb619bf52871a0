"""Restart the head of a cluster, and its workers without a TPU: `marin cluster restart us-central2 --yes`.

Slices stay: their hosts join the new head. Its jobs end. A run that waits for a step submits it again, and the step
resumes its checkpoint or its finished shards, as another attempt; a command of `marin cluster submit` is submitted
again by hand. `local` is the cluster of this machine.
"""

from __future__ import annotations

import argparse

from marin_assets.cli.verbs.cluster.support.commands import call, ray, rendered_file
from marin_assets.run.options import OptionError
from marin_assets.run.output import print_line, print_stderr

LOCAL = "local"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the cluster's name in infra/clusters.toml, or local")
    parser.add_argument("--yes", action="store_true", help="all jobs may be interrupted")
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="only print what would be done")


def run(options: argparse.Namespace) -> int:
    """The exit code of Ray's launcher, or of the cluster of this machine. Raises OptionError without --yes."""
    if not (options.yes or options.dry_run):
        raise OptionError(
            f"marin cluster restart: all jobs on {options.name} are interrupted. Pass --yes, or look with --dry-run."
        )
    if options.name == LOCAL:
        return _restart_local(dry_run=options.dry_run)
    from marin_resources.clusters.catalogue import find_cluster  # late, for its weight

    file = str(rendered_file(find_cluster(options.name)))
    code = call(ray("down", "--yes", file), dry_run=options.dry_run) or call(
        ray("up", "--yes", "--no-config-cache", file), dry_run=options.dry_run
    )
    if code:
        print_stderr(f"The head of {options.name} was not restarted, exit code {code}. Bring it up.")
    return 1 if code else 0


def _restart_local(*, dry_run: bool) -> int:
    from marin_resources.ray_tpu.cluster.local import local_cluster  # late, for its weight

    if dry_run:
        print_line("restart the head on this machine")
        return 0
    try:
        print_line(local_cluster.describe(local_cluster.restart()))
    except local_cluster.LocalClusterError as error:
        print_stderr(str(error))
        return 1
    return 0
