"""Kill a slice as a cloud does that takes it back, to rehearse it: on the cluster of this machine, and its fake slices.

The steps that run there go on with another slice, from their last checkpoint. `marin cluster local up --fake …` brings
the slice back.
"""

from __future__ import annotations

import argparse

from marin_assets.cli.output import print_line, print_stderr


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slice", metavar="SLICE", help="its name, as `marin cluster local status` shows it")


def run(options: argparse.Namespace) -> int:
    from marin_resources.ray_tpu.cluster.local.local_cluster import LocalClusterError, preempt

    try:
        hosts = preempt(options.slice)
    except LocalClusterError as error:
        print_stderr(str(error))
        return 1
    print_line(f"The slice {options.slice!r} is preempted: its {len(hosts)} hosts are killed.")
    return 0
