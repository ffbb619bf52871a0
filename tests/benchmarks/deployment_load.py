"""The whole deployment on this machine under load: what a person waits for, whether ticks keep their interval, memory.

    python tests/benchmarks/deployment_load.py [MINUTES]

Its code location has 1,000 assets and one with 10,000 partitions, all of them there. 20 browsers, each logged
in, open the page of one asset after the other, each fourth time that of the partitioned one, and stay on each for a
minute: what one real Chromium asks for on those pages is recorded first, and asked again at the same moments. 50 runs
are queued at once when that begins, and again each 10 minutes.

    page      seconds until all answers are there that the page asks for in its first second; limit of p95 1.5
    ticks     of each sensor: the median time between two, to its interval; limit 1.1
    memory    of daemon, code server and webservers: after a quarter of the time and at the end; limit 1.1
    runs      all that were queued succeed

The limits are for a machine that has nothing else to do. Here the browsers, the database, the cluster and the runs
share its cores, so the same is measured before the runs are queued, as `quiet`. Exits 1 above a limit.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import dagster as dg
import object_stores  # noqa: F401  (it keeps the environment of tests away from the deployment)
import psutil
import requests
from dagster._core.definitions.run_request import InstigatorType
from person import Person
from playwright.sync_api import sync_playwright
from rehearsal import Rehearsal, rehearsal

from marin_resources.dagster_fixes.event_batches import report_together

MINUTES = 60.0
PARTITIONS = 10_000
BROWSERS, RUNS, RUNS_EVERY_S, QUIET_S = 20, 50, 600.0, 180.0
STAY_S = 60.0
FIRST_S = 1.0
PAGE_LIMIT_S, MEMORY_LIMIT = 1.5, 1.1
TICK_LIMIT = 1.1
WATCHED = ("daemon", "code", "webserver", "read_only")
ASSET, PARTITIONED, NUMBER = "load/0500", "load/parts", "0500"
PARTITIONED_EACH = 4
CACHED_S = 15.0
"""After which a browser has the code location in its cache."""
STEPS = """
from dataclasses import dataclass
from marin_assets import Step, THIS_OUTPUT_PATH, output_path_of, static, versioned


@dataclass(frozen=True, kw_only=True)
class Config:
    n: int = versioned(0)
    input_path: str = ""
    output_path: str = THIS_OUTPUT_PATH


def make(config):
    return {"n": config.n}


def steps():
    made = []
    for i in range(1000):
        reads = output_path_of(made[i - 100]) if i >= 100 else ""
        made.append(Step(name=f"load/{i:04}", fn=make, config=Config(n=versioned(i), input_path=reads)))
    parts = Step(
        name="load/parts", fn=make, config=Config(), partitions=static(*(f"{i:05}" for i in range(10_000)))
    )
    return [*made, parts]
"""


@dataclass
class Request:
    after_s: float
    path: str
    body: dict[str, Any]

    def of(self, number: str) -> Request:
        """The same for another asset."""
        return replace(self, body=json.loads(json.dumps(self.body).replace(NUMBER, number)))


@dataclass
class Measured:
    pages_s: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, seconds: float) -> None:
        with self.lock:
            self.pages_s.append(seconds)

    def p95_s(self) -> float:
        return statistics.quantiles(self.pages_s, n=20)[-1]

    def page_line(self) -> str:
        median_s, longest_s = statistics.median(self.pages_s), max(self.pages_s)
        return f"p95 {self.p95_s():.2f} s, median {median_s:.2f}, longest {longest_s:.2f} of {len(self.pages_s)} pages"


def main(minutes: float) -> int:
    with experiments() as folder, rehearsal(folder) as deployment:
        report_partitions(deployment)
        pages = {asset: record(deployment, asset) for asset in (ASSET, PARTITIONED)}
        for asset, recorded in pages.items():
            first = sum(one.after_s <= FIRST_S for one in recorded)
            print(
                f"recorded  {asset}: {len(recorded)} requests in {STAY_S:g} s, {first} in its first second", flush=True
            )
        people = [deployment.person("ada" if i % 2 else "bob") for i in range(BROWSERS)]
        quiet = browse(people, pages, QUIET_S)
        print(f"quiet     {quiet.page_line()}, {BROWSERS} browsers", flush=True)
        stop = threading.Event()
        memory: list[dict[str, float]] = []
        began = time.time()
        with ThreadPoolExecutor(2) as beside:
            launched = beside.submit(launch_runs, deployment, stop)
            watched = beside.submit(watch_memory, deployment, stop, memory)
            loaded = browse(people, pages, minutes * 60)
            stop.set()
            runs = launched.result()
            watched.result()
        succeeded = await_runs(deployment, runs)
        return report(loaded, memory, ticks(deployment, began), len(runs), succeeded)


def report_partitions(deployment: Rehearsal) -> None:
    """All partitions are there, as `marin sync` would report them: on this cluster each would be a job."""
    key = dg.AssetKey(PARTITIONED.split("/"))
    with deployment.instance() as instance:
        report_together(instance, [dg.AssetMaterialization(key, partition=f"{i:05}") for i in range(PARTITIONS)])
        assert len(instance.get_materialized_partitions(key)) == PARTITIONS


@contextmanager
def experiments() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        Path(name, "load.py").write_text(STEPS)
        yield Path(name)


def record(deployment: Rehearsal, asset: str) -> list[Request]:
    """What Chromium asks GraphQL for on the page, and when: straight at a webserver, as the login asks nothing."""
    bare = deployment.beside_the_proxy()
    found: list[Request] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        address = f"{bare.url}/assets/{asset}"
        page.goto(address)
        page.wait_for_timeout(CACHED_S * 1000)
        began_s = time.monotonic()

        def note(request: Any) -> None:
            if "/graphql" in request.url and request.method == "POST":
                path = request.url.removeprefix(bare.url)
                found.append(Request(time.monotonic() - began_s, path, json.loads(request.post_data)))

        page.on("request", note)
        page.goto(address)
        page.wait_for_timeout(STAY_S * 1000)
        browser.close()
    first_s = found[0].after_s
    return [Request(one.after_s - first_s, one.path, one.body) for one in found]


def browse(people: list[Person], pages: dict[str, list[Request]], seconds: float) -> Measured:
    measured = Measured()
    until_s = time.monotonic() + seconds
    threads = [
        threading.Thread(target=_visit, args=(i, person, pages, until_s, measured)) for i, person in enumerate(people)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return measured


def _visit(i: int, person: Person, pages: dict[str, list[Request]], until_s: float, measured: Measured) -> None:
    """One browser, which begins a while after the one before."""
    time.sleep(i * STAY_S / BROWSERS)
    visits = itertools.count(i)
    with ThreadPoolExecutor(6) as sender:
        while time.monotonic() < until_s:
            visit = next(visits)
            if visit % PARTITIONED_EACH == 0:
                recorded = pages[PARTITIONED]
            else:
                recorded = [one.of(f"{100 + (37 * visit + 41 * i) % 800:04}") for one in pages[ASSET]]
            _stay(person, sender, recorded, measured)


def _stay(person: Person, sender: ThreadPoolExecutor, recorded: list[Request], measured: Measured) -> None:
    """It sends what a page asks for as it comes, six requests at once."""
    began_s = time.monotonic()
    first: list[Future[float]] = []
    for one in recorded:
        time.sleep(max(0.0, one.after_s - (time.monotonic() - began_s)))
        answer = sender.submit(_send, person, one, measured)
        if one.after_s <= FIRST_S:
            first.append(answer)
        elif first:
            measured.add(max(each.result() for each in first) - began_s)
            first = []
    time.sleep(max(0.0, STAY_S - (time.monotonic() - began_s)))


def _send(person: Person, one: Request, measured: Measured) -> float:
    try:
        answer = person.post(one.path, one.body)
    except requests.ConnectionError:  # the connection was idle, and is closed: a browser opens another
        answer = person.post(one.path, one.body)
    if answer.status_code != 200:
        with measured.lock:
            measured.failures.append(f"{answer.status_code} {one.path}")
    return time.monotonic()


def launch_runs(deployment: Rehearsal, stop: threading.Event) -> list[str]:
    ada = deployment.person("ada")
    launched: list[str] = []
    while True:
        for _ in range(RUNS):
            answer = ada.launch("two_steps")
            launched.append(answer["run"]["runId"])
        if stop.wait(RUNS_EVERY_S):
            return launched


def watch_memory(deployment: Rehearsal, stop: threading.Event, memory: list[dict[str, float]]) -> None:
    pids = {name: deployment.pid(name) for name in WATCHED}
    while not stop.wait(10):
        memory.append({name: psutil.Process(pid).memory_info().rss / 1e6 for name, pid in pids.items()})


def await_runs(deployment: Rehearsal, runs: list[str]) -> int:
    """How many have succeeded when all have ended."""
    with deployment.instance() as instance:
        while True:
            found = [instance.get_run_by_id(run) for run in runs]
            if all(run is not None and run.is_finished for run in found):
                return sum(run.is_success for run in found if run is not None)
            time.sleep(5)


@dataclass
class Ticks:
    sensor: str
    interval_s: float
    between_s: list[float]

    def ratio(self) -> float:
        """Of the median to the sensor's interval."""
        return statistics.median(self.between_s) / self.interval_s


def ticks(deployment: Rehearsal, began: float) -> list[Ticks]:
    """Of each sensor that runs, since the runs were queued."""
    found = []
    with deployment.instance() as instance:
        for state in instance.all_instigator_state(instigator_type=InstigatorType.SENSOR):
            looked = instance.get_ticks(state.instigator_origin_id, state.selector_id, after=began)
            times = sorted(tick.timestamp for tick in looked)
            if state.is_running and len(times) > 2:
                between_s = [later - earlier for earlier, later in itertools.pairwise(times)]
                found.append(Ticks(state.name, state.instigator_data.min_interval, between_s))
    return found


def report(loaded: Measured, memory: list[dict[str, float]], sensors: list[Ticks], runs: int, succeeded: int) -> int:
    quarter = memory[len(memory) // 4]
    ratios = {name: memory[-1][name] / quarter[name] for name in WATCHED}
    print(f"page      {loaded.page_line()}; limit of p95 {PAGE_LIMIT_S:g}")
    print(f"answers   {len(loaded.failures)} failed {sorted(set(loaded.failures))[:5]}")
    for one in sensors:
        numbers = f"{len(one.between_s)} times {one.interval_s:g} s, longest {max(one.between_s):.1f}"
        print(f"ticks     {one.sensor}: {numbers}, median's ratio {one.ratio():.3f}; limit {TICK_LIMIT:g}")
    for name, ratio in ratios.items():
        at = [len(memory) // 4, len(memory) // 2, 3 * len(memory) // 4, -1]  # where it flattens, if it does
        mb = ", ".join(f"{memory[i][name]:.0f}" for i in at) + " MB"
        print(f"memory    {name}: {mb}, ratio {ratio:.3f}; limit {MEMORY_LIMIT:g}")
    print(f"runs      {succeeded} of {runs} succeeded; {os.cpu_count()} cores")
    in_time = bool(sensors) and all(one.ratio() <= TICK_LIMIT for one in sensors)
    within = loaded.p95_s() <= PAGE_LIMIT_S and in_time and max(ratios.values()) <= MEMORY_LIMIT
    return 0 if within and not loaded.failures and succeeded == runs else 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES))
