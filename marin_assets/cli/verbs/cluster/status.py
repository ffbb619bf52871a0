"""Show the head and the slices of a cluster: those that it shall have, where each is on its way, and which have joined.

The exit code is 1 if something is amiss: the head does not answer, or a slice is neither up nor waiting for capacity.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from marin_assets.cli.verbs.cluster.support.slices import add_name, in_sentences
from marin_assets.run.output import print_line

if TYPE_CHECKING:
    from marin_resources.infra.slices.status import Line, Status

COLUMNS = ("slice", "type", "capacity", "state", "hosts", "why")


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(options: argparse.Namespace) -> int:
    return in_sentences(lambda: _status(options))


def _status(options: argparse.Namespace) -> int:
    # late, for their weight
    from marin_resources.clusters.catalogue import find_cluster
    from marin_resources.infra.google import Google
    from marin_resources.infra.slices.cluster_members import hosts_of_slices
    from marin_resources.infra.slices.queued_resources import Slices
    from marin_resources.infra.slices.status import status_of

    cluster = find_cluster(options.name)
    joined = hosts_of_slices(cluster)
    status = status_of(cluster, Slices(cluster, Google()).all(), joined)
    print_line(json.dumps(status.as_dict(), indent=1) if options.json else _text(status))
    return 1 if status.amiss else 0


def _text(status: Status) -> str:
    cluster = status.cluster
    head = "answers" if status.head_answers else "does not answer"
    owner = f"{status.owner} keeps the slices" if status.owner else "nobody keeps the slices: marin cluster monitor"
    lines = [f"{cluster.name} in {cluster.zone}: the head at {cluster.dashboard} {head}; {owner}"]
    rows = [COLUMNS, *(_row(line) for line in status.lines)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(COLUMNS))]
    if status.lines:
        lines += [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
    else:
        lines.append(f"no slice: marin cluster add-worker TYPE --cluster {cluster.name}")
    return "\n".join(lines)


def _row(line: Line) -> tuple[str, ...]:
    hosts = f"{line.joined if line.joined is not None else '?'}/{line.hosts}"
    return (line.name, line.type, line.capacity, line.state, hosts, line.why)
