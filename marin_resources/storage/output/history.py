"""Records of outputs that were removed, for who asks later why they were computed.

    <prefix>/.marin/history/<name>-<version>/<seconds>.json       of a partition: <name>-<version>/<key>/<seconds>.json

Each is the record of the output as it was, by the time when it was complete, in seconds since 1970.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from marin_resources.storage.control import control
from marin_resources.storage.files import folders_in, names_in
from marin_resources.storage.output.record import FORMAT, RecordError
from marin_resources.storage.paths import join

FOLDER = ".marin/history"
"""Below the prefix."""
THREADS = 16

log = logging.getLogger(__name__)


def past_records(prefix: str, relative: str) -> list[dict[str, Any]]:
    """The records of the outputs that were at this path below the prefix, and are removed. Raises UnavailableError.

    One that is damaged is left out with a warning.
    """
    folder = join(prefix, FOLDER, relative)
    names = sorted(name for name in names_in(folder) if name.removesuffix(".json").isdecimal())
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda name: _read(join(folder, name)), names))
    return [record for record in found if record is not None]


def past_versions(prefix: str, name: str) -> list[str]:
    """The paths "<name>-<version>" of a step that have records here, by one listing."""
    parent, _, last = name.rpartition("/")
    folders = folders_in(join(prefix, FOLDER, parent) if parent else join(prefix, FOLDER))
    return [f"{parent}/{each}" if parent else each for each in folders if each.rpartition("-")[0] == last]


def _read(path: str) -> dict[str, Any] | None:
    try:
        found = control.read(path)
        return None if found is None else FORMAT.parse(found.data, path)
    except RecordError as error:
        log.warning("%s", error)
        return None
