"""Keep the slices of a cluster as they shall be, until Ctrl-C: request, replace, delete.

A preempted slice is followed by another one; one that Google cannot make, or that does not join the cluster within half
an hour, is tried again after a pause. It may be killed at any moment and started again anywhere. With --once, one pass.
"""

from __future__ import annotations

import argparse
import logging
import signal
import threading

from marin_assets.cli.verbs.cluster.support.slices import add_name, controller_of, in_sentences, print_report
from marin_assets.run.options import OptionError
from marin_assets.run.output import print_line, print_stderr

EVERY_S = 60.0
LONGEST_S = 240.0
"""A controller that is silent for five minutes is replaced by another one."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    parser.add_argument(
        "--every", type=float, default=EVERY_S, metavar="SECONDS", help=f"between two passes (default: {EVERY_S:.0f})"
    )
    parser.add_argument("--once", action="store_true", help="one pass, and end")


def run(options: argparse.Namespace) -> int:
    if not 1 <= options.every <= LONGEST_S:
        raise OptionError(
            f"marin cluster monitor: --every is {options.every:g}, expected 1 to {LONGEST_S:.0f} seconds."
        )
    return _once(options) if options.once else _for_good(options)


def _once(options: argparse.Namespace) -> int:
    from marin_resources.clusters.catalogue import find_cluster  # late, for its weight

    def step() -> int:
        with controller_of(find_cluster(options.name)) as controller:
            return print_report(controller.step())

    return in_sentences(step)


def _for_good(options: argparse.Namespace) -> int:
    # late, for their weight
    from marin_resources.clusters.catalogue import find_cluster
    from marin_resources.infra.google import GoogleError
    from marin_resources.infra.slices.desired_state import WantedError
    from marin_resources.storage.control.protocol import UnavailableError

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    cluster = find_cluster(options.name)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with controller_of(cluster) as controller:
        print_line(f"{cluster.name} in {cluster.zone}: a pass each {options.every:g} s")
        while not ended.is_set():
            try:
                print_report(controller.step(), verbose=False)
            except (GoogleError, WantedError, UnavailableError) as error:  # the next pass may see it fixed
                print_stderr(str(error))
            ended.wait(options.every)
    return 0
