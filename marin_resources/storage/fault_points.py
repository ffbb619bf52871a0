"""Points at which a test kills the process, to check that the next run completes the output.

`MARIN_FAULT_POINT="record written"` kills the process (SIGKILL) at that point; `"record written@3"` at the third
time. Unset, as everywhere but in tests, a point costs one read of the environment.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

VARIABLE = "MARIN_FAULT_POINT"
POINTS = (
    "lease taken",
    "commit claimed",
    "leftovers half moved",
    "leftovers moved",
    "attempt marked",
    "status running",
    "file half written",
    "file written aside",
    "shard written",
    "shard noted",
    "function returned",
    "manifest taken",
    "commit published",
    "record written",
    "status success",
    "attempt ended",
    "lease released",
)
"""In the order in which one materialization reaches them."""
IN_A_REGION = ("region complete",)
"""Reached besides where the data are in another region than the prefix."""
OF_AN_UNDO = ("status withdrawn", "commit withdrawn", "record withdrawn")
"""Reached when an adopted output is taken back."""
OF_A_COLLECTION = ("collection noted", "copies withdrawn", "marker removed", "status removed")
"""Reached when an output is collected."""
OF_A_FORCED_RUN = ("history kept", "attempt withdrawn", "status taken away", "commit taken back")
"""Reached when a complete output is withdrawn, to be computed again."""
OF_A_PURGE = (
    "purge noted",
    "purge claimed",
    "purge marked",
    "data half removed",
    "data removed",
    "commit removed",
)
"""Reached when the data of a collected output are removed."""

_reached: Counter[str] = Counter()


def reach(point: str) -> None:
    """Kill the process if the environment names this point. Raises KeyError for a point that is not declared."""
    setting = os.environ.get(VARIABLE)
    if not setting:
        return
    if point not in POINTS + IN_A_REGION + OF_AN_UNDO + OF_A_COLLECTION + OF_A_FORCED_RUN + OF_A_PURGE:
        raise KeyError(point)
    name, _, time = setting.partition("@")
    if name == point:
        _reached[point] += 1
        if _reached[point] == int(time or 1):
            os.kill(os.getpid(), signal.SIGKILL)
