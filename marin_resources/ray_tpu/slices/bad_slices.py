"""Slices with a host that could not use its devices, told to who keeps the cluster's slices.

The reports are files of the prefix, one for each slice, so that a process elsewhere reads them. A first report makes
steps avoid the host for half an hour (`bad_hosts.py`): a process may hold its chips still. A slice that is reported
again later is bad, and `marin cluster monitor` replaces it.

MARIN_BAD_SLICES   the folder of the reports, set on the nodes of a cluster     default: none, and nobody is told
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable

from marin_resources.storage.control.control import read, write
from marin_resources.storage.control.protocol import ConflictError, UnavailableError
from marin_resources.storage.paths import join

VARIABLE = "MARIN_BAD_SLICES"
AGAIN_S = 600.0
"""Two reports so far apart are not of one process that ends slowly."""
FORMAT = 1

log = logging.getLogger(__name__)


def report_bad_slice(name: str, why: str, now: float | None = None) -> None:
    """Report a slice, if reports are kept. A store that is away is logged: the step goes on without."""
    folder = os.environ.get(VARIABLE, "").strip()
    if not folder:
        return
    path = join(folder, f"{name}.json")
    now = time.time() if now is None else now
    try:
        found = read(path)
        first = json.loads(found.data)["first"] if found is not None else now
        body = json.dumps({"format": FORMAT, "first": first, "last": now, "why": why}).encode()
        write(path, body, expected=found.generation if found is not None else None)
    except ConflictError:
        return  # another step has reported it at the same moment
    except UnavailableError as error:
        log.warning("The slice %r cannot be reported as bad: %s", name, error)


def bad_slices(folder: str, names: Iterable[str]) -> dict[str, str]:
    """Those of the slices that were reported twice, at least ten minutes apart -> why. Raises UnavailableError."""
    bad = {}
    for name in names:
        found = read(join(folder, f"{name}.json"))
        if found is not None:
            report = json.loads(found.data)
            if report["last"] - report["first"] >= AGAIN_S:
                bad[name] = f"bad host: {report['why']}"
    return bad
