"""Open a shell on the head of a cluster, or on a host of one of its slices, through Identity-Aware Proxy."""

from __future__ import annotations

import argparse

from marin_assets.cli.verbs.cluster.support.commands import call, ray, rendered_file
from marin_assets.cli.verbs.cluster.support.slices import add_name
from marin_assets.run.options import OptionError


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    parser.add_argument("slice", nargs="?", help="a slice (default: the head)")
    parser.add_argument("--worker", type=int, metavar="N", help="the host of the slice (default: 0)")
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="only print the command")


def run(options: argparse.Namespace) -> int:
    from marin_resources.clusters.catalogue import find_cluster  # late, for its weight

    cluster = find_cluster(options.name)
    if options.slice is None:
        if options.worker is not None:
            raise OptionError("marin cluster ssh: --worker is of a slice. Name the slice.")
        return call(ray("attach", str(rendered_file(cluster))), dry_run=options.dry_run)
    where = [f"--project={cluster.project}", f"--zone={cluster.zone}", f"--worker={options.worker or 0}"]
    command = ["gcloud", "compute", "tpus", "tpu-vm", "ssh", options.slice, *where, "--tunnel-through-iap"]
    return call(command, dry_run=options.dry_run)
