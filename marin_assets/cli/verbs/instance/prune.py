"""Delete the old runs that only reused, with their events and what they printed.

A run remains if it computed something or failed, and if an asset, a partition or a check shows it as its latest. The
outputs and their records are not touched. The instance may be in use.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta

from marin_assets.cli.verbs.instance.dagster_instance import opened_instance
from marin_assets.run.output import print_line

DAYS = 30


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--days", type=_days, default=DAYS, metavar="N", help=f"keep the runs of the last N days (default: {DAYS})"
    )
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="count the runs, and delete none")


def run(options: argparse.Namespace) -> int:
    # late, for their weight
    from tqdm import tqdm

    from marin_resources.instance.prune import Reuses, successful_runs

    deleted = 0
    with opened_instance() as (instance, home):
        old = successful_runs(instance, datetime.now(UTC) - timedelta(days=options.days))
        reuses = Reuses(instance)
        for run_id in tqdm(old, unit=" runs", disable=None, leave=False):
            if reuses.only_reused(run_id):
                if not options.dry_run:
                    reuses.delete(run_id)
                deleted += 1
    did = "would delete" if options.dry_run else "deleted"
    print_line(
        f"{did} {deleted} run{'s' * (deleted != 1)} that only reused, of {len(old)} at {home} that succeeded more than "
        f"{options.days:g} days ago"
    )
    return 0


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days <= 36500:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a number of days, such as {DAYS}")
    return days
