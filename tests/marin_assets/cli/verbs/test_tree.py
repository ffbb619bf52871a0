"""`marin tree`: final outputs at the top, inputs below, each step once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marin_assets import THIS_OUTPUT_PATH, Step, output_path_of
from marin_assets.cli.verbs.tree import lines_of
from marin_assets.step.graph import Graph, build_graph

Marin = Callable[..., tuple[int, str, str]]


@dataclass(frozen=True, kw_only=True)
class Config:
    inputs: tuple[Any, ...]
    output_path: str = THIS_OUTPUT_PATH


def make(config: Config) -> None: ...


def step(name: str, *reads: Step, waits: bool = True) -> Step:
    paths = [output_path_of(each) for each in reads]
    inputs = [path if waits else path.nonblocking() for path in paths]
    return Step(name=name, fn=make, config=Config(inputs=tuple(inputs)))


def diamonds(count: int) -> Graph:
    """Each step reads the two before it."""
    steps = [step("s0"), step("s1")]
    for i in range(2, count):
        steps.append(step(f"s{i}", steps[i - 1], steps[i - 2]))
    return build_graph(steps)


def test_a_selected_step_is_shown_with_all_that_it_reads(experiment: str, marin: Marin) -> None:
    assert marin("tree", "toy/model") == (0, "toy/model\n└── toy/tokens\n    └── toy/data\n", "")
    whole = "toy/model\n└── toy/tokens\n    └── toy/data\ntoy/database\n"
    assert marin("tree") == (0, whole, "")
    assert marin("tree", "toy/data", "toy/model")[1] == "toy/model\n└── toy/tokens\n    └── toy/data\n"


def test_a_step_is_shown_with_its_inputs_once() -> None:
    assert list(lines_of(diamonds(4))) == [
        "s3",
        "├── s2",
        "│   ├── s1",
        "│   └── s0",
        "└── s1 (shown above)",
    ]


def test_an_input_that_is_not_waited_for_says_so() -> None:
    [_, line] = lines_of(build_graph([step("b", step("a"), waits=False)]))
    assert line == "└── a (not waited for)"


def test_5000_steps_in_a_row_are_few_bytes_and_take_no_time() -> None:
    graph = diamonds(5000)
    began_s = time.process_time()
    lines = list(lines_of(graph))
    assert time.process_time() - began_s < 1
    assert len(lines) == 1 + 2 * 4998
    assert max(map(len, lines)) < 200
