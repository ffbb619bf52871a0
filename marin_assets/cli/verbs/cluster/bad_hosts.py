"""List the hosts that no step is placed on for half an hour, as their devices failed or a step hung there; lift one.

A host is named by its slice and worker, `NAME/1`; one that is no TPU's by the id of its node.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING

from marin_assets.cli.verbs.cluster.support.connection import add_cluster, call_cluster, settings_from, user_at_host
from marin_assets.run.output import print_line, print_stderr
from marin_resources.types.durations import readable_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi
    from marin_resources.ray_tpu.cluster.on_head.bad_hosts import BadHost

COLUMNS = ("host", "since", "for", "step", "why")
ALL = "all"


def add_options(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    parser.add_argument("--lift", action="append", default=[], metavar="HOST", help="let steps use it now; or all")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from marin_resources.ray_tpu.cluster.on_head.bad_hosts import bad_hosts_of  # late, for its weight

    settings = settings_from(options)

    async def show(api: JobsApi) -> int:
        hosts = await bad_hosts_of(api, user=user_at_host())
        names = [host.host for host in hosts]
        lift = names if ALL in options.lift else options.lift
        if unknown := [name for name in lift if name not in names]:
            print_stderr(f"No host {unknown[0]!r} is avoided on {api.address}. Avoided: {', '.join(names) or 'none'}.")
            return 1
        if lift:
            hosts = await bad_hosts_of(api, lift=lift, user=user_at_host())
        _print(api.address, hosts, lift, as_json=options.json)
        return 0

    return call_cluster(settings, show)


def _print(address: str, hosts: Sequence[BadHost], lifted: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        listed = [{**dataclasses.asdict(host), "left_s": host.left_s} for host in hosts]
        listing = {"cluster": address, "bad_hosts": listed, "lifted": list(lifted)}
        print_line(json.dumps(listing, indent=2, ensure_ascii=False))
        return
    for name in lifted:
        print_line(f"steps may use {name} again")
    rows = [COLUMNS, *(_row(host) for host in hosts)] if hosts else []
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))] if rows else []
    for row in rows:
        print_line("  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip())
    if not hosts:
        print_stderr(f"No host is avoided on {address}.")


def _row(host: BadHost) -> tuple[str, ...]:
    since, remaining = (readable_duration(seconds) for seconds in (host.since_s, host.left_s))
    return (host.host, since, remaining, host.step or "-", " ".join(host.why.split()))
