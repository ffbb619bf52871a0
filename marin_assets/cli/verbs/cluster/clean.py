"""Delete what is left of a cluster and belongs to nobody: slices that no file has, and nodes without a queued resource.

A file of wanted slices that was lost leaves the first; the second are a fault of the cloud. Without --yes they are only
shown.
"""

from __future__ import annotations

import argparse

from marin_assets.cli.verbs.cluster.support.slices import add_name, in_sentences
from marin_assets.run.output import print_line


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    parser.add_argument("--yes", action="store_true", help="delete them")


def run(options: argparse.Namespace) -> int:
    return in_sentences(lambda: _clean(options))


def _clean(options: argparse.Namespace) -> int:
    # late, for their weight
    from marin_resources.clusters.catalogue import find_cluster
    from marin_resources.infra.google import Google
    from marin_resources.infra.slices.desired_state import load, path_of
    from marin_resources.infra.slices.queued_resources import Slices

    cluster = find_cluster(options.name)
    slices = Slices(cluster, Google())
    target, _ = load(path_of(cluster))
    unlisted = [existing.name for existing in slices.all() if not target.has_had(cluster, existing.name)]
    nodes = slices.nodes_without_request()
    did = "delete" if options.yes else "would delete"
    for name in unlisted:
        print_line(f"{did} {name}: no file has it")
        if options.yes:
            slices.delete(name)
    for name in nodes:
        print_line(f"{did} the node {name}: it has no queued resource")
        if options.yes:
            slices.delete_node(name)
    if not unlisted and not nodes:
        print_line("nothing is left")
    return 0
