"""A Ray cluster on this machine, for development: a head that outlives the terminal, for MARIN_CLUSTER=local.

up      start it unless it is up already
down    end it and all its jobs
status  show its address; exit code 1 if none is up
"""

from __future__ import annotations

import argparse

from marin_assets.run.output import print_line, print_stderr


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["up", "down", "status"])
    parser.add_argument("--cpus", type=int, metavar="N", help="CPUs that it may use (default: the machine's)")
    parser.add_argument(
        "--fake", default="", metavar="TYPES", help="TPU slices that it pretends to have, such as v4-16,v4-8"
    )


def run(options: argparse.Namespace) -> int:
    from marin_assets.run.options import OptionError
    from marin_resources.hardware.resources import ResourceError
    from marin_resources.ray_tpu.cluster.local.local_cluster import LocalClusterError

    if options.cpus is not None and (options.what != "up" or options.cpus < 1):
        raise OptionError(f"marin cluster local: --cpus is {options.cpus}, expected 1 or more, and for up alone.")
    if options.fake and options.what != "up":
        raise OptionError(f"marin cluster local: --fake is {options.fake!r}, expected for up alone.")
    try:
        return {"up": _up, "down": _down, "status": _status}[options.what](options)
    except ResourceError as error:
        raise OptionError(f"marin cluster local: --fake: {error}") from None
    except LocalClusterError as error:
        print_stderr(str(error))
        return 1


def _up(options: argparse.Namespace) -> int:
    from marin_resources.ray_tpu.cluster.local.local_cluster import describe, up

    kinds = [kind.strip() for kind in options.fake.split(",")] if options.fake else []
    print_line(describe(up(cpus=options.cpus, fake=kinds)))
    return 0


def _down(options: argparse.Namespace) -> int:
    from marin_resources.ray_tpu.cluster.local.local_cluster import down

    ended = down()
    print_line("No local cluster was up." if ended is None else f"The local cluster at {ended.address} has ended.")
    return 0


def _status(options: argparse.Namespace) -> int:
    from marin_resources.ray_tpu.cluster.local.local_cluster import describe, find

    cluster = find()
    print_line("No local cluster is up. Start it: marin cluster local up" if cluster is None else describe(cluster))
    return 0 if cluster is not None else 1
