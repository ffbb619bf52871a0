"""When hosts are taken, and come back: a CSV file, or drawn times.

    host,gone_s,back_s
    0,3600,4500          host 0 is away from second 3600 to second 4500 of the trace

A slice is away while one of its hosts is: it is taken whole. Slice i of k hosts has the hosts i*k to i*k+k-1.
"""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from marin_resources.errors import MarinError

COLUMNS = ("host", "gone_s", "back_s")
Away = tuple[float, float]
"""From when to when, in seconds since the trace began."""


class TraceError(MarinError, ValueError):
    """A trace that cannot be used: one sentence."""


@dataclass(frozen=True)
class Trace:
    """The times of every host, in order; `horizon_s` is its length."""

    hosts: int
    horizon_s: float
    away: Mapping[int, Sequence[Away]]

    def of_slice(self, index: int, hosts: int) -> list[Away]:
        """When the slice of so many hosts is away: overlapping times are one."""
        times = sorted(each for host in range(index * hosts, (index + 1) * hosts) for each in self.away.get(host, ()))
        found: list[Away] = []
        for gone_s, back_s in times:
            if found and gone_s <= found[-1][1]:
                found[-1] = (found[-1][0], max(found[-1][1], back_s))
            else:
                found.append((gone_s, back_s))
        return found

    def mean_time_s(self, hosts: int) -> float:
        """The mean time that a slice of so many hosts is there between two losses; infinite without a loss."""
        slices = self.hosts // hosts
        losses, away_s = 0, 0.0
        for index in range(slices):
            for gone_s, back_s in self.of_slice(index, hosts):
                losses += 1
                away_s += min(back_s, self.horizon_s) - gone_s
        return (slices * self.horizon_s - away_s) / losses if losses else math.inf


def draw_trace(*, hosts: int, horizon_s: float, mean_s: float, back_s: float, seed: int) -> Trace:
    """Losses of each host at exponential intervals of `mean_s`, each followed by exponential times away of `back_s`."""
    drawn, away = random.Random(seed), {}
    for host in range(hosts):
        times, now_s = [], drawn.expovariate(1 / mean_s)
        while now_s < horizon_s:
            until_s = now_s + drawn.expovariate(1 / back_s)
            times.append((now_s, until_s))
            now_s = until_s + drawn.expovariate(1 / mean_s)
        away[host] = times
    return Trace(hosts, horizon_s, away)


def read_trace(path: Path, *, hosts: int | None = None, horizon_s: float | None = None) -> Trace:
    """The trace in a CSV file. Without `hosts`, up to the largest number in it; without `horizon_s`, to its last time.

    Raises TraceError.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise TraceError(f"{path}: the columns are {reader.fieldnames}, expected {','.join(COLUMNS)}.")
            away = _read(path, reader)
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{path} cannot be read ({error}).") from None
    if not away:
        raise TraceError(f"{path} has no line but the first. A trace has a line for each time that a host was away.")
    known = max(away) + 1
    if hosts is not None and known > hosts:
        raise TraceError(f"{path} has a host {known - 1}, and --hosts is {hosts}. The first host is 0.")
    last_s = max(until_s for times in away.values() for _, until_s in times)
    return Trace(hosts or known, horizon_s or last_s, {host: sorted(times) for host, times in away.items()})


def _read(path: Path, rows: Iterable[Mapping[str, str]]) -> dict[int, list[Away]]:
    away: dict[int, list[Away]] = {}
    for number, row in enumerate(rows, 2):
        try:
            host, gone_s, back_s = int(row["host"]), float(row["gone_s"]), float(row["back_s"])
        except (ValueError, TypeError):
            raise TraceError(f"{path}, line {number}: got {dict(row)}, expected three numbers.") from None
        if host < 0 or not 0 <= gone_s < back_s < math.inf:
            raise TraceError(
                f"{path}, line {number}: got {dict(row)}, expected a host from 0, and 0 <= gone_s < back_s."
            )
        away.setdefault(host, []).append((gone_s, back_s))
    return away
