"""Take a cluster down: its slices first, then its head and its other workers. All its jobs end.

Outputs and checkpoints are in the prefix, and remain. It returns when Google has deleted everything.
"""

from __future__ import annotations

import argparse
import time

from marin_assets.cli.verbs.cluster.support.commands import call, ray, rendered_file
from marin_assets.cli.verbs.cluster.support.slices import add_name, controller_of, in_sentences, print_report
from marin_assets.run.options import FailedError, OptionError
from marin_assets.run.output import print_line, print_stderr

TIMEOUT_S = 1800.0
PAUSE_S = 10.0


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    parser.add_argument("--yes", action="store_true", help="all jobs may end")
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="only print what would be deleted")


def run(options: argparse.Namespace) -> int:
    from marin_resources.clusters.catalogue import find_cluster  # late, for its weight

    if not (options.yes or options.dry_run):
        raise OptionError(f"marin cluster down: all jobs on {options.name} end. Pass --yes, or look with --dry-run.")
    cluster = find_cluster(options.name)
    command = ray("down", "--yes", str(rendered_file(cluster)))
    try:
        slices = in_sentences(lambda: _slices(options))
    except FailedError as error:  # the head is taken down all the same
        print_stderr(str(error))
        slices = 1
    head = call(command, dry_run=options.dry_run)
    if head:
        print_stderr(f"The head of {cluster.name} may be up still: Ray's launcher ended with {head}.")
    return 1 if slices or head else 0


def _slices(options: argparse.Namespace) -> int:
    # late, for their weight
    from dataclasses import replace

    from marin_resources.clusters.catalogue import find_cluster
    from marin_resources.infra.slices.desired_state import change, load, path_of

    cluster = find_cluster(options.name)
    path = path_of(cluster)
    if options.dry_run:
        for slot in load(path)[0].slots:
            print_line(f"delete {slot.name(cluster)}")
        return 0
    with controller_of(cluster) as controller:
        controller.begin()
        change(path, lambda target: replace(target, slots=()))
        ends = time.monotonic() + TIMEOUT_S
        while True:
            print_report(report := controller.step(), verbose=False)
            remaining = [existing.name for existing in controller.slices.all()]
            ours = [name for name in remaining if report.wanted.has_had(cluster, name)]
            if not ours or time.monotonic() > ends:
                break
            print_stderr(f"{len(ours)} slices are deleted")
            time.sleep(PAUSE_S)
    if remaining:
        print_stderr(
            f"{len(remaining)} slices of {cluster.name} are there still, such as {remaining[0]!r}. "
            + ("Take it down again." if ours else f"No file has them: marin cluster clean {cluster.name}.")
        )
    return 1 if remaining else 0
