"""Upgrade Dagster's tables to the installed release, after a back-up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from marin_resources.instance.archive import BackUpError
from marin_resources.instance.back_up import back_up
from marin_resources.instance.in_use import alone, require_no_daemon
from marin_resources.instance.revisions import revisions_of

if TYPE_CHECKING:
    import dagster as dg

BACK_UPS = "back-ups"
"""Below the home."""


def refuse_newer(instance: dg.DagsterInstance) -> None:
    """Raise BackUpError if the tables are of a newer release than the installed one."""
    for revision in revisions_of(instance):
        if not revision.is_known:
            raise BackUpError(
                f"The tables of {revision.what} have revision {revision.found}, which the installed Dagster does not "
                "know: a newer release has upgraded them. Install that one, or restore a back-up."
            )


def upgrade(instance: dg.DagsterInstance, home: Path, report: Callable[[str], None]) -> bool:
    """Upgrade the tables; return whether there was anything to do. `report` takes a line for each thing that is done.

    Raises BackUpError if the instance is in use, or its tables are newer.
    """
    refuse_newer(instance)
    old = [revision for revision in revisions_of(instance) if not revision.is_newest]
    if not old:
        return False
    require_no_daemon(instance, "Upgrading")
    with alone(home, "Upgrading"):
        for revision in old:
            report(f"{revision.what}: revision {revision.found}, the newest is {revision.expected}")
        target = home / BACK_UPS / f"{datetime.now(UTC).strftime('%Y-%m-%dT%H-%M-%S.%f')}.tar.zst"
        target.parent.mkdir(exist_ok=True)
        back_up(instance, home, target)
        report(f"backed up to {target}")
        instance.upgrade(report)
    return True
