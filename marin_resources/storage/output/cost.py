"""What one output has cost, from its record alone: seconds, bytes, devices. Pure; prices are in `storage/usage`.

A record holds `spent`, sums over the attempts that led to the output, failed ones included:

    wall_s            from the claim to the end
    cpu_s             CPU time of the function: its process, its children, its shards. None on GPUs and slices of TPUs,
                      whose hosts do not report it
    reserved_cpu_s    CPUs that the step reserved, times wall_s
    device_s          seconds of one GPU, or of one chip of a TPU
    pool              the pool of its devices; None without
    attempts          in the sums; `unknown_attempts` more were killed and recorded nothing

Older records have no `spent`, and Marin's have nothing of it: what a record does not say is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class RecordCost:
    """What one output has cost. None: its record does not say."""

    wall_s: float | None = None
    cpu_s: float | None = None
    reserved_cpu_s: float | None = None
    device_s: float | None = None
    """0 without devices."""
    pool: str | None = None
    cluster: str | None = None
    """Of a fleet, by its name in the catalogue."""
    dashboard: str | None = None
    """Of the cluster that its job ran on."""
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
        known = [each for each in (self.cpu_s, self.reserved_cpu_s) if each is not None]
        return max(known) if known else None


def cost_of(record: Mapping[str, Any]) -> RecordCost:
    """The cost that the record of a complete output, or of a failed one, holds."""
    if record.get("adopted"):  # it was made elsewhere, which its record knows nothing of
        return RecordCost(bytes_out=(record.get("manifest") or {}).get("bytes"))
    spent, ledger, manifest = (record.get(name) or {} for name in ("spent", "ledger", "manifest"))
    hours = ledger.get("device_hours")
    return RecordCost(
        wall_s=spent.get("wall_s", record.get("duration_s")),
        cpu_s=spent.get("cpu_s"),
        reserved_cpu_s=spent.get("reserved_cpu_s"),
        device_s=spent.get("device_s", None if hours is None else hours * 3600),
        pool=spent.get("pool"),
        cluster=record.get("cluster"),
        dashboard=(record.get("job") or {}).get("dashboard"),
        bytes_in=record.get("bytes_in"),
        bytes_out=manifest.get("bytes"),
        unknown_attempts=spent.get("unknown_attempts") or 0,
    )
