"""What a plan of thousands of steps costs: on a disk, in a bucket, and where all is reused.

    python tests/benchmarks/plan.py [STEPS]

    disk              seconds to plan 5,000 steps, all complete, and then all changed at their root, with the steps'
                      graph; limit 3 s (four times as many: 12 s)
    bucket            requests to the fake GCS for the same; limit: one for each 500 steps, plus the pages of listings
    all reused        ms a step of `executor_main` with 1,000 steps that are all complete, less those of one step; limit
                      2 ms, and no Dagster run
    peer              the same 1,000 steps by three small files of each, as a look without markers reads them

Outputs are published by the store, as workers do it, in a bucket only what a plan reads of them. Takes some minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import object_stores
from bucket_for_tests import BucketForTests

from marin_assets.plan.plan import Action, Planned
from marin_assets.plan.prepare import prepare_plan
from marin_assets.plan.record_facts.facts import describe_node, resolved_config
from marin_assets.run.entry_point import executor_main
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.configuration.settings import project_root
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output import record, status
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Status
from marin_resources.types.record import Record

STEPS, REUSED_STEPS = 5000, 1000
DISK_LIMIT_S, REUSE_LIMIT_MS = 3.0, 2.0
STEPS_A_REQUEST, OBJECTS_A_PAGE = 500, 1000
GROUPS = ("raw", "documents", "tokenized", "checkpoints", "evaluation")
TRIES = 3


@dataclass(frozen=True, kw_only=True)
class Config:
    inputs: tuple[Any, ...] = ()
    seed: Any = versioned(1)
    note: str = "a field without a version"
    output_path: str = THIS_OUTPUT_PATH


def work(config: Config) -> dict[str, int]:
    """Never called but for the first run of one step."""
    write_bytes(join(config.output_path, "data.txt"), b"12345")
    return {"documents": 1}


def steps(count: int, seed: Any = 1) -> list[Step]:
    """A tree below one root: each step reads one before it, as sweeps and corpora do."""
    found = [Step(name="raw/root", fn=work, config=Config(seed=versioned(seed)))]
    for i in range(1, count):
        config = Config(inputs=(found[(i - 1) // 3],), seed=versioned(i))
        found.append(Step(name=f"{GROUPS[i % len(GROUPS)]}/s{i}", fn=work, config=config))
    return found


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DAGSTER_HOME"] = f"{folder}/dagster"
        os.makedirs(os.environ["DAGSTER_HOME"])
        shutil.copy(project_root() / ".dagster/dagster.yaml", os.environ["DAGSTER_HOME"])
        within = [on_disk(f"{folder}/prefix", count), in_bucket(count), all_reused(folder)]
    return 0 if all(within) else 1


def fill(store: Store, count: int) -> None:
    """Complete outputs, with the files that a look reads."""
    graph = build_graph(steps(count))
    facts = {node.output: describe_node(node, store, resolved_config(node, graph, store), {}, None) for node in graph}

    def complete(output: Any) -> None:
        path = store.locate(output)
        ended = {"identity": output.identity, "attempt": 1, "finished_at": "2026-01-01T00:00:00+00:00"}
        taken = {"digest": "d", "files": 1, "bytes": 5}
        known = {**facts[output], **ended, "duration_s": 3.0, "result": {"documents": 1}, "manifest": taken}
        record.write_record(path, Record.from_dict(known))
        status.write_status(path, Status.SUCCESS)
        store.mark_done(output, Record.from_dict(known))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(complete, facts))


def planned(store: Store, count: int, seed: Any = 1) -> list[Planned]:
    graph = build_graph(steps(count, seed))
    return prepare_plan(graph, store, list(graph))


def on_disk(prefix: str, count: int) -> bool:
    store = Store(prefix)
    fill(store, count)
    limit_s = DISK_LIMIT_S * count / STEPS
    first_s = seconds(lambda: planned(store, count))
    took = [seconds(lambda: require(planned(store, count), Action.REUSE)) for _ in range(TRIES)]
    changed = [seconds(lambda: require(planned(store, count, 2), Action.RUN)) for _ in range(TRIES)]
    print(
        f"disk        {median(took):6.2f} s all complete, {median(changed):.2f} s all changed, {first_s:.2f} s the "
        f"first time, for {count}; limit {limit_s:g} s",
        flush=True,
    )
    return max(median(took), median(changed)) <= limit_s


def in_bucket(count: int) -> bool:
    bucket: BucketForTests = object_stores.gcs_bucket()
    store = Store(bucket.prefix)
    fill(store, count)
    planned(store, count)  # packs the records
    made = []
    for seed, action in ((1, Action.REUSE), (2, Action.RUN)):
        before = bucket.requests_made()
        require(planned(store, count, seed), action)
        made.append(bucket.requests_made() - before)
    pages = 2 * (count // OBJECTS_A_PAGE + 1) + len(GROUPS) + 1  # markers, folders, packs
    limit = count / STEPS_A_REQUEST + pages
    bucket.forget()
    print(f"bucket      {made[0]:6} requests all complete, {made[1]} all changed, limit {limit:g}", flush=True)
    return max(made) <= limit


def all_reused(folder: str) -> bool:
    """Each in a process of its own, after one that told Dagster of the outputs."""
    took = {}
    for count in (1, REUSED_STEPS):
        fill_with_files(f"{folder}/reused{count}", count)
        run(f"{folder}/reused{count}", count)
        took[count] = median([seconds(lambda: run(f"{folder}/reused{count}", count)) for _ in range(TRIES)])  # noqa: B023
    each_ms = 1000 * (took[REUSED_STEPS] - took[1]) / REUSED_STEPS
    store, graph = Store(f"{folder}/reused{REUSED_STEPS}"), build_graph(steps(REUSED_STEPS))
    look_ms = 1000 * seconds(lambda: store.look(node.output for node in graph)) / REUSED_STEPS
    runs = len(list(Path(os.environ["DAGSTER_HOME"]).glob("history/runs/*-*-*.db")))
    print(
        f"all reused  {each_ms:6.2f} ms a step, limit {REUSE_LIMIT_MS:g}; {each_ms / look_ms:.1f} times a look at its "
        f"three files ({look_ms:.2f} ms); {runs} Dagster runs",
        flush=True,
    )
    return each_ms <= REUSE_LIMIT_MS and runs == 0


def fill_with_files(prefix: str, count: int) -> None:
    store, graph = Store(prefix), build_graph(steps(count))
    for node in graph:
        claimed = store.claim(node.output, attempt=1, resumable=False, run_id=None)
        write_bytes(join(claimed.path, "data.txt"), b"12345")
        facts = describe_node(node, store, resolved_config(node, graph, store), {}, None)
        store.publish(claimed, facts, {"documents": 1})


def run(prefix: str, count: int) -> None:
    done = subprocess.run(
        [sys.executable, __file__, "--steps", str(count), "--prefix", prefix], capture_output=True, text=True
    )
    assert f"0 computed, {count} reused, 0 failed" in done.stderr, done.stderr


def require(plan: Sequence[Planned], action: Action) -> None:
    assert all(item.action is action for item in plan), plan[0]


def seconds(do: Any) -> float:
    began_s = time.perf_counter()
    do()
    return time.perf_counter() - began_s


if __name__ == "__main__":
    if "--steps" in sys.argv:
        place = sys.argv.index("--steps")
        count_of_steps = int(sys.argv[place + 1])
        del sys.argv[place : place + 2]
        executor_main(steps(count_of_steps))
    else:
        raise SystemExit(main())
