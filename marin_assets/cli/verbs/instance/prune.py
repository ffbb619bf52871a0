"""Delete the old runs that only reused, with their events and what they printed.

A run remains if it computed something or failed, and if an asset, a partition or a check shows it as its latest. The
outputs and their records are not touched. The instance may be in use.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from marin_assets.run.output import print_line
from marin_resources.configuration.settings import SettingError, ensure_dagster_home

if TYPE_CHECKING:
    import dagster as dg

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
    home = ensure_dagster_home()
    with _opened_instance(home) as instance:
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


@contextmanager
def _opened_instance(home: str) -> Iterator[dg.DagsterInstance]:
    """The instance. Raises SettingError for a dagster.yaml or a database that cannot be read in the block."""
    # late, for their weight
    import sqlite3

    from dagster import DagsterError
    from sqlalchemy.exc import SQLAlchemyError
    from yaml import YAMLError

    from marin_resources.dagster_fixes.databases import open_instance

    try:
        with open_instance() as instance:
            yield instance
    except (SQLAlchemyError, sqlite3.Error, YAMLError, DagsterError) as error:
        why = " ".join(str(error).split())[:300]
        raise SettingError(
            f"The instance at {home!r} cannot be read ({type(error).__name__}: {why}). See what is wrong: "
            "marin doctor dagster"
        ) from error


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days <= 36500:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a number of days, such as {DAYS}")
    return days
