"""The line of a person's file that an error came from. Only the standard library is imported: scripts load it first."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

_ROOT = Path(__file__).parents[2]
OURS = tuple(str(_ROOT / name) + "/" for name in ("marin_assets", "marin_resources", "marin_sensors"))
EXPERIMENTS = str(_ROOT / "marin_assets" / "experiments") + "/"


def line_of(trace: TracebackType | None) -> str:
    """Return "file:line" of the innermost frame of a file that is not this software's; empty if no frame is."""
    for frame in reversed(traceback.extract_tb(trace)):
        if frame.filename.startswith(EXPERIMENTS) or not frame.filename.startswith((*OURS, "<")):
            return f"{frame.filename}:{frame.lineno}"
    return ""
