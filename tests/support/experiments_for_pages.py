"""Experiments below a prefix in the states that their pages show, without a run: failed, partitioned, with drift."""

from __future__ import annotations

import json
from collections.abc import Sequence

from recorded_steps import Recorded, WorkConfig, step, work

from marin_assets.assets.runs.experiment_record import write_experiment
from marin_assets.step.graph import Node, build_graph
from marin_assets.step.partitions.sets import static
from marin_assets.step.step import Step
from marin_assets.step.values import output_path_of, this_partition, versioned
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.attempts import log_path
from marin_resources.storage.paths import join

LAST_LINE = "ValueError: shard 7 has 3 rows of <b>another</b> schema"


def write_record(here: Recorded, name: str, *steps: Step) -> str:
    """Write the record of an experiment of these steps; return its path."""
    return write_experiment(name, build_graph(steps), here.store, None)


def fail(here: Recorded, last: Step, error: str, lines: Sequence[str]) -> None:
    """Complete the inputs of a step, and let the step itself fail with this log."""
    graph = build_graph([last])
    for node in graph:
        if node is not graph[last] and not here.store.look([node.output])[node.output].done:
            here.publish(node, graph, {}, {"documents": 1200})
    fail_node(here, graph[last], error, lines)


def fail_node(here: Recorded, node: Node, error: str, lines: Sequence[str]) -> None:
    claim = here.claim(node)
    write_bytes(log_path(claim.path, claim.attempt), "".join(f"{line}\n" for line in lines).encode())
    assert here.store.fail(claim, here.facts_of(node, build_graph([node.step])), error, "")


def failed_experiment(here: Recorded) -> str:
    """An experiment whose third step has failed and whose fourth was never begun; return the path of its record."""
    raw = step("raw/web", 1)
    documents = step("documents/web", 2, raw)
    filtered = step("filtered/web", 3, documents)
    last = step("tokenized/web", 4, filtered)
    lines = [f"shard {number} of 400 read" for number in range(400)] + ["Traceback (most recent call last):"]
    fail(here, filtered, f"Traceback\n{LAST_LINE}", [*lines, LAST_LINE])
    return write_record(here, "web", last)


KEYS = ("2026-01", "2026-02", "2026-03", "2026-04")


def partitioned_steps(value: str = "x") -> tuple[Step, Step]:
    """Pages of months, and the documents of each."""
    months = static(*KEYS)
    raw = Step(name="raw/months", fn=work, partitions=months, config=WorkConfig(value=this_partition()))
    documents = Step(
        name="documents/months",
        fn=work,
        partitions=months,
        config=WorkConfig(value=versioned(value), inputs=(output_path_of(raw), this_partition())),
    )
    return raw, documents


def partitioned_experiment(here: Recorded) -> str:
    """Two steps with partitions: of the first all but the last key is complete, of the second a key has failed."""
    _, earlier = partitioned_steps("before")
    old = build_graph([earlier])
    here.publish(old[earlier].at(KEYS[0]), old, {"finished_at": "2026-01-02T03:04:05+00:00"}, {"documents": 7})
    raw, documents = partitioned_steps()
    graph = build_graph([documents])
    for place, key in enumerate(KEYS[:3]):
        facts = {} if place < 2 else {"environment": {"lock_digest": "ab" * 32, "python": "3.12.1"}}
        here.publish(graph[raw].at(key), graph, facts, {"documents": [1000, 1500, 1500][place], "bytes": 10})
    here.publish(graph[documents].at(KEYS[0]), graph, {}, {"documents": 900})
    fail_node(here, graph[documents].at(KEYS[1]), "KeyError: 'url'", ["reading", "KeyError: 'url'"])
    return write_record(here, "months", documents)


def drifting_experiment(here: Recorded) -> str:
    """Two steps; the first was taken back and computed again with another content. Return the path of its record."""
    raw = step("raw/news", 1)
    documents = step("documents/news", 2, raw)
    graph = here.make(documents)
    node = graph[raw]
    here.collect(node)
    claim = here.claim(node)
    write_bytes(join(claim.path, "value.json"), json.dumps({"another": "content"}).encode())
    here.store.publish(claim, here.facts_of(node, graph), {"documents": 3})
    return write_record(here, "news", documents)
