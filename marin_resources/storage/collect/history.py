"""The records of outputs whose data were removed: why something ran can be answered when it is gone.

    <prefix>/.marin/history/<name>-<version>/<seconds>.json                 seconds since 1970 when it was complete
    <prefix>/.marin/history/<name>-<version>/<partition>/<seconds>.json     of a partition

Each file is the record as it was.
"""

from __future__ import annotations

import json

from marin_resources.record import Record
from marin_resources.storage.control import control
from marin_resources.storage.done.marks import seconds_of
from marin_resources.storage.output.history import FOLDER
from marin_resources.storage.paths import join


def keep_record(prefix: str, relative: str, record: Record) -> str:
    """Keep the record of the output at this path below the prefix; return where. Raises UnavailableError."""
    path = join(prefix, FOLDER, relative, f"{seconds_of(record)}.json")
    control.put(path, (json.dumps(record.to_dict(), indent=2) + "\n").encode())
    return path
