"""The cost of one output: seconds, bytes and devices. Its worker sums them up, its record holds them.

A record holds `spent`, sums over the attempts that led to the output, failed ones included; prices are in
`storage/usage`:

    wall_s            from the claim to the end
    cpu_s             CPU time of the function: its process, its children, its shards. None on GPUs and slices of TPUs,
                      whose hosts do not report it
    reserved_cpu_s    CPUs that the step reserved, times wall_s
    device_s          seconds of one GPU, or of one chip of a TPU
    pool              the pool of its devices; None without
    attempts          in the sums; `unknown_attempts` more were killed and recorded nothing

Older records have no `spent`, and Marin's have nothing of it: a number that a record lacks is None, never 0.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_resources.hardware.resources import Resources
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output.attempts import read_attempt
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError

SUMS = ("wall_s", "cpu_s", "reserved_cpu_s", "device_s")

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RecordCost:
    """The cost of one output. None: its record lacks the number."""

    wall_s: float | None = None
    cpu_s: float | None = None
    reserved_cpu_s: float | None = None
    device_s: float | None = None
    """0 without devices."""
    pool: str | None = None
    cluster: str | None = None
    """Name of the cluster of a fleet, as in the catalogue."""
    dashboard: str | None = None
    """Dashboard of the cluster that its job ran on."""
    bytes_in: int | None = None
    """The size of its inputs, whether or not it read all of them."""
    bytes_out: int | None = None
    unknown_attempts: int = 0

    @property
    def device_hours(self) -> float | None:
        return None if self.device_s is None else self.device_s / 3600

    @property
    def priced_cpu_s(self) -> float | None:
        """CPU seconds to pay for: reserved, or used if its shards used more than the step reserved."""
        measured = [seconds for seconds in (self.cpu_s, self.reserved_cpu_s) if seconds is not None]
        return max(measured) if measured else None


def cost_of(record: Record) -> RecordCost:
    """The cost that the record of a complete output, or of a failed one, holds."""
    if record.adopted:  # it was made elsewhere, which its record knows nothing of
        return RecordCost(bytes_out=record.manifest.bytes)
    spent, hours = record.spent, record.ledger.get("device_hours")
    return RecordCost(
        wall_s=record.duration_s if spent.wall_s is None else spent.wall_s,
        cpu_s=spent.cpu_s,
        reserved_cpu_s=spent.reserved_cpu_s,
        device_s=hours * 3600 if spent.device_s is None and hours is not None else spent.device_s,
        pool=spent.pool,
        cluster=record.cluster,
        dashboard=record.job.dashboard if record.job else None,
        bytes_in=record.bytes_in,
        bytes_out=record.manifest.bytes,
        unknown_attempts=spent.unknown_attempts or 0,
    )


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
