"""A sensor on a place where raw data arrive in drops: each complete drop becomes a partition, and its runs.

    from marin_sensors.drops.completeness import Marked
    from marin_sensors.new_raw_data import new_raw_data

    crawls = new_raw_data(
        "crawls",
        "gs://crawls/{drop}/*.warc.gz",
        partitions="drops",                      # dynamic("drops") of the steps
        assets=["drops/raw", "drops/tokenized"],
        complete=Marked("_SUCCESS"),
    )

Each drop is taken once, also if the daemon is killed at any moment: a run's key is that of its drop, and Dagster
launches no key twice. What happens to a drop later (a file that is late, rewritten or gone) is an observation on the
page of the first asset; with `on_change="revise"` the drop is taken again, as the partition "<drop>@2".
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

import dagster as dg

from marin_resources.settings import default_prefix, normalize_prefix
from marin_sensors import run_requests
from marin_sensors.drops.completeness import Completeness, Settled
from marin_sensors.drops.memory import Memory
from marin_sensors.drops.pattern import DropPattern
from marin_sensors.drops.tick import Cursor, Taken, Watch, look

SETTLING_S = 600.0
BUDGET_S = 8.0
"""Seconds that a tick lists files: with what it does besides, a tick takes ten at most."""


def new_raw_data(
    name: str,
    path: str,
    *,
    partitions: str,
    assets: Sequence[str],
    complete: Completeness | None = None,
    on_change: Literal["report", "revise"] = "report",
    every_s: int = 60,
    at_most: int = 20,
    recheck_s: float = 3600,
    start: bool = False,
) -> dg.SensorDefinition:
    """A sensor named `name` on the drops at `path`, which has `{drop}` in it: see `DropPattern`.

    partitions   the name of the dynamic set of the assets: a drop's name is added to it
    assets       keys of the assets that are materialized at the new partition
    complete     when a drop is complete; by default when it has not changed for ten minutes
    on_change    what happens if a drop changes after it was taken: "report", or "revise", which takes it again
    every_s      seconds between two ticks
    at_most      drops that one tick takes
    recheck_s    seconds in which each drop that was taken is looked at once, for changes
    start        whether it runs without being switched on. Its runs cost what the assets cost

    Raises PatternError for a path without `{drop}`, ValueError for no asset and for another `on_change`.
    """
    keys = run_requests.keys_of(name, assets)
    if on_change not in ("report", "revise"):
        raise ValueError(f"The sensor {name!r} has on_change={on_change!r}, expected 'report' or 'revise'.")
    rule = complete or Settled(SETTLING_S)
    watch = Watch(
        pattern=DropPattern(path),
        rule=rule,
        revises=on_change == "revise",
        at_most=at_most,
        recheck_s=recheck_s,
        budget_s=BUDGET_S,
    )

    def request(taken: Taken) -> dg.RunRequest:
        return dg.RunRequest(
            run_key=f"{name}: {taken.key}",
            asset_selection=keys,
            partition_key=taken.key,
            tags={"marin/drop": taken.drop, **run_requests.LOST_RUNS},
        )

    @dg.sensor(
        name=name,
        asset_selection=dg.AssetSelection.assets(*keys),
        minimum_interval_seconds=every_s,
        default_status=dg.DefaultSensorStatus.RUNNING if start else dg.DefaultSensorStatus.STOPPED,
        description=(
            f"Looks at {path}. A drop is complete {rule}. Then its name is added to the set {partitions!r}, and "
            f"{', '.join(assets)} are materialized for it. A drop that changes later is "
            f"{'taken again' if watch.revises else 'reported'}."
        ),
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        if wrong := run_requests.misfit(context, keys, partitions):
            return dg.SkipReason(wrong)
        memory = Memory(normalize_prefix(default_prefix()), name)
        try:
            tick = look(watch, memory, Cursor.parse(context.cursor), time.time())
        except run_requests.REPORTED as error:
            return dg.SkipReason(str(error))
        run_requests.log(context, tick)
        return run_requests.result_of(tick, tick.cursor.text(), partitions, keys, request)

    return sensor
