"""The words and options of `marin plan` and `marin run`: the steps that they select, and those that they force.

marin plan                          every step of every experiment
marin plan quickstart               the steps of an experiment
marin plan my_experiment.py         those of a script that ends in executor_main(…)
marin plan quickstart '+tokenized'  a selection of them; marin plan '+tokenized' of all experiments
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marin_assets.catalog.code_location import select_nodes
from marin_assets.catalog.experiments_folder import experiment_names
from marin_assets.catalog.selection import select, select_names
from marin_assets.plan.output_places import refuse_overlapping_outputs
from marin_assets.plan.partition_runs import PartitionRun
from marin_assets.run.marins_options import run_only_patterns
from marin_assets.run.options import OptionError, add_prefix
from marin_assets.run.partition_options import add_partition_options, chosen_runs
from marin_assets.step.graph import Graph, Node, build_graph
from marin_resources.storage.output.store import Store
from marin_resources.types.location_job import ALL_ASSETS, LocationJob
from marin_resources.types.output import Output
from marin_resources.types.versioned_json import misfit

TEXTS = [str]
SAVED: Mapping[str, Any] = {
    **dict.fromkeys(("words", "run_only", "partition", "force"), TEXTS),
    **dict.fromkeys(("experiment", "script", "partition_range"), str),
    "force_run_failed": bool,
}
"""The options that a saved plan keeps, with their shapes."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The steps that a command is about."""

    name: str
    """The name of the Dagster run, and of the record of the experiment."""
    graph: Graph
    nodes: Sequence[Node]
    runs: Sequence[PartitionRun]
    forced: frozenset[Output]
    of_job: LocationJob | None
    """The job of the code location; None for a script."""

    @property
    def outputs(self) -> list[Node]:
        """A node for each output, inputs before readers."""
        return [node for run in self.runs for node in run.outputs()]


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar="[EXPERIMENT | SCRIPT] SELECTION",
        help="an experiment or a script, and steps of it: part of a name, or Dagster's syntax; +A with all inputs of A",
    )
    parser.add_argument("--experiment", metavar="NAME", help="the steps of this experiment")
    parser.add_argument("--script", metavar="FILE", help="the steps of this script")
    parser.add_argument(
        "--run-only",
        "--run_only",
        type=run_only_patterns,
        action="extend",
        default=[],
        metavar="REGEX",
        help="Marin's option: part of a step's name, with all that the step needs",
    )
    add_prefix(parser)
    add_partition_options(parser)
    parser.add_argument(
        "--force", action="append", default=[], metavar="STEP", help="compute this step again, though it is complete"
    )
    parser.add_argument(
        "--force-run-failed",
        "--force_run_failed",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compute steps whose last attempt failed: the default",
    )


def request_of(options: argparse.Namespace) -> dict[str, Any]:
    """The options that a saved plan keeps."""
    return {name: getattr(options, name) for name in SAVED}


def use_request(options: argparse.Namespace, request: Mapping[str, Any]) -> None:
    """Set the options to those of a saved plan. Raises OptionError for a request with unknown options."""
    for name, value in request.items():
        if name not in SAVED or misfit(value, SAVED[name]) or (value is None and SAVED[name] is not str):
            raise OptionError(f"The saved plan asks for {name}={value!r}, which this version does not know.")
        setattr(options, name, value)


def choose(options: argparse.Namespace, store: Store) -> Chosen:
    """The chosen steps. Raises ConfigError for words that name none."""
    experiment, script, selections = words_of(options)
    if selections and options.run_only:
        raise OptionError("Got a selection and --run-only, expected one of them.")
    _, selected = select_nodes(selections, experiment, script, script_stays_main=True)
    graph = build_graph([node.step for node in selected])
    if options.run_only:
        selected = select_names(graph, options.run_only, "--run-only")
    nodes = [graph[node.step] for node in selected]
    refuse_overlapping_outputs(graph, store)
    name = Path(script).stem if script is not None else experiment or "selected"
    runs = chosen_runs(nodes, options.partition, options.partition_range)
    return Chosen(
        name=name,
        graph=graph,
        nodes=nodes,
        runs=runs,
        forced=frozenset(_forced(graph, nodes, runs, options.force)),
        of_job=None if script is not None else LocationJob(name=experiment or ALL_ASSETS, whole=not selections),
    )


def words_of(options: argparse.Namespace) -> tuple[str | None, str | None, list[str]]:
    """Experiment, script and selections. The first word may be one of the first two."""
    words, experiment, script = list(options.words), options.experiment, options.script
    if words and experiment is None and script is None:
        if words[0].endswith(".py") or (os.sep in words[0] and os.path.isfile(words[0])):
            script = words.pop(0)
        elif words[0] in experiment_names():
            experiment = words.pop(0)
    return experiment, script, words


def _forced(graph: Graph, nodes: Sequence[Node], runs: Sequence[PartitionRun], forced: Sequence[str]) -> set[Output]:
    """The outputs of the runs that are forced: of a step with partitions those of the chosen keys. Raises ConfigError
    for a selection that finds none of the nodes."""
    steps = {node.step for node in select(graph, forced, nodes)} if forced else set()
    return {node.output for run in runs for node in run.outputs() if node.step in steps}
