"""Slices with a host that could not use its devices, reported to the supervisor of the cluster's slices.

The reports are files of the prefix, one for each slice, so that a process elsewhere reads them. A first report makes
steps avoid the host for half an hour (`bad_hosts.py`): a process may hold its chips still. A slice that two different
steps report within hours is bad, and `marin cluster monitor` replaces it.

MARIN_BAD_SLICES   the folder of the reports, set on the nodes of a cluster     default: none, and nothing is reported
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from marin_resources.storage.control.control import read, write
from marin_resources.storage.control.protocol import ConflictError, UnavailableError
from marin_resources.storage.paths import join

VARIABLE = "MARIN_BAD_SLICES"
AGAIN_S = 600.0
"""Two reports so far apart are not of one process that ends slowly."""
WITHIN_S = 6 * 3600.0
"""An older report does not count: the slice may be another one now."""
MOST_REPORTS = 20
"""A file has the last ones."""
FORMAT = 1

log = logging.getLogger(__name__)


def report_bad_slice(name: str, why: str, step: str, now: float | None = None) -> None:
    """Report a slice for a step, if reports are kept. A store that does not answer is logged: the step continues."""
    folder = os.environ.get(VARIABLE, "").strip()
    if not folder:
        return
    path = join(folder, f"{name}.json")
    now = time.time() if now is None else now
    try:
        file = read(path)
        before = _parse(path, file.data) if file is not None else {}
        first = before.get("first", now)
        reports = [*_reports(before), {"at": now, "step": step, "why": why}][-MOST_REPORTS:]
        body = json.dumps({"format": FORMAT, "first": first, "last": now, "why": why, "reports": reports}).encode()
        write(path, body, expected=file.generation if file is not None else None)
    except ConflictError:
        return  # another step has reported it at the same moment
    except UnavailableError as error:
        log.warning("The slice %r cannot be reported as bad: %s", name, error)


def bad_slices(folder: str, names: Iterable[str], now: float | None = None) -> dict[str, str]:
    """Those of the slices that are bad now -> why: two different steps have reported each within the last six hours, at
    least ten minutes apart. Raises UnavailableError."""
    now = time.time() if now is None else now
    bad = {}
    for name in names:
        path = join(folder, f"{name}.json")
        file = read(path)
        if file is not None and (why := _why_bad(_reports(_parse(path, file.data)), now)):
            bad[name] = f"bad host: {why}"
    return bad


def _why_bad(reports: Sequence[Mapping[str, Any]], now: float) -> str | None:
    """The reason in the last report, if the reports mean that the slice is bad."""
    recent = [report for report in reports if now - report["at"] <= WITHIN_S]
    for index, later in enumerate(recent):
        for earlier in recent[:index]:
            if earlier["step"] != later["step"] and later["at"] - earlier["at"] >= AGAIN_S:
                return str(recent[-1]["why"])
    return None


def _parse(path: str, data: bytes) -> dict[str, Any]:
    """The fields of a file; none of one that is damaged, as its slice is not to be replaced for that."""
    try:
        fields = json.loads(data)
        if isinstance(fields, dict):
            return fields
    except ValueError as error:
        log.warning("The reports in %r are damaged, and are ignored: %s", path, error)
    return {}


def _reports(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The reports of a file. A file of an earlier version has none: it does not name their steps."""
    listed = entry.get("reports")
    required = ("at", "step", "why")
    return [report for report in listed if all(name in report for name in required)] if isinstance(listed, list) else []
