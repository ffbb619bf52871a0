"""Commands that a verb prints for a person to run next. They hold for the steps of a script too."""

from __future__ import annotations

import os
import shlex

from marin_assets.catalog.asset_key import selection_of
from marin_assets.step.graph import Node

OF_ALL_PARTITIONS = ("partitions", "sync")


def about_step(verb: str, node: Node, *, script: str | None, prefix: str | None = None) -> str:
    """The command of a verb that takes one step, or a partition of it."""
    of_script = [] if script is None else ["--script", os.path.abspath(script)]
    partition = [] if verb in OF_ALL_PARTITIONS else _partition(node)
    return _command([verb, *of_script, *_prefix(prefix), selection_of(node), *partition])


def to_compute(node: Node, *, script: str | None, prefix: str | None = None) -> str:
    """The command that computes the step alone, or reports its complete output to Dagster."""
    if script is None:
        return about_step("materialize", node, script=None, prefix=prefix)
    return _command(["run", os.path.abspath(script), *_prefix(prefix), selection_of(node), *_partition(node)])


def _command(words: list[str]) -> str:
    return " ".join(["marin", *map(shlex.quote, words)])


def _prefix(prefix: str | None) -> list[str]:
    return [] if prefix is None else ["--prefix", prefix]


def _partition(node: Node) -> list[str]:
    return [] if node.key is None else ["--partition", node.key]
