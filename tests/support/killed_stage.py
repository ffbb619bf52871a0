"""A stage that is killed at its work, and run again to its end."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def killed_at(command: Sequence[str], output: Path, moments: Iterable[tuple[str, int]]) -> dict[str, Any]:
    """Kill the command at each moment, when so many files of a pattern are below `output`; then run it to its end.

    Returns what it prints at its end, as JSON.
    """
    for pattern, files in moments:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while _count(output, pattern) < files and process.poll() is None:
            time.sleep(0.001)
        process.kill()
        assert process.wait() == -9
    counts: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return counts


def _count(folder: Path, pattern: str) -> int:
    try:
        return len(list(folder.glob(pattern)))
    except FileNotFoundError:  # a folder went away between its listing and the look into it
        return 0


def same_parts(output: Path, whole: Path) -> bool:
    """Whether the parts of two outputs have the same names and bytes."""
    names = sorted(path.name for path in whole.glob("part-*"))
    same_names = names == sorted(path.name for path in output.glob("part-*"))
    return same_names and all((output / name).read_bytes() == (whole / name).read_bytes() for name in names)
