from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from marin_assets.plan.partition_runs import runs_of
from marin_assets.step.graph import Graph, Node, build_graph
from marin_assets.step.partitions.products import product
from marin_assets.step.partitions.reads import partitions_of
from marin_assets.step.partitions.sets import Partitions, dynamic, static
from marin_assets.step.partitions.windows import daily, monthly
from marin_assets.step.step import Step
from marin_assets.step.values import THIS_OUTPUT_PATH, output_path_of

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
LETTERS = static("a", "b", "c", "d")


@dataclass(frozen=True)
class Config:
    x: Any = None
    y: Any = None
    output_path: str = THIS_OUTPUT_PATH


def do_nothing(config: Any) -> None:
    """Never run."""


def step(name: str, partitions: Partitions | None = None, *, per_run: int | None = None, **fields: Any) -> Step:
    return Step(
        name=name, fn=do_nothing, config=Config(**fields), partitions=partitions, max_partitions_per_run=per_run
    )


def runs(*steps: Step, asked: Sequence[str] | None = None, only: str | None = None) -> list[tuple[str, str]]:
    """The names and the keys of each run."""
    graph: Graph = build_graph(steps)
    nodes: list[Node] = [node for node in graph if only is None or node.name in only.split()]

    def keys_now(partitions: Partitions) -> Sequence[str]:
        return partitions.keys_now(NOW, lambda name: ["2026-01", "2026-02"])

    def keys_of(node: Node) -> Sequence[str]:
        assert node.step.partitions is not None
        return asked or keys_now(node.step.partitions)

    found = runs_of(nodes, keys_of, keys_now)
    return [(" ".join(node.name for node in run.nodes), " ".join(run.keys)) for run in found]


def test_steps_without_partitions_are_one_run() -> None:
    raw = step("raw")
    assert runs(step("b", x=step("a", x=raw)), step("c", x=raw)) == [("raw a b c", "")]


def test_steps_of_one_set_are_one_run_after_what_all_of_them_read() -> None:
    raw = step("a", LETTERS, x=step("raw"))
    assert runs(step("b", LETTERS, x=raw)) == [("raw", ""), ("a b", "a b c d")]


def test_the_keys_that_are_asked_for_are_those_of_what_is_read_too() -> None:
    raw = step("a", LETTERS)
    assert runs(step("b", LETTERS, x=raw), asked=["c"]) == [("a b", "c")]


def test_a_gap_between_keys_divides_a_run() -> None:
    assert runs(step("a", LETTERS), asked=["d", "a", "b"]) == [("a", "a b"), ("a", "d")]


def test_a_limit_of_partitions_divides_a_run() -> None:
    assert runs(step("a", LETTERS, per_run=3)) == [("a", "a b c"), ("a", "d")]


def test_a_named_partition_alone_is_made_for_its_reader() -> None:
    raw = step("a", LETTERS)
    assert runs(step("b", x=output_path_of(raw, partition="c"))) == [("a", "c"), ("b", "")]
    assert runs(step("b", x=partitions_of(raw, ["d", "a"]))) == [("a", "a"), ("a", "d"), ("b", "")]


def test_a_reader_with_fewer_keys_needs_these_alone() -> None:
    raw = step("a", LETTERS)
    assert runs(step("b", static("b", "c"), x=raw)) == [("a", "b c"), ("b", "b c")]


def test_the_windows_of_a_month_are_made_before_it() -> None:
    days = step("a", daily("2026-01-01"))
    [(first, keys), second] = runs(step("b", monthly("2026-01-01"), x=days), asked=["2026-02-01"])
    assert (first, keys.split()[0], keys.split()[-1], len(keys.split())) == ("a", "2026-02-01", "2026-02-28", 28)
    assert second == ("b", "2026-02-01")


def test_without_a_choice_there_are_the_windows_that_have_ended_and_the_keys_that_are_known() -> None:
    assert runs(step("b", monthly("2026-01-01"))) == [("b", "2026-01-01 2026-02-01")]
    assert runs(step("b", dynamic("deliveries"))) == [("b", "2026-01 2026-02")]
    assert runs(step("b", dynamic("deliveries")), asked=["2026-03"]) == [("b", "2026-03")]


def test_a_set_that_has_no_key_yet_makes_no_run() -> None:
    assert runs(step("b", monthly("2026-03-01"), x=step("raw"))) == [("raw", "")]


def test_runs_of_a_product_are_ranges_as_dagster_has_them() -> None:
    both = product(a=static("1", "2"), b=static("x", "y", "z"))
    assert runs(step("s", both)) == [("s", "1|x 1|y 1|z 2|x 2|y 2|z")]
    assert runs(step("s", both), asked=["1|y", "1|z", "2|x", "2|z"]) == [("s", "1|y 1|z"), ("s", "2|x"), ("s", "2|z")]


def test_only_selected_steps_are_made() -> None:
    raw = step("a", LETTERS, x=step("raw"))
    assert runs(step("b", LETTERS, x=raw), only="b") == [("b", "a b c d")]
    assert runs(step("b", LETTERS, x=raw), only="raw b") == [("raw", ""), ("b", "a b c d")]
