"""A Ray cluster on this machine, to develop with: a head that outlives the terminal, for MARIN_CLUSTER=local.

up      start it, or find it up already
down    end it, and all that runs on it
status  where it is. Exit code 1 if there is none
"""

from __future__ import annotations

import argparse

from marin_assets.cli.output import tell, warn


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["up", "down", "status"])
    parser.add_argument("--cpus", type=int, metavar="N", help="CPUs that it may use (default: the machine's)")


def run(options: argparse.Namespace) -> int:
    from marin_assets.cli.options import OptionError
    from marin_resources.ray_tpu.cluster.local.local_cluster import LocalClusterError

    if options.cpus is not None and (options.what != "up" or options.cpus < 1):
        raise OptionError(f"marin cluster local: --cpus is {options.cpus}, expected 1 or more, and for up alone.")
    try:
        return {"up": _up, "down": _down, "status": _status}[options.what](options)
    except LocalClusterError as error:
        warn(str(error))
        return 1


def _up(options: argparse.Namespace) -> int:
    from marin_resources.ray_tpu.cluster.local.local_cluster import describe, up

    tell(describe(up(cpus=options.cpus)))
    return 0


def _down(options: argparse.Namespace) -> int:
    from marin_resources.ray_tpu.cluster.local.local_cluster import down

    ended = down()
    tell("There was no local cluster up." if ended is None else f"The local cluster at {ended.address} has ended.")
    return 0


def _status(options: argparse.Namespace) -> int:
    from marin_resources.ray_tpu.cluster.local.local_cluster import describe, find

    found = find()
    tell("There is no local cluster up. Start it: marin cluster local up" if found is None else describe(found))
    return 0 if found is not None else 1
