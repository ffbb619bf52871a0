from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pytest

from marin_assets.step.graph import build_graph, explain_difference
from marin_assets.step.step import Step
from marin_assets.step.values import THIS_OUTPUT_PATH, ConfigError, InputName, output_path_of, versioned


@dataclass(frozen=True)
class Config:
    x: Any = None
    y: Any = None
    z: Any = None
    output_path: str = THIS_OUTPUT_PATH


def do_nothing(config: Any) -> None:
    """Never run."""


def do_otherwise(config: Any) -> None:
    """Never run either."""


def step(name: str, fn: Any = do_nothing, **fields: Any) -> Step:
    return Step(name=name, fn=fn, config=Config(**fields))


def test_inputs_come_before_those_that_read_them_in_the_order_that_configs_name_them() -> None:
    b, a = step("b"), step("a")
    last = step("last", x=[b, a])
    assert [node.name for node in build_graph([last])] == ["b", "a", "last"]


def test_the_order_of_independent_steps_is_the_order_given() -> None:
    steps = [step("c"), step("a"), step("b")]
    assert [node.step for node in build_graph(steps)] == steps


def test_the_top_of_a_diamond_is_there_once() -> None:
    top = step("top")
    left, right = step("left", x=top), step("right", x=top)
    graph = build_graph([step("bottom", x=left, y=right, z=top)])
    assert [node.name for node in graph] == ["top", "left", "right", "bottom"]
    assert [node.name for node in graph.nodes[-1].dependencies] == ["left", "right", "top"]


def test_equal_versions_are_one_node() -> None:
    one, other = step("raw/a", x=versioned(1)), step("raw/a", x=versioned(1))
    graph = build_graph([one, step("b", x=other)])
    assert len(graph) == 2
    assert graph[one] is graph[other]
    assert graph.drift == ()


def test_drift_names_the_field_and_both_values() -> None:
    graph = build_graph([step("raw/a", y=1), step("raw/a", y=2)])
    [sentence] = graph.drift
    assert "'raw/a'" in sentence
    assert "unversioned field 'y', 1 and 2; the first is used" in sentence


def test_drift_names_both_functions() -> None:
    [sentence] = build_graph([step("raw/a"), step("raw/a", do_otherwise)]).drift
    assert "do_nothing" in sentence
    assert "do_otherwise" in sentence


def test_two_versions_of_one_name_are_an_error_that_names_the_field_and_both_values() -> None:
    with pytest.raises(ConfigError, match=r"Two steps named 'raw/a' .* They differ in x \(1 and 2\)\."):
        build_graph([step("raw/a", x=versioned(1)), step("raw/a", x=versioned(2))])


def test_two_versions_of_one_name_may_differ_in_what_they_read_only() -> None:
    read = [step("raw/1"), step("raw/2")]
    with pytest.raises(ConfigError, match="the versions of their inputs"):
        build_graph([step("a", x=one) for one in read])


def test_two_versions_of_one_name_may_differ_in_a_pseudo_dependency_only() -> None:
    first, second = (build_graph([step("a", x=step(name).nonblocking())]).nodes[-1] for name in ("raw/1", "raw/2"))
    assert explain_difference(first, second) == "their inputs"


def test_a_colliding_path_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import marin_assets.step.graph as graph_module

    real = graph_module.compute_version

    def collide(name: str, inputs: Any, versions: Any) -> Any:
        from dataclasses import replace

        return replace(real(name, inputs, versions), hash="aaaaaa", name="same")

    monkeypatch.setattr(graph_module, "compute_version", collide)
    with pytest.raises(ConfigError, match="Two different versions share the path 'same-aaaaaa'"):
        build_graph([step("a"), step("b")])


def test_a_pseudo_dependency_is_in_the_graph_and_not_waited_for() -> None:
    train = step("train")
    graph = build_graph([step("eval", x=output_path_of(train, "checkpoints").nonblocking())])
    last = graph.nodes[-1]
    assert [node.name for node in graph] == ["train", "eval"]
    assert (last.dependencies, [node.name for node in last.pseudo_dependencies]) == ((), ["train"])


def test_downstream_reaches_through_others_and_pseudo_dependencies() -> None:
    a = step("a")
    b = step("b", x=a)
    c = step("c", x=b.nonblocking())
    graph = build_graph([c, step("alone")])
    assert [node.name for node in graph.downstream(graph[a])] == ["b", "c"]
    assert graph.downstream(graph[c]) == []


def test_a_path_below_a_step_may_be_a_root() -> None:
    assert [node.name for node in build_graph([step("a") / "sub"])] == ["a"]


@pytest.mark.parametrize("root", ["raw/a", None, InputName.hardcoded("raw/x")], ids=repr)
def test_what_is_no_step_is_refused(root: Any) -> None:
    with pytest.raises(ConfigError, match="where a Step was expected"):
        build_graph([root])


def test_a_chain_of_5000_steps_needs_no_recursion() -> None:
    chain = [step("c/0")]
    for number in range(1, 5000):
        chain.append(step(f"c/{number}", x=chain[-1]))
    began = time.process_time()
    graph = build_graph(chain[-1:])
    assert len(graph) == 5000
    assert graph.nodes[0].step is chain[0]
    assert len(graph.downstream(graph.nodes[0])) == 4999
    assert time.process_time() - began < 10
