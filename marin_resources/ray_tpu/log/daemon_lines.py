"""Which lines of Ray's own daemons the log of a job shows.

Ray prints in every job what its daemons, on all nodes, log as an error: the stack of a raylet that ends since its node
was declared dead, a bundle of a dead node that cannot be returned. The job says itself what has become of its hosts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

UNSEEN = re.compile(
    r"Raylet is terminated\."  # with the last lines of its log
    r"|GCS consider this node to be dead"  # the same raylet, of itself
    r"|^\*\*\* StackTrace Information|raylet/raylet\(\+0x|libc\.so\.6\("  # its stack, line by line
)


def shown_lines(process: str | int | None, lines: Sequence[str]) -> list[str]:
    """The lines of a process that are shown. Ray names a daemon by its program, and a worker by its number."""
    if process == "gcs_server":
        return []
    return [line for line in lines if UNSEEN.search(line) is None] if process == "raylet" else list(lines)
