"""Let a cluster have further slices of a TPU pod, and request them from Google Cloud.

They are queued resources: they come when there is capacity, and join the cluster by themselves. A preempted one is
replaced while `marin cluster monitor` runs.
"""

from __future__ import annotations

import argparse

from marin_assets.cli.verbs.cluster.support.slices import controller_of, in_sentences, print_report
from marin_assets.run.options import OptionError
from marin_assets.run.output import print_line

MOST = 1000


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("type", metavar="TYPE", help="Google's name of the type, such as v5p-64")
    parser.add_argument("--cluster", metavar="NAME", help="a cluster of infra/clusters.toml (default: the only one)")
    parser.add_argument("--count", type=int, default=1, metavar="N", help="so many slices (default: 1)")
    capacity = parser.add_mutually_exclusive_group()
    capacity.add_argument("--spot", action="store_true", help="cheap, and preempted at any moment (the default)")
    capacity.add_argument("--on-demand", "--on_demand", action="store_true", help="not preempted")
    capacity.add_argument("--reserved", metavar="RESERVATION", help="of a reservation of the project, by its name")
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="only print what would be requested")


def run(options: argparse.Namespace) -> int:
    # late, for their weight
    from marin_resources.clusters.cluster import find_slice_type_or_raise

    if not 1 <= options.count <= MOST:
        raise OptionError(f"marin cluster add-worker: --count is {options.count}, expected 1 to {MOST}.")
    if options.reserved is not None and not options.reserved.strip():
        raise OptionError("marin cluster add-worker: --reserved is empty, expected the name of a reservation.")
    kind = find_slice_type_or_raise(options.type).kind
    capacity = "reserved" if options.reserved else "on-demand" if options.on_demand else "spot"
    return in_sentences(lambda: _add(options, kind, capacity))


def _add(options: argparse.Namespace, kind: str, capacity: str) -> int:
    # late, for their weight
    import json

    from marin_resources.clusters.catalogue import cluster_with
    from marin_resources.infra.slices.desired_state import Wanted, change, load, path_of
    from marin_resources.infra.slices.request import request_of

    cluster = cluster_with(kind, options.cluster)

    def more(target: Wanted) -> Wanted:
        return target.add(kind, capacity, options.reserved or "", options.count)

    path = path_of(cluster)
    if options.dry_run:
        before, _ = load(path)
        for slot in more(before).slots[len(before.slots) :]:
            print_line(f"{slot.name(cluster)}\n{json.dumps(request_of(cluster, slot), indent=2)}")
        return 0
    with controller_of(cluster) as controller:
        controller.begin()
        target = change(path, more)
        print_line(f"{cluster.name} shall have {len(target.slots)} slices, of them {options.count} more of {kind}")
        return print_report(controller.step())
