"""What an asset with many partitions costs: to list, plan and resolve what is missing; to reuse; to load.

    python tests/benchmarks/partitions.py [PARTITIONS]

    look on disk      seconds of states, plan with drift and missing keys together, 99 of 100 complete; limit 8 s for
                      10,000
    look in a bucket  requests to the fake GCS for the same, once their records are packed; limit: one for each 500
                      partitions, for states and for plan
    reuse             ms a partition of a run that finds all complete, less the run of one; limit 10 ms, where plain
                      Dagster, with an empty body and its own event log, takes 3.6. Beside it plain Dagster with ours
    load              seconds that 10,000 keys add to building the definitions; limit 1
    backfill          seconds of a backfill that finds all complete, from its request to its end, with code server,
                      daemon and webserver; limit 150 s for 10,000 where plain Dagster takes 3.6 ms a partition.
                      Beside it that of the plain asset

Outputs are published by the store, as workers do it; in a bucket are only their records and markers. Takes minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import dagster as dg
import object_stores
from bucket_for_tests import BucketForTests
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG
from dagster_processes import dagster_processes
from partition_steps import keys, part

from marin_assets.assets.assemble import definitions_of
from marin_assets.assets.runs.run import run_graph
from marin_assets.plan.partitions import partition_states
from marin_assets.plan.plan import Action
from marin_assets.plan.prepare import prepare_plan
from marin_assets.plan.record_facts.facts import describe_node, resolved_config
from marin_assets.step.graph import Graph, Node, build_graph
from marin_assets.step.partitions.sets import static
from marin_resources.configuration.settings import project_root
from marin_resources.dagster_fixes.event_batches import VARIABLE
from marin_resources.storage.files import read_bytes, write_bytes
from marin_resources.storage.output.state_summary import State
from marin_resources.storage.output.store import Store
from marin_resources.types.record import Record

MISSING_SHARE = 100
"""One of so many is missing."""
LOOK_LIMIT_S, REUSE_LIMIT_MS, LOAD_LIMIT_S, BACKFILL_LIMIT_S = 8.0, 10.0, 1.0, 150.0
PLAIN_MS = 3.6
"""What plain Dagster takes for a partition where these limits are from, each event stored by itself."""
PARTITIONS_A_REQUEST = 500


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DAGSTER_HOME"] = f"{folder}/dagster"
        os.environ["MARIN_PREFIX"] = f"{folder}/prefix"
        os.makedirs(os.environ["DAGSTER_HOME"])
        shutil.copy(project_root() / ".dagster/dagster.yaml", os.environ["DAGSTER_HOME"])
        step = part("many", static(*keys(count)), Path(folder, "calls.txt"))
        graph = build_graph([step])
        node = graph[step]
        complete = [key for i, key in enumerate(keys(count)) if i % MISSING_SHARE]
        within = [look_on_disk(graph, node, complete, count), look_in_bucket(graph, node, complete, count)]
        is_fast, slower = reuse(graph, node, complete, count)
        within += [is_fast, load(folder, count), backfill(Path(folder), count, slower)]
    return 0 if all(within) else 1


def publish(store: Store, graph: Graph, node: Node, some: Iterable[str]) -> None:
    for key in some:
        one = node.at(key)
        facts = describe_node(one, store, resolved_config(one, graph, store), {}, None)
        store.publish(store.claim(one.output, attempt=1, resumable=False, run_id=None), facts, {"length": 5})


def look(graph: Graph, node: Node, store: Store) -> tuple[int, int]:
    """How many partitions are missing, and how many a plan would compute."""
    partitions = node.step.partitions
    assert partitions is not None
    states = partition_states(node, store)
    planned = prepare_plan(graph, store, [node.at(key) for key in partitions.fixed_keys or ()])
    missing = [each.key for each in states if each.state is not State.COMPLETE]
    return len(missing), sum(item.action is Action.RUN for item in planned)


def look_on_disk(graph: Graph, node: Node, complete: list[str], count: int) -> bool:
    store = Store(os.environ["MARIN_PREFIX"])
    publish(store, graph, node, complete)
    began_s = time.perf_counter()
    found = look(graph, node, store)
    took_s = time.perf_counter() - began_s
    assert found == (count - len(complete),) * 2, found
    limit_s = LOOK_LIMIT_S * count / 10_000
    print(f"look on disk      {took_s:8.2f} s for {count}, limit {limit_s:g} s", flush=True)
    return took_s <= limit_s


def look_in_bucket(graph: Graph, node: Node, complete: list[str], count: int) -> bool:
    bucket: BucketForTests = object_stores.gcs_bucket()
    store, on_disk = Store(bucket.prefix), Store(os.environ["MARIN_PREFIX"])

    def mark(key: str) -> None:
        output = node.at(key).output
        record = read_bytes(f"{on_disk.locate(output)}/.executor_info")
        write_bytes(f"{store.locate(output)}/.executor_info", record)
        store.mark_done(output, Record.from_dict(json.loads(record)))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(mark, complete))
    look(graph, node, store)
    before = bucket.requests_made()
    found = look(graph, node, store)
    made = bucket.requests_made() - before
    assert found == (count - len(complete),) * 2, found
    missing = count - len(complete)
    limit = 2 * count / PARTITIONS_A_REQUEST + 10
    print(f"look in a bucket  {made:8} requests for {count}, {missing} missing, limit {limit:g}", flush=True)
    bucket.forget()
    return made <= limit


def reuse(graph: Graph, node: Node, complete: list[str], count: int) -> tuple[bool, float]:
    """Whether it is within the limit, and how much slower this machine's Dagster is than where the limits are from."""
    publish(Store(os.environ["MARIN_PREFIX"]), graph, node, sorted(set(keys(count)) - set(complete)))

    def ours(some: list[str]) -> None:
        ended = run_graph("many", graph, [node], keys=some)
        assert (ended.computed, ended.reused, ended.failures) == (0, len(some), ()), ended

    plain = run_plain(count)
    ours_ms, batched_ms = each_ms(ours, count), each_ms(plain, count)
    with one_by_one():
        plain_ms = each_ms(plain, count)
    slower = plain_ms / PLAIN_MS
    peers = f"plain Dagster {plain_ms:.2f} ms, with batches of events {batched_ms:.2f} ms"
    print(
        f"reuse             {ours_ms:8.2f} ms a partition of {count}, limit {REUSE_LIMIT_MS * slower:.1f} ms; {peers}"
    )
    return ours_ms <= REUSE_LIMIT_MS * slower, slower


@contextmanager
def one_by_one() -> Iterator[None]:
    """Dagster stores each event by itself, as it does without our event log."""
    before, os.environ[VARIABLE] = os.environ[VARIABLE], "0"
    try:
        yield
    finally:
        os.environ[VARIABLE] = before


def each_ms(run: Callable[[list[str]], None], count: int) -> float:
    """Milliseconds a partition: those of a run of all, less those of a run of one."""
    took_s = []
    for some in (list(keys(count))[:1], list(keys(count))):
        began_s = time.perf_counter()
        run(some)
        took_s.append(time.perf_counter() - began_s)
    return 1000 * (took_s[1] - took_s[0]) / (count - 1)


def run_plain(count: int) -> Callable[[list[str]], None]:
    """A run of an asset of plain Dagster, in this process and in the same instance."""
    policy = dg.BackfillPolicy.single_run()

    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(list(keys(count))), backfill_policy=policy)
    def plain() -> dg.MaterializeResult:
        return dg.MaterializeResult()

    job = dg.Definitions(assets=[plain]).resolve_implicit_global_asset_job_def()

    def run(some: list[str]) -> None:
        tags = {ASSET_PARTITION_RANGE_START_TAG: some[0], ASSET_PARTITION_RANGE_END_TAG: some[-1]}
        with dg.DagsterInstance.get() as instance:
            assert job.execute_in_process(instance=instance, tags=tags).success

    return run


def load(folder: str, count: int) -> bool:
    def build(partitions: int) -> float:
        began_s = time.perf_counter()
        step = part("many", static(*keys(partitions)), Path(folder, "calls.txt"))
        graph = build_graph([step])
        definitions_of(graph, {"many": list(graph)}).get_repository_def()
        return time.perf_counter() - began_s

    build(2)
    more_s = min(build(count) for _ in range(3)) - min(build(2) for _ in range(3))
    print(f"load              {more_s:8.2f} s more with {count} keys, limit {LOAD_LIMIT_S:g} s", flush=True)
    return more_s <= LOAD_LIMIT_S


LOCATION = """
import sys
sys.path.insert(0, {support!r})
from pathlib import Path
import dagster as dg
from partition_steps import keys, part
from running import definitions_of
from marin_assets import static

KEYS = keys({count})
@dg.asset(partitions_def=dg.StaticPartitionsDefinition(list(KEYS)), backfill_policy=dg.BackfillPolicy.single_run())
def plain():
    return dg.MaterializeResult()

defs = dg.Definitions.merge(
    definitions_of([part("many", static(*KEYS), Path({calls!r}))]), dg.Definitions(assets=[plain])
)
"""


def backfill(folder: Path, count: int, slower: float) -> bool:
    """All partitions are complete by now. `slower`: see `reuse`."""
    location = folder / "location.py"
    support = str(Path(__file__).parents[1] / "support")
    location.write_text(LOCATION.format(support=support, count=count, calls=str(folder / "calls.txt")))
    took_s = {}
    with dagster_processes(location, folder, {}) as dagster:
        for asset in ("plain", "parts/many"):
            began_s = time.perf_counter()
            request = dagster.ui.backfill(asset, list(keys(count)))
            while not (status := dagster.ui.backfill_status(request)).startswith("COMPLETED"):
                time.sleep(0.5)
            took_s[asset] = time.perf_counter() - began_s
            assert status == "COMPLETED_SUCCESS", dagster.log()
    assert not (folder / "calls.txt").exists()
    ours_s, plain_s = took_s["parts/many"], took_s["plain"]
    limit_s = slower * BACKFILL_LIMIT_S * count / 10_000
    ratio = f"{ours_s / plain_s:.2f} times plain Dagster's {plain_s:.0f} s"
    print(f"backfill          {ours_s:8.1f} s for {count}, limit {limit_s:.0f} s; {ratio}", flush=True)
    return ours_s <= limit_s


if __name__ == "__main__":
    raise SystemExit(main())
