"""Forward the dashboard of a cluster to this machine, http://127.0.0.1:8265, until Ctrl-C."""

from __future__ import annotations

import argparse

from marin_assets.cli.ports import add_port
from marin_assets.cli.verbs.cluster.support.commands import call, ray, rendered_file
from marin_assets.cli.verbs.cluster.support.slices import add_name

PORT = 8265


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    add_port(parser, PORT, "the dashboard, on this machine")
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="only print the command")


def run(options: argparse.Namespace) -> int:
    from marin_resources.clusters.catalogue import find_cluster  # late, for its weight

    file = rendered_file(find_cluster(options.name))
    return call(ray("dashboard", "--port", str(options.port), str(file)), dry_run=options.dry_run)
