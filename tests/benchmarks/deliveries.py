"""What a tick of `new_raw_data` costs when it knows all that is there.

    python tests/benchmarks/deliveries.py [OBJECTS] [STORE …]

    disk, gcs    seconds, memory and cursor of a tick that finds nothing new (limits 10 s, 200 MB, 100 kB), and of one
                 that finds a new delivery; requests of both. Their limit is one for each 1,000 new objects, besides
                 what no tick can avoid: the names of deliveries in pages of 1,000, and the state's file
    sweep        seconds and requests in which all that was taken is looked at once, for changes

A million empty objects by default, 1,000 in each delivery. Takes some minutes.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import object_stores

from marin_sensors.deliveries.completeness import Settled
from marin_sensors.deliveries.memory import Memory
from marin_sensors.deliveries.pattern import DeliveryPattern
from marin_sensors.deliveries.tick import Cursor, Tick, Watch, look
from marin_sensors.new_raw_data import BUDGET_S

IN_DELIVERY = 1000
PAGE = 1000
LIMIT_S, LIMIT_BYTES, LIMIT_CURSOR = 10.0, 200e6, 100_000
SWEEP_S = 3600.0


def main() -> int:
    objects = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    stores = sys.argv[2:] or ["disk", "gcs"]
    within = []
    with tempfile.TemporaryDirectory() as folder:
        if "disk" in stores:
            within.append(on_disk(Path(folder), objects))
        if "gcs" in stores:
            within.append(in_bucket(folder, objects))
    return 0 if all(within) else 1


def names_of(delivery: int) -> list[str]:
    return [f"deliveries/d{delivery:05}/part-{i:05}.gz" for i in range(IN_DELIVERY)]


def on_disk(folder: Path, objects: int) -> bool:
    def fill(delivery: int) -> None:
        Path(folder, f"deliveries/d{delivery:05}").mkdir(parents=True)
        for name in names_of(delivery):
            os.close(os.open(folder / name, os.O_CREAT))

    for delivery in range(objects // IN_DELIVERY):
        fill(delivery)
    return measure("disk", f"{folder}/deliveries", f"{folder}/prefix", objects, fill, lambda: 0)


def in_bucket(folder: str, objects: int) -> bool:
    bucket = object_stores.gcs_bucket()
    for delivery in range(objects // IN_DELIVERY):
        bucket.fill(names_of(delivery))
    place = f"{bucket.prefix}/deliveries"
    within = measure(
        "gcs",
        place,
        f"{bucket.prefix}/outputs",
        objects,
        lambda delivery: bucket.fill(names_of(delivery)),
        lambda: bucket.requests_made(),
    )
    bucket.forget()
    return within


def measure(
    store: str, place: str, prefix: str, objects: int, fill: Callable[[int], None], requests: Callable[[], int]
) -> bool:
    watch = Watch(
        pattern=DeliveryPattern(f"{place}/{{drop}}/*.gz"),
        rule=Settled(0),
        revises=False,
        at_most=10**9,
        recheck_s=SWEEP_S,
        budget_s=BUDGET_S,
    )
    memory = Memory(prefix, "watch")
    process = psutil.Process()
    empty_bytes = process.memory_info().rss
    cursor, now_s, taken, began_s = Cursor(), 1e9, 0, time.perf_counter()
    while taken < objects // IN_DELIVERY:
        tick = look(watch, memory, cursor, now_s)
        cursor, taken = tick.cursor, taken + len(tick.taken)
    print(f"{store:5} first    {time.perf_counter() - began_s:8.1f} s to take {taken} deliveries", flush=True)

    def timed(at_s: float) -> tuple[Tick, float, int]:
        before, began_s = requests(), time.perf_counter()
        tick = look(watch, memory, cursor, at_s)
        return tick, time.perf_counter() - began_s, requests() - before

    tick, known_s, known = timed(now_s + 1)
    cursor = tick.cursor
    more_bytes = process.memory_info().rss - empty_bytes
    fill(objects // IN_DELIVERY)
    tick, new_s, new = timed(now_s + 2)
    assert len(tick.taken) == 1
    cursor = tick.cursor
    unavoidable = -(-(objects // IN_DELIVERY + 1) // PAGE) + 8  # and the state, read, written, and its folder listed
    print(
        f"{store:5} known    {known_s:8.2f} s, {known} requests, {more_bytes / 1e6:.0f} MB, cursor of "
        f"{len(cursor.text())} B; limits {LIMIT_S:g} s, {unavoidable}, {LIMIT_BYTES / 1e6:g} MB, {LIMIT_CURSOR}",
        flush=True,
    )
    print(
        f"{store:5} one new  {new_s:8.2f} s, {new} requests, limit {unavoidable + 1 + IN_DELIVERY // PAGE}", flush=True
    )
    began_s, before, at_s = time.perf_counter(), requests(), now_s + SWEEP_S + 3
    ticks = 0
    while ticks == 0 or cursor.taken_at:
        cursor, ticks = look(watch, memory, cursor, at_s + ticks).cursor, ticks + 1
    print(
        f"{store:5} sweep    {time.perf_counter() - began_s:8.1f} s in {ticks} ticks, {requests() - before} requests",
        flush=True,
    )
    return (
        max(known_s, new_s) <= LIMIT_S
        and more_bytes <= LIMIT_BYTES
        and len(cursor.text()) <= LIMIT_CURSOR
        and known <= unavoidable
        and new <= unavoidable + 1 + IN_DELIVERY // PAGE
    )


if __name__ == "__main__":
    raise SystemExit(main())
