"""Take a slice away as a cloud does, to rehearse it: kill a fake slice of the cluster of this machine.

A slice of another cluster is drained, if that cluster is named twice, by a job on its head
(`ray_tpu/cluster/on_head/drain.py`).

With `--notice`, its hosts get a notice, as a spot machine of Google's does 30 s before its end: a training saves then.

The steps that run there continue on another slice, from their last checkpoint. `marin cluster local up --fake …` brings
the slice back.
"""

from __future__ import annotations

import argparse
import math
import os
from typing import TYPE_CHECKING

from marin_assets.cli.verbs.cluster.support.connection import add_cluster, call_cluster, settings_from, user_at_host
from marin_assets.run.options import OptionError
from marin_assets.run.output import print_line, print_stderr

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi
    from marin_resources.ray_tpu.cluster.on_head.drain import Drained


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slice", metavar="SLICE", help="its name, as `marin cluster local status` shows it")
    add_cluster(parser)
    parser.add_argument("--really", metavar="URL", help="a cluster that is not this machine's own, a second time")
    parser.add_argument(
        "--notice", type=seconds, default=0.0, metavar="SECONDS", help="notify its hosts so long before (default: 0)"
    )


def run(options: argparse.Namespace) -> int:
    from marin_resources.ray_tpu.cluster.local.local_cluster import LocalClusterError, preempt
    from marin_resources.ray_tpu.cluster.settings import LOCAL
    from marin_resources.ray_tpu.cluster.settings_from_env import VARIABLE

    if (options.cluster or os.environ.get(VARIABLE) or LOCAL).strip() != LOCAL:
        return _drain(options)

    try:
        hosts = preempt(options.slice, notice_s=options.notice)
    except LocalClusterError as error:
        print_stderr(str(error))
        return 1
    print_line(f"The slice {options.slice!r} is preempted: its {len(hosts)} hosts are killed.")
    return 0


def _drain(options: argparse.Namespace) -> int:
    """Drain `options.slice` of the selected cluster. Raises OptionError unless the cluster is named twice."""
    from marin_resources.ray_tpu.cluster.on_head.drain import drain_slices  # late, for its weight

    settings = settings_from(options)
    if (options.really or "").rstrip("/") != settings.address.rstrip("/"):
        raise OptionError(
            f"This takes the slice {options.slice!r} of {settings.address} away from whoever runs there. If you want "
            f"that, name the cluster a second time: --really {settings.address}"
        )

    async def submit(api: JobsApi) -> int:
        return _print_result(options.slice, await drain_slices(api, [options.slice], options.notice, user_at_host()))

    return call_cluster(settings, submit)


def _print_result(name: str, drained: Drained) -> int:
    hosts = drained.hosts.get(name, 0)
    if not hosts:
        print_stderr(f"The cluster has no slice {name!r} that is up. It has {sorted(drained.hosts) or 'none'}.")
        return 1
    print_line(
        f"The slice {name!r} is drained: Ray places nothing on its {hosts} hosts any more, and each ends when nothing "
        "runs there."
    )
    return 0


def seconds(text: str) -> float:
    """Seconds of at least 0, from a command line."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected seconds of at least 0, such as 30")
    return value
