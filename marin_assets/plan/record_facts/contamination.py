"""Which data behind a score were checked for the evaluation's own questions, as the graph of steps says it."""

from __future__ import annotations

from collections.abc import Mapping

from marin_assets.catalog.description import stage_of
from marin_assets.step.graph import Node

NOT_CHECKED = "not checked"


def contamination_of(node: Node) -> list[Mapping[str, str]]:
    """A row for each token cache that the evaluated model, or one that it began with, was trained on: the evaluations
    against which its documents were checked (`find_contamination`), and by which step. None for other steps."""
    rows: list[Mapping[str, str]] = []
    for cache in _training_data(node) if stage_of(node.step) == "evaluate" else ():
        checks = [each for each in _behind(cache) if stage_of(each.step) == "decontaminate"]
        against = sorted({str(name) for check in checks for name in getattr(check.step.config, "evaluations", ())})
        rows.append(
            {
                "trained on": cache.name,
                "checked against": ", ".join(against) or NOT_CHECKED,
                "by": ", ".join(sorted({check.name for check in checks})),
            }
        )
    return rows


def _training_data(node: Node) -> list[Node]:
    """The token caches that trainings behind the node read, in the order of their names."""
    trainings = [each for each in _behind(node) if stage_of(each.step) == "train"]
    read = {each for training in trainings for each in _read_by(training) if stage_of(each.step) == "tokenize"}
    caches = [each for each in read if each.step.fn.__name__.startswith("tokenize")]  # a tokenizer is no data
    return sorted(caches, key=lambda each: each.name)


def _behind(node: Node) -> set[Node]:
    found: set[Node] = set()
    left = list(_read_by(node))
    while left:
        each = left.pop()
        if each not in found:
            found.add(each)
            left += _read_by(each)
    return found


def _read_by(node: Node) -> tuple[Node, ...]:
    return (*node.dependencies, *node.pseudo_dependencies)
