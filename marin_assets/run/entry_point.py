"""`executor_main(steps)`: the last line of an experiment's script runs it. Marin's entry point, on Dagster.

    python my_experiment.py                         every step that is not complete
    python my_experiment.py --dry-run               what would run, and why
    python my_experiment.py --select '+tokenized'   the selected steps: catalog/selection.py has the language
    python my_experiment.py --run-only tokenized    Marin's option: the same as --select '+tokenized'
    python my_experiment.py --run_only '["tokenized"]' --dry_run True      in Marin's form
    python my_experiment.py --partition 2026-01     steps with partitions: this key, instead of all
    python my_experiment.py --max-concurrent 2 --prefix gs://bucket/somewhere

The run is an ordinary Dagster run in the instance at DAGSTER_HOME, so `make dev`, or `marin dev`, shows it.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from marin_assets.catalog.experiments_folder import experiment_of_script
from marin_assets.catalog.script import graph_of_call, is_reading, register_graph
from marin_assets.plan.output_places import refuse_overlapping_outputs
from marin_assets.run.marins_options import in_our_form, run_only_patterns
from marin_assets.run.options import OptionParser, add_prefix, prefix_of
from marin_assets.run.output import print_stderr
from marin_assets.run.partition_options import add_partition_options, chosen_runs, lines_of_new_keys
from marin_assets.step.error_line import line_here
from marin_assets.step.graph import Graph, Node
from marin_assets.step.marins_sentences import takes_marins_arguments
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName
from marin_resources.configuration.check import load_settings
from marin_resources.configuration.settings import ensure_dagster_home
from marin_resources.ray_tpu.cluster.settings_from_env import cluster_names
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import refuse_store_without_conditions, require_reachable
from marin_resources.storage.output.store import Store
from marin_resources.types.errors import InvalidInputError, MarinError
from marin_resources.types.location_job import LocationJob
from marin_resources.wire.reference import UnimportableError

if TYPE_CHECKING:
    from marin_assets.plan.plan import Planned


@takes_marins_arguments
def executor_main(
    steps: Iterable[Step | InputName], description: str | None = None, *, max_concurrent: int | None = None
) -> dict[str, str]:
    """Materialize the steps and all their inputs. Complete outputs are reused. Options come from the command line.

    Return step name -> output path. Exit with 2 and a sentence for a wrong option, name or config, with 1 if a step or
    a check failed, and with 130 after Ctrl-C. Raises UnimportableError in a module that is being imported.
    """
    _refuse_import()
    try:
        load_settings()
        options = _parse(description, max_concurrent)
        graph = graph_of_call(steps)
        register_graph(graph)
        return _run(graph, description, options)
    except MarinError as error:
        if is_reading():
            raise
        _quit(error.with_place(), 2 if isinstance(error, InvalidInputError) else 1)
    except KeyboardInterrupt:
        _quit("Stopped by Ctrl-C. Complete outputs stay; run again to continue.", 130)


def _refuse_import() -> None:
    """A worker imports the script of a step's function: a call of `executor_main` there would run the experiment."""
    frame = sys._getframe()
    while frame.f_back is not None:
        if frame.f_code.co_name == "<module>" and frame.f_back.f_code.co_filename == "<frozen importlib._bootstrap>":
            raise UnimportableError(
                f"{frame.f_code.co_filename!r} calls executor_main while it is imported, as a worker does to find a "
                'step\'s function. Put the call below the line: if __name__ == "__main__":'
            )
        frame = frame.f_back


def _run(graph: Graph, description: str | None, options: argparse.Namespace) -> dict[str, str]:
    store = store_at(prefix_of(options))
    refuse_store_without_conditions(store.prefix)
    nodes = selected_nodes(graph, options)
    for sentence in graph.drift:
        print(f"drift: {sentence}", file=sys.stderr)
    experiment = None if options.dry_run else experiment_of_script(graph)
    of_job = LocationJob(name=experiment, whole=len(nodes) == len(graph)) if experiment is not None else None
    if code := plan_or_materialize(_experiment_name(), graph, nodes, store, options, description, of_job):
        raise SystemExit(code)
    if options.dry_run:
        return {node.name: store.locate(node.output) for node in nodes}
    if cluster_names(None):
        return {node.name: store.data_path(node.output) for node in nodes}
    return _data_paths(nodes, store)


def _data_paths(nodes: Sequence[Node], store: Store) -> dict[str, str]:
    """Name -> path of the output's data: an adopted output has them elsewhere."""
    # late, for their weight: every load of the code location imports this module
    from marin_resources.storage.index.complete import CompleteOutputs
    from marin_resources.storage.index.look import look_in_bulk

    observed = look_in_bulk(store, (node.output for node in nodes), CompleteOutputs(store.prefix))
    return {node.name: observed[node.output].data_path for node in nodes}


def selected_nodes(graph: Graph, options: argparse.Namespace) -> list[Node]:
    """The nodes of --select and --run-only; all nodes without both. Raises ConfigError."""
    if not (options.select or options.run_only):
        return list(graph)
    # late, for its weight: every load of the code location imports this module
    from marin_assets.catalog.selection import select, select_names

    selected: set[Node] = set()
    if options.select:
        selected.update(select(graph, options.select))
    if options.run_only:
        selected.update(select_names(graph, options.run_only, "--run-only"))
    return [node for node in graph if node in selected]


def exit_code_of(planned: Sequence[Planned]) -> int:
    """Exit code of a command that prints a plan: 1 if a control file is damaged, or a step lacks a requirement."""
    return 1 if any(item.damage or item.missing_requirements for item in planned) else 0


def plan_or_materialize(
    name: str,
    graph: Graph,
    nodes: Sequence[Node],
    store: Store,
    options: argparse.Namespace,
    description: str | None = None,
    of_job: LocationJob | None = None,
) -> int:
    """Materialize the nodes in one run called `name`, or print their plan, by the options of `add_run_options`.

    `of_job`: the job of the code location under which Dagster lists the run.
    Returns the exit code. Raises a sentence for output paths that lie inside one another.
    """
    refuse_overlapping_outputs(graph, store)
    runs = chosen_runs(nodes, options.partition, options.partition_range)
    # late, for their weight: every load of the code location imports this module
    from marin_assets.plan.empty_prefix import describe_empty_prefix
    from marin_assets.plan.prepare import prepare_plan
    from marin_assets.plan.render.text import lines_of
    from marin_assets.run.run_plan import Job, carry_out, write_record
    from marin_assets.run.writable import refuse_unwritable

    job = Job(name=name, graph=graph, store=store, runs=runs, description=description, of_job=of_job)
    if options.dry_run:
        require_reachable(store.prefix)
    else:
        ensure_dagster_home()
        recorded = write_record(job)
    planned = prepare_plan(graph, store, [node for run in runs for node in run.outputs()])
    if options.dry_run:
        if sentence := describe_empty_prefix(planned, store.prefix):
            print(sentence, file=sys.stderr)
        for line in (*lines_of_new_keys(runs), *lines_of(planned, one_by_one=True)):
            print(line)
        return exit_code_of(planned)
    refuse_unwritable(planned, store)
    print_stderr(recorded)
    return carry_out(job, planned, options)


def _experiment_name() -> str:
    """The name of the script, or of the module started with -m."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    name = spec.name.rpartition(".")[2] if spec is not None else Path(sys.argv[0]).stem
    return re.sub(r"\W+", "_", name).strip("_") or "experiment"


def _parse(description: str | None, max_concurrent: int | None) -> argparse.Namespace:
    parser = OptionParser(prog=os.path.basename(sys.argv[0]), description=description)
    add_prefix(parser)
    add_run_options(parser)
    parser.add_argument(
        "--select", action="append", default=[], metavar="SELECTION", help="steps: part of a name, or Dagster's syntax"
    )
    parser.add_argument(
        "--run-only",
        "--run_only",
        type=run_only_patterns,
        action="extend",
        default=[],
        metavar="PATTERN",
        help="part of a step's name, with all that the step needs",
    )
    options = parser.parse_args(in_our_form(sys.argv[1:]))
    if max_concurrent is not None and (isinstance(max_concurrent, bool) or max_concurrent not in range(1, sys.maxsize)):
        raise ConfigError(
            f"executor_main got max_concurrent={max_concurrent!r}, expected a whole number of 1 or more, or None."
        ).at(line_here())
    options.max_concurrent = max_concurrent or options.max_concurrent
    return options


def add_run_options(parser: argparse.ArgumentParser) -> None:
    add_partition_options(parser)
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="print what would run and why, run nothing")
    add_run_settings(parser)


def add_run_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-concurrent", "--max_concurrent", type=_count, metavar="N", help="steps at once")
    parser.add_argument(
        "--fail-if-held",
        "--fail_if_held",
        action="store_true",
        help="fail if another run computes an output",
    )


def _count(text: str) -> int:
    """Parse a whole number of at least 1. Raise argparse.ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a whole number of 1 or more")
    return int(text)


def _quit(sentence: str, code: int) -> NoReturn:
    print(sentence, file=sys.stderr)
    raise SystemExit(code)
