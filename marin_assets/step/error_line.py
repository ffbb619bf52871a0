"""The line of a person's file that an error or a step came from. Only the standard library is imported: scripts load
this first.

A person's file is a script, a file of experiments, or a module of theirs: neither this software's nor a library's.
"""

from __future__ import annotations

import os
import sys
import traceback
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType

_ROOT = Path(__file__).parents[2]
OURS = tuple(str(_ROOT / name) + "/" for name in ("marin_assets", "marin_resources", "marin_sensors"))
EXPERIMENTS = str(_ROOT / "marin_assets" / "experiments") + "/"
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + "/"
_LIBRARIES = ("/site-packages/", "/dist-packages/")


def place_of(error: BaseException) -> str:
    """Return "file:line" of the person's mistake: the place that the error states, the line that is no Python, or that
    of the traceback. Empty if none is known."""
    if place := getattr(error, "place", ""):
        return str(place)
    if isinstance(error, SyntaxError) and error.filename and not error.filename.startswith("<"):
        return f"{error.filename}:{error.lineno}"
    return line_of(error.__traceback__)


def line_of(trace: TracebackType | None) -> str:
    """Return "file:line" of the innermost frame of a person's file, else of a library's; empty if no frame is."""
    frames = [
        frame for frame in traceback.extract_tb(trace) if not frame.filename.startswith("<") and not _is_ours(frame[0])
    ]
    own = [frame for frame in frames if is_persons(frame.filename)] or frames
    return f"{own[-1].filename}:{own[-1].lineno}" if own else ""


def line_here() -> str:
    """Return "file:line" of the innermost running call in a person's file; empty if none runs."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_persons(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


@cache
def is_persons(filename: str) -> bool:
    """Whether the file is neither this software's nor a library's."""
    is_library = filename.startswith((_STANDARD_LIBRARY, "<")) or any(part in filename for part in _LIBRARIES)
    return filename.startswith(EXPERIMENTS) or not (is_library or _is_ours(filename))


def _is_ours(filename: str) -> bool:
    return filename.startswith(OURS) and not filename.startswith(EXPERIMENTS)
