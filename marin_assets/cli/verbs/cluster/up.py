"""Bring a cluster of the catalogue up: its head, by Ray's launcher, then its slices.

The slices are those of infra/clusters.toml if the cluster has none yet. Again, it brings the head in line with its
file, and changes no slice.
"""

from __future__ import annotations

import argparse

from marin_assets.cli.verbs.cluster.support.commands import call, ray, rendered_file
from marin_assets.cli.verbs.cluster.support.slices import add_name, controller_of, in_sentences, print_report
from marin_assets.run.output import print_line, print_stderr


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    parser.add_argument("--no-slices", "--no_slices", action="store_true", help="the head alone")
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="only print what would be done")


def run(options: argparse.Namespace) -> int:
    from marin_resources.clusters.catalogue import find_cluster  # late, for its weight

    cluster = find_cluster(options.name)
    command = ray("up", "--yes", "--no-config-cache", str(rendered_file(cluster)))
    if code := call(command, dry_run=options.dry_run):
        print_stderr(f"The head of {cluster.name} is not up: Ray's launcher ended with {code}. No slice is requested.")
        return 1
    print_line(f"the dashboard of {cluster.name} is {cluster.dashboard}, for MARIN_CLUSTER")
    return 0 if options.no_slices else in_sentences(lambda: _slices(options))


def _slices(options: argparse.Namespace) -> int:
    # late, for their weight
    from marin_resources.clusters.catalogue import find_cluster
    from marin_resources.infra.slices.desired_state import Wanted, change, load, path_of

    cluster = find_cluster(options.name)
    path = path_of(cluster)

    def all_of_them(target: Wanted) -> Wanted:
        if not target.slots:
            for group in cluster.slices:
                target = target.add(group.type, group.capacity, group.reservation, group.count)
        return target

    if options.dry_run:
        for slot in all_of_them(load(path)[0]).slots:
            print_line(f"request {slot.name(cluster)} ({slot.reservation or slot.capacity})")
        return 0
    with controller_of(cluster) as controller:
        controller.begin()
        change(path, all_of_them)
        return print_report(controller.step())
