"""What an output cost to make: the seconds of its attempt, the device hours that it held, and dollars for those.

Dollars are of the prices that the deployment has declared. What a record does not say is not known, and stays None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from marin_resources.storage.files import names_in
from marin_resources.storage.paths import join
from marin_resources.storage.usage.entries import FOLDER, Entry, entry_path, read_entry
from marin_resources.storage.usage.prices import Prices

THREADS = 32
HOUR_S = 3600


@dataclass(frozen=True, kw_only=True)
class MakingCost:
    seconds: float | None = None
    """From its claim to its end, of the attempt that completed it."""
    device_hours: float = 0.0
    """Of one GPU, or of one chip of a TPU."""
    dollars: float | None = None
    """For its device hours; None without a price."""


def making_costs(prefix: str, records: Mapping[str, Mapping[str, Any]], prices: Prices) -> dict[str, MakingCost]:
    """Path of an output -> what it cost, given its record. Raises ControlFileError and UnavailableError."""
    pools = _entries(prefix, records)
    return {path: _cost(record, pools.get(path), prices) for path, record in records.items()}


def _cost(record: Mapping[str, Any], entry: Entry | None, prices: Prices) -> MakingCost:
    seconds = record.get("duration_s")
    hours = (record.get("ledger") or {}).get("device_hours")
    if hours is None:
        hours = entry.devices * seconds / HOUR_S if entry is not None and seconds is not None else 0.0
    price = prices.of_pool(entry.pool) if entry is not None and entry.pool is not None and hours else None
    return MakingCost(seconds=seconds, device_hours=hours, dollars=price.dollars * hours if price else None)


def _entries(prefix: str, records: Mapping[str, Mapping[str, Any]]) -> dict[str, Entry]:
    """The usage entries of these outputs: an attempt without a device has none. By a listing for each day."""
    wanted = {path: place for path, record in records.items() if (place := _place(prefix, path, record)) is not None}
    days = frozenset(names_in(join(prefix, FOLDER)))
    folders = sorted(
        {folder for place in wanted.values() if (folder := place.rpartition("/")[0]).split("/")[-1] in days}
    )
    with ThreadPoolExecutor(THREADS) as pool:
        listed = pool.map(names_in, folders)
        there = {join(folder, name) for folder, names in zip(folders, listed, strict=True) for name in names}
        found: Sequence[str] = [path for path, place in wanted.items() if place in there]
        return dict(zip(found, pool.map(lambda path: read_entry(wanted[path]), found), strict=True))


def _place(prefix: str, path: str, record: Mapping[str, Any]) -> str | None:
    started, attempt = record.get("started_at"), record.get("attempt")
    if not started or not attempt:
        return None
    return entry_path(prefix, join(prefix, path), attempt, datetime.fromisoformat(started))
