"""Half an hour of deliveries and kills: each is processed exactly once, and the memory of what stays up is flat.

    python tests/benchmarks/soak.py [MINUTES]

A delivery arrives every 2 s. Every sensor ticks every 5 s, in a real daemon. For half of the time one of these is
killed with SIGKILL, at drawn moments about 34 s apart: the daemon and the code server, which start again at once, and
a worker in the middle of a partition. Then only workers are, and the memory of daemon and code server is watched: for
longer than the ten minutes in which their caches fill, those of a plain Dagster without any work too.

    deliveries     how many arrived, and that each has one complete output, by one attempt that succeeded; any other is
    a
              failure
    calls     calls of the step's function for each delivery; more than 1, as killed workers had begun some
    latency   seconds from a delivery's arrival to its complete output, median and largest, and the same without kills
    memory    of daemon and code server without kills: at first, in the middle, at the end; limit 1.02 from the
              middle to the end. A daemon without work grows by 0.2 MB a minute until Python collects its oldest
              garbage, which comes when a quarter of all objects are new; then by 0.01 MB. What is collected is used
              again, and never given back
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import dagster as dg
import psutil
from dagster_processes import CODE, DAEMON, DagsterProcesses, dagster_processes
from partition_steps import called, part
from record_fields import fields_of_record
from running import wait_until
from webhooks import webhook_on_loopback

from marin_assets import dynamic
from marin_assets.step.graph import build_graph
from marin_resources.configuration.settings import project_root
from marin_resources.storage.output.attempts import latest_attempt, read_attempt
from marin_resources.storage.output.state_summary import State, states_of_partitions
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Output

MINUTES = 30.0
DELIVERY_EVERY_S, KILL_EVERY_S, KILLING_SHARE = 2.0, 34.0, 1 / 2
WINDOW_S, SAMPLE_S, LOOK_S = 120.0, 5.0, 0.2
MEMORY_LIMIT = 1.02
WORK_S = 0.5
"""Of the function, so that a worker can be killed in it."""
WORKER = "worker"
LOCATION = """
import sys
sys.path.insert(0, {support!r})
from pathlib import Path
import dagster as dg
from partition_steps import part
from running import definitions_of
from marin_assets import dynamic
from marin_sensors.deliveries.completeness import Marked
from marin_sensors.failures import failures
from marin_sensors.new_raw_data import new_raw_data
from marin_sensors.unsynced import unsynced
from marin_sensors.stale_leases import stale_leases

watch = new_raw_data(
    "watch", {place!r} + "/{{drop}}/*.txt", partitions="deliveries", assets=["parts/raw"], complete=Marked("_SUCCESS"),
    runs="together", at_most=100, every_s=5, start=True,
)
defs = dg.Definitions.merge(
    definitions_of([part("raw", dynamic("deliveries"), Path({calls!r}), work_s={work_s})]),
    dg.Definitions(sensors=[watch, unsynced(every_s=5), stale_leases(every_s=5), failures(every_s=5)]),
)
"""


@dataclass(kw_only=True)
class Soak:
    """What happens to a deployment, and what was seen."""

    dagster: DagsterProcesses
    place: Path
    prefix: Path
    arrived_s: dict[str, float] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)
    memory: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: {DAEMON: [], CODE: []})
    """Process -> times and MB, since the last kill of it."""
    draw: random.Random = field(default_factory=lambda: random.Random(11))
    hunted: int = 0
    """Workers that are to be killed, as soon as there is one."""

    def go(self, seconds: float) -> None:
        began_s = time.monotonic()
        delivery_s = sample_s = shown_s = began_s
        kill_s = began_s + self.draw.expovariate(1 / KILL_EVERY_S)
        while (now_s := time.monotonic()) < began_s + seconds:
            if now_s >= delivery_s:
                self.delivery()
                delivery_s += DELIVERY_EVERY_S
            if now_s >= kill_s:
                calm = now_s >= began_s + seconds * KILLING_SHARE
                self.kill(WORKER if calm else self.draw.choice([DAEMON, CODE, WORKER]))
                kill_s = time.monotonic() + self.draw.expovariate(1 / KILL_EVERY_S)
            if now_s >= sample_s:
                self.sample(now_s)
                sample_s += SAMPLE_S
            if now_s >= shown_s:
                print(
                    f"{(now_s - began_s) / 60:5.1f} min  {len(self.arrived_s)} deliveries  {dict(self.kills)}",
                    flush=True,
                )
                shown_s += 60
            self.hunt()
            time.sleep(max(0.0, min(delivery_s, kill_s, sample_s, now_s + LOOK_S) - time.monotonic()))

    def delivery(self) -> None:
        name = f"d{len(self.arrived_s):05}"
        folder = self.place / name
        folder.mkdir()
        (folder / "a.txt").write_text(name)
        (folder / "_SUCCESS").touch()
        self.arrived_s[name] = time.time()

    def kill(self, what: str) -> None:
        if what == WORKER:
            self.hunted += 1
            return
        self.dagster.kill(what)
        self.dagster.start(what)
        self.memory[what].clear()
        self.kills[what] += 1

    def hunt(self) -> None:
        """Kill a worker, if one is to be killed and computes."""
        if self.hunted and (workers := workers_of(self.prefix)):
            self.draw.choice(workers).kill()
            self.hunted -= 1
            self.kills[WORKER] += 1

    def sample(self, now_s: float) -> None:
        for what, seen in self.memory.items():
            seen.append((now_s, psutil.Process(self.dagster.pid(what)).memory_info().rss / 1e6))


def workers_of(prefix: Path) -> list[psutil.Process]:
    """The processes that compute an output below the prefix now."""
    found = []
    for each in psutil.process_iter(["name", "cmdline"]):
        title = " ".join(each.info["cmdline"] or [])
        try:
            if title.startswith("ray::") and "IDLE" not in title and each.environ().get("MARIN_PREFIX") == str(prefix):
                found.append(each)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def main() -> int:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        home, place, prefix, calls = (folder / name for name in ("home", "deliveries", "prefix", "calls.txt"))
        for each in (home, place):
            each.mkdir()
        shutil.copy(project_root() / ".dagster/dagster.yaml", home)
        location = folder / "location.py"
        support = str(Path(__file__).parents[1] / "support")
        location.write_text(LOCATION.format(support=support, calls=str(calls), place=str(place), work_s=WORK_S))
        with webhook_on_loopback() as webhook:
            env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home), "MARIN_WEBHOOK_URL": webhook.url}
            os.environ |= env
            with dagster_processes(location, folder, env) as dagster, dg.DagsterInstance.get() as instance:
                soak = Soak(dagster=dagster, place=place, prefix=prefix)
                soak.go(60 * minutes)
                store, whole = Store(str(prefix)), whole_of(calls)
                keys = list(soak.arrived_s)
                wait_until(lambda: missing(store, whole, keys) == 0, "every delivery to be complete", timeout_s=900)
                wait_until(lambda: all(run.is_finished for run in instance.get_runs()), "the runs to end", 300)
                runs = instance.get_runs()
            told = len(webhook.texts)
        failed = sum(not run.is_success for run in runs)
        print(f"runs      {len(runs)}, {failed} of them lost or failed; {told} messages; kills {dict(soak.kills)}")
        return 0 if all([deliveries(store, whole, soak, calls), memory(soak)]) else 1


def whole_of(calls: Path) -> Output:
    """The version whose partitions the deliveries become."""
    step = part("raw", dynamic("deliveries"), calls, work_s=WORK_S)
    return build_graph([step])[step].output


def missing(store: Store, whole: Output, keys: Sequence[str]) -> int:
    states = states_of_partitions(store, whole, keys)
    return sum(each.state is not State.COMPLETE for each in states)


def deliveries(store: Store, whole: Output, soak: Soak, calls: Path) -> bool:
    times, latencies = Counter(called(calls)), []
    right = (there := store.partitions(whole)) == sorted(soak.arrived_s)
    if not right:
        print(f"wrong     partitions and deliveries differ: {sorted(set(there) ^ set(soak.arrived_s))}")
    for name, arrived_s in soak.arrived_s.items():
        path = store.locate(whole.at(name))
        record = fields_of_record(path)
        marks = [read_attempt(path, attempt) for attempt in range(1, latest_attempt(path) + 1)]
        assert record is not None
        outcomes, own_calls = [mark.get("outcome") for mark in marks], times[f"raw[{name}]"]
        if outcomes.count("success") != 1 or not 1 <= own_calls <= len(marks):
            print(f"wrong     {name}: {own_calls} calls, attempts {outcomes}, by attempt {record.get('attempt')}")
            right = False
        latencies.append(datetime.fromisoformat(record["finished_at"]).timestamp() - arrived_s)
    calm = latencies[int(len(latencies) * KILLING_SHARE) :]
    count, total = len(soak.arrived_s), sum(times.values())
    print(f"deliveries     {count}, each processed exactly once: {right}")
    print(f"calls     {total / count:.3f} for each delivery")
    print(f"latency   median {statistics.median(latencies):.0f} s, largest {max(latencies):.0f} s", end="; ")
    print(f"without kills of daemon and code server {statistics.median(calm):.0f} s, {max(calm):.0f} s")
    return right


def memory(soak: Soak) -> bool:
    """Caches fill at first. What counts is whether it grows on, from the middle to the end."""
    flat = True
    for what, seen in soak.memory.items():
        began_s, ended_s = seen[0][0], seen[-1][0]
        first, middle, last = (
            statistics.median(mb for at_s, mb in seen if abs(at_s - center_s) <= WINDOW_S / 2)
            for center_s in (began_s + WINDOW_S / 2, (began_s + ended_s) / 2, ended_s - WINDOW_S / 2)
        )
        flat &= last / middle <= MEMORY_LIMIT
        shown = f"{first:.1f}, {middle:.1f}, {last:.1f} MB in {(ended_s - began_s) / 60:.0f} min"
        print(f"memory    {what}: {shown}, ratio {last / middle:.3f} (limit {MEMORY_LIMIT})")
    return flat


if __name__ == "__main__":
    raise SystemExit(main())
