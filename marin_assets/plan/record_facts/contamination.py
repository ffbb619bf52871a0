"""The data behind a score, and their checks for the evaluation's own questions, by the graph of steps."""

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
        checks = [check for check in _behind(cache) if stage_of(check.step) == "decontaminate"]
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
    trainings = [training for training in _behind(node) if stage_of(training.step) == "train"]
    read = {source for training in trainings for source in _read_by(training) if stage_of(source.step) == "tokenize"}
    caches = [cache for cache in read if cache.step.fn.__name__.startswith("tokenize")]  # a tokenizer is no data
    return sorted(caches, key=lambda cache: cache.name)


def _behind(node: Node) -> set[Node]:
    upstream: set[Node] = set()
    remaining = list(_read_by(node))
    while remaining:
        source = remaining.pop()
        if source not in upstream:
            upstream.add(source)
            remaining += _read_by(source)
    return upstream


def _read_by(node: Node) -> tuple[Node, ...]:
    return (*node.dependencies, *node.pseudo_dependencies)
