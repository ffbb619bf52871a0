"""`spent`: the sums over the attempts at an output, as the worker writes them into record and mark (see `cost.py`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from marin_resources.hardware import Resources
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output.attempts import read_attempt
from marin_resources.versioned_json import ControlFileError

SUMS = ("wall_s", "cpu_s", "reserved_cpu_s", "device_s")

log = logging.getLogger(__name__)


def spent_of(resources: Resources, wall_s: float, cpu_s: float | None) -> dict[str, Any]:
    """The sums of one attempt that held these resources for `wall_s`."""
    return {
        "wall_s": round(wall_s, 3),
        "cpu_s": None if cpu_s is None else round(cpu_s, 3),
        "reserved_cpu_s": round(resources.cpus * wall_s, 3),
        "device_s": round(resources.devices * wall_s, 3),
        "pool": resources.pool,
        "attempts": 1,
        "unknown_attempts": 0,
    }


def with_earlier(own: Mapping[str, Any], output_path: str, attempt: int) -> dict[str, Any]:
    """The sums of this attempt and of those before it, back to the last that succeeded.

    The mark of an attempt that failed holds the same sums, so one mark is read, and one more for each attempt that was
    killed. Those count as unknown.
    """
    unknown = 0
    for number in range(attempt - 1, 0, -1):
        try:
            mark = read_attempt(output_path, number)
        except FileNotFoundError:
            continue  # the number of a job that never began
        except (ControlFileError, UnavailableError) as error:
            log.warning("what attempt %d has spent is not known: %s", number, error)
            unknown += 1
            continue
        if mark.get("outcome") == "success":
            break
        if mark.get("spent"):
            return _sum(own, mark["spent"], unknown)
        unknown += 1
    return {**own, "unknown_attempts": unknown}


def _sum(own: Mapping[str, Any], earlier: Mapping[str, Any], unknown: int) -> dict[str, Any]:
    return {
        **own,
        **{name: _added(own.get(name), earlier.get(name)) for name in SUMS},
        "attempts": own["attempts"] + earlier.get("attempts", 0),
        "unknown_attempts": unknown + earlier.get("unknown_attempts", 0),
    }


def _added(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else round(first + second, 3)
