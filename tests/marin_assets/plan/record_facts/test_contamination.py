"""A score's page says which data were checked for the evaluation's questions."""

from __future__ import annotations

from marin_assets.experiments import quickstart
from marin_assets.plan.record_facts.contamination import contamination_of
from marin_assets.step.graph import Node, build_graph
from marin_assets.step.step import Step


def rows_of(steps: list[Step], stage: str) -> list[dict[str, str]]:
    nodes: list[Node] = [node for node in build_graph(steps) if node.name.startswith(stage)]
    assert nodes
    return [dict(row) for node in nodes for row in contamination_of(node)]


def test_the_quickstarts_score_names_its_data_and_what_they_were_checked_against() -> None:
    steps = list(quickstart.steps())
    (row,) = rows_of(steps, "evaluation/")
    assert row["trained on"].startswith("tokenized/")
    assert row["checked against"] == "held_out"
    assert "contamination" in row["by"]


def test_a_step_that_scores_nothing_says_nothing() -> None:
    assert rows_of(list(quickstart.steps()), "checkpoints/") == []
