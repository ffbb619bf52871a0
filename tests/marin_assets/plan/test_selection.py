"""Selections: parts of names, whole names, and what they read or are read by."""

from __future__ import annotations

import pytest

from marin_assets import ConfigError
from marin_assets.plan.selection import select_nodes


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ([], "data tokens model database"),
        (["toy/data"], "data"),
        (["data"], "data database"),
        (["data$"], "data"),
        (["tok|mod"], "tokens model"),
        (["model", "toy/data"], "data model"),
        (["+tokens"], "data tokens"),
        (["tokens+"], "tokens model"),
        (["+tokens+"], "data tokens model"),
        (["+model"], "data tokens model"),
    ],
)
def test_a_selection_finds_steps_in_the_order_of_the_graph(experiment: str, patterns: list[str], names: str) -> None:
    for of_experiment in (None, experiment):
        _, nodes = select_nodes(patterns, of_experiment)
        assert [node.name for node in nodes] == [f"toy/{name}" for name in names.split()]


def test_an_experiment_that_was_left_out_says_why(experiment: str, tmp_path) -> None:
    (tmp_path / "experiments/broken_toys.py").write_text("raise RuntimeError('not yet')\n")
    with pytest.raises(ConfigError, match="Experiment 'broken_toys' is left out: RuntimeError: not yet"):
        select_nodes([], "broken_toys")
