"""Look at the settings of this machine: prefix and rights, the bucket's rules, cluster, token, clocks, packages, disks,
proxies, Dagster, webhook, experiments. Each line is one finding; a line that is not `ok` says what to do.

It changes nothing: a small file in `<prefix>/.marin/` is written, and removed. Exit code 1 if anything is wrong;
a warning alone is 0.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from marin_assets.run.options import OptionError, add_prefix, prefix_of
from marin_assets.run.output import print_line
from marin_resources.doctor.finding import Finding, State, ok, wrong

if TYPE_CHECKING:
    from marin_resources.doctor.examine import Look

EXPERIMENTS = "experiments"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help="look at these alone, such as: prefix cluster")
    add_prefix(parser)
    parser.add_argument("--message", action="store_true", help="send the webhook a test message too")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each finding")


def run(options: argparse.Namespace) -> int:
    # late, for its weight: `marin --help` needs nothing of it
    from marin_resources.doctor.examine import examine

    if options.prefix is not None:
        prefix_of(options)
    looks = _chosen(options.subjects, _looks(with_message=options.message))
    count = dict.fromkeys(State, 0)
    for finding in examine(looks):
        count[finding.state] += 1
        print_line(json.dumps(asdict(finding)) if options.json else _line(finding))
    if not options.json:
        print_line(f"{count[State.WRONG]} wrong, {_counted(count[State.WARNING], 'warning')}, {count[State.OK]} ok")
    return 1 if count[State.WRONG] else 0


def _looks(*, with_message: bool) -> dict[str, Look]:
    # late, as above
    from marin_resources.doctor import (
        bucket,
        clock,
        cluster,
        dagster_home,
        disks,
        prefix,
        proxy,
        variables,
        versions,
        webhook,
    )

    return {
        variables.SUBJECT: variables.look,
        versions.SUBJECT: versions.look,
        proxy.SUBJECT: proxy.look,
        prefix.SUBJECT: prefix.look,
        prefix.REGIONS: prefix.look_at_regions,
        bucket.SUBJECT: bucket.look,
        disks.SUBJECT: disks.look,
        cluster.SUBJECT: cluster.look,
        clock.SUBJECT: clock.look,
        dagster_home.SUBJECT: dagster_home.look,
        webhook.SUBJECT: partial(webhook.look, with_message=with_message),
        EXPERIMENTS: _look_at_experiments,
    }


def _chosen(subjects: Sequence[str], looks: Mapping[str, Look]) -> Mapping[str, Look]:
    """The looks of these subjects; of none, all. Raises OptionError."""
    for subject in subjects:
        if subject not in looks:
            raise OptionError(f"marin doctor: got the subject {subject!r}, expected some of {', '.join(looks)}.")
    return {subject: looks[subject] for subject in subjects} or looks


def _line(finding: Finding) -> str:
    return f"{finding.state:8} {finding.subject:12} {finding.sentence}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _look_at_experiments() -> Iterator[Finding]:
    from marin_assets.cli.loaded_definitions import load_definitions  # late, as above

    loaded = load_definitions()
    for sentence in (*loaded.left_out, *loaded.refused):
        yield wrong(EXPERIMENTS, sentence)
    if not loaded.refused:
        yield ok(
            EXPERIMENTS, f"{len(loaded.experiments)} in the code location: {', '.join(sorted(loaded.experiments))}"
        )
