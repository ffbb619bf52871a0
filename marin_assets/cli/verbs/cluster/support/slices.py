"""The slices of a cluster of the catalogue, for the verbs that look at them or change them."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from marin_assets.run.options import FailedError
from marin_assets.run.output import print_line, print_stderr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from marin_resources.clusters.cluster import Cluster
    from marin_resources.infra.slices.controller import Controller, Report

log = logging.getLogger(__name__)


def add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the cluster's name in infra/clusters.toml")


@contextmanager
def controller_of(cluster: Cluster) -> Iterator[Controller]:
    """A controller of the cluster's slices; another one may work when it is left."""
    # late, for their weight
    from marin_resources.infra.google import Google
    from marin_resources.infra.slices.cluster_members import drain, hosts_of_slices
    from marin_resources.infra.slices.controller import Controller
    from marin_resources.infra.slices.desired_state import WantedError
    from marin_resources.infra.slices.queued_resources import Slices
    from marin_resources.ray_tpu.slices.bad_slices import bad_slices
    from marin_resources.storage.control.protocol import UnavailableError

    controller = Controller(
        cluster,
        Slices(cluster, Google()),
        joined=lambda: hosts_of_slices(cluster),
        bad=lambda names: bad_slices(cluster.bad_slices, names),
        drain=lambda names: drain(cluster, names),
    )
    try:
        yield controller
    finally:
        try:
            controller.release()
        except (UnavailableError, WantedError) as error:
            log.warning("Another controller waits for %s until it takes over: %s", cluster.name, error)


def in_sentences(call: Callable[[], int]) -> int:
    """The exit code of `call`. Raises FailedError if Google, the store or the file of wanted slices fails it."""
    # late, for their weight
    from marin_resources.infra.google import GoogleError
    from marin_resources.infra.slices.desired_state import WantedError
    from marin_resources.storage.control.protocol import UnavailableError

    try:
        return call()
    except (GoogleError, WantedError, UnavailableError) as error:
        raise FailedError(str(error)) from error


def print_report(report: Report, *, verbose: bool = True) -> int:
    """Print what a pass has done; return 1 if Google refused something."""
    # late, for its weight
    from marin_resources.infra.slices.controller import Pass

    if report.ended is not Pass.DONE:
        owner = f": {report.wanted.owner}" if report.ended is Pass.STANDBY else ""
        print_line(f"{report.ended.value}{owner}")
    for name, why in report.drained:
        print_line(f"drain {name}: {why}")
    for name, why in report.replaced:
        print_line(f"replace {name}: {why}")
    for action in report.done:
        print_line(f"{action.do.value} {action.name}" + (f": {action.why}" if action.why else ""))
    for sentence in (*report.refused, *filter(None, [report.doubtful])):
        print_stderr(sentence)
    if verbose and report.settled:
        print_line("nothing is to be done")
    return 1 if report.refused else 0
