"""Drain the hosts of a slice of any cluster, by a job on its head (`ray_tpu/cluster/on_head/drain.py`)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from marin_assets.cli.cluster.connection import call_cluster, settings_from, user_at_host
from marin_assets.cli.options import OptionError
from marin_assets.cli.output import print_line, print_stderr

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi
    from marin_resources.ray_tpu.cluster.on_head.drain import Drained


def drain(options: argparse.Namespace) -> int:
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
