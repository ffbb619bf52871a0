"""Let a cluster have these slices no longer, and delete them from Google Cloud. Steps there continue elsewhere."""

from __future__ import annotations

import argparse

from marin_assets.cli.verbs.cluster.support.slices import add_name, controller_of, in_sentences, print_report
from marin_assets.run.options import OptionError


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    parser.add_argument("slices", nargs="+", metavar="SLICE", help="their names, as `marin cluster status` shows them")


def run(options: argparse.Namespace) -> int:
    return in_sentences(lambda: _remove(options))


def _remove(options: argparse.Namespace) -> int:
    # late, for their weight
    from dataclasses import replace

    from marin_resources.clusters.catalogue import find_cluster
    from marin_resources.infra.slices.desired_state import Wanted, change, load, path_of

    cluster = find_cluster(options.name)
    path = path_of(cluster)
    names = {slot.name(cluster): slot.number for slot in load(path)[0].slots}
    if unknown := [name for name in options.slices if name not in names]:
        have = ", ".join(names) or "no slice"
        raise OptionError(f"marin cluster remove-worker: {cluster.name} has no slice {unknown[0]!r}, it has {have}.")
    gone = {names[name] for name in options.slices}

    def fewer(target: Wanted) -> Wanted:
        return replace(target, slots=tuple(slot for slot in target.slots if slot.number not in gone))

    with controller_of(cluster) as controller:
        change(path, fewer)
        return print_report(controller.step())
