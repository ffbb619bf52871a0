"""`executor_main(steps)`: the last line of an experiment's script runs it. Marin's entry point, on Dagster.

    python my_experiment.py                         every step that is not complete
    python my_experiment.py --dry-run               what would run, and why
    python my_experiment.py --select '+tokenized'   the selected steps: plan/selection.py has the language
    python my_experiment.py --run-only tokenized    Marin's option: the same as --select '+tokenized'
    python my_experiment.py --partition 2026-01     steps with partitions: this key, instead of all
    python my_experiment.py --max-concurrent 2 --prefix gs://bucket/somewhere

The run is an ordinary Dagster run in the instance at DAGSTER_HOME, so `make dev` shows it.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from marin_assets.assets.experiment_record import write_experiment
from marin_assets.assets.run_origin import LocationJob
from marin_assets.cli.options import OptionError, OptionParser, add_prefix, prefix_of
from marin_assets.cli.partition_options import add_keys_of, add_partition_options, chosen_runs
from marin_assets.plan.experiments_folder import experiment_of_script
from marin_assets.plan.facts import manifest_digest
from marin_assets.plan.known_partitions import known_partitions
from marin_assets.plan.node_drift import drift_of
from marin_assets.plan.partition_runs import PartitionRun
from marin_assets.plan.plan import Action, Planned, plan, refuse
from marin_assets.plan.requirements import lacks_of
from marin_assets.plan.script import hand_over
from marin_assets.plan.sites.planned import with_sites
from marin_assets.step.graph import Graph, Node, build_graph
from marin_assets.step.placement import refuse_overlaps
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName
from marin_resources.configuration.check import load_settings
from marin_resources.drift.drift import Drift
from marin_resources.ray_tpu.cluster.settings_from_env import cluster_names
from marin_resources.ray_tpu.fleet.fleet import fleet_from_env, store_at
from marin_resources.ray_tpu.site import describe as describe_sites
from marin_resources.settings import SettingError, ensure_dagster_home
from marin_resources.storage.control.control import refuse_store_without_conditions, require_reachable
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.manifest.largest_first import map_largest_first
from marin_resources.storage.output.collected import with_collected
from marin_resources.storage.output.control_files import Damage, find_damage_ahead
from marin_resources.storage.output.store import LOOK_THREADS, Store
from marin_resources.storage.paths import is_local
from marin_resources.versioned_json import ControlFileError
from marin_resources.wire.config_json import EncodeError
from marin_resources.wire.reference import UnimportableError

SENTENCES = (ConfigError, SettingError, EncodeError, UnimportableError, ControlFileError)
"""Errors that are complete sentences. Any other one is a bug and keeps its traceback."""
SHOWN_KEYS = 8


def executor_main(
    steps: Sequence[Step | InputName], description: str | None = None, *, max_concurrent: int | None = None
) -> dict[str, str]:
    """Materialize the steps and all their inputs. Complete outputs are reused. Options come from the command line.

    Return step name -> output path. Exit with 2 and a sentence for a wrong option, name or config, with 1 if a step or
    a check failed, and with 130 after Ctrl-C. Raises UnimportableError in a module that is being imported.
    """
    _refuse_import()
    try:
        load_settings()
        _require_steps(steps)
        hand_over(steps)
        return _run(steps, description, _parse(description, max_concurrent))
    except (OptionError, *SENTENCES) as error:
        _quit(str(error), 2)
    except UnavailableError as error:
        _quit(str(error), 1)
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


def _require_steps(steps: object) -> None:
    if isinstance(steps, Step | InputName):
        raise ConfigError(f"executor_main got the step {steps.name!r}, expected a list of steps. Write [step].")
    if not isinstance(steps, Sequence) or isinstance(steps, str):
        raise ConfigError(f"executor_main got {steps!r}, expected a list of steps.")
    if not steps:
        raise ConfigError("executor_main got an empty list, expected at least one step.")


def _run(steps: Sequence[Step | InputName], description: str | None, options: argparse.Namespace) -> dict[str, str]:
    store = store_at(prefix_of(options))
    refuse_store_without_conditions(store.prefix)
    graph = build_graph(steps)
    nodes = selected_nodes(graph, options)
    for sentence in graph.drift:
        print(f"drift: {sentence}", file=sys.stderr)
    experiment = None if options.dry_run else experiment_of_script(graph)
    of_job = LocationJob(name=experiment, whole=len(nodes) == len(graph)) if experiment is not None else None
    if code := plan_or_materialize(_experiment_name(), graph, nodes, store, options, description, of_job):
        raise SystemExit(code)
    locate = store.data_path if cluster_names(None) and not options.dry_run else store.locate
    return {node.name: locate(node.output) for node in nodes}


def selected_nodes(graph: Graph, options: argparse.Namespace) -> list[Node]:
    """The nodes of --select and --run-only; all nodes without both. Raises ConfigError."""
    if not (options.select or options.run_only):
        return list(graph)
    # late, for its weight: every load of the code location imports this module
    from marin_assets.plan.selection import select, select_names

    wanted: set[Node] = set()
    if options.select:
        wanted.update(select(graph, options.select))
    if options.run_only:
        wanted.update(select_names(graph, options.run_only, "--run-only"))
    return [node for node in graph if node in wanted]


def plan_with_drift(graph: Graph, store: Store, nodes: Sequence[Node]) -> list[Planned]:
    """The plan of `nodes`, from one look at the outputs of the graph and at the partitions among `nodes` and what they
    read, with the drift of reused outputs."""
    known = known_partitions(graph, store, nodes)
    beside = [node.output for node in graph if node.step.partitions is None]
    asked = [output for node in nodes for output in (*node.inputs.values(), node.output)]
    looked_at = {**store.look(output for output in [*beside, *asked] if output not in known), **known}
    observed = with_collected(store.prefix, looked_at)

    def look_ahead(node: Node) -> Damage | None:
        return find_damage_ahead(observed[node.output], resumable=node.step.resumable)

    looked = [node for node in nodes if node.output not in known]
    if is_local(store.prefix):  # threads would take longer to start
        found = list(map(look_ahead, looked))
    else:
        found = map_largest_first(look_ahead, looked, size=lambda _: 0, threads=LOOK_THREADS)
    damage = dict(zip(looked, found, strict=True))

    def drift(node: Node) -> tuple[Drift, ...]:
        if node.output in known:
            return ()
        digests = {label: manifest_digest(observed[output]) for label, output in node.inputs.items()}
        return drift_of(node, graph, store, observed[node.output], digests)[0]

    return plan(graph, observed, nodes, drift, damage.get)


def print_plan(planned: Sequence[Planned]) -> int:
    """Print the action, path and reason of each step. Returns the exit code: 1 if a control file is damaged, or a step
    lacks something that it requires."""
    for items in _alike(planned):
        first, path = items[0], items[0].observed.path
        if first.node.key is not None:
            path = f"{path.rpartition('/')[0]}  {_listed([str(item.node.key) for item in items])}"
        print(f"{first.action:8} {path}\n         {first.reason}")
        sites = [item.site for item in items if item.site is not None]
        if sites:
            print(f"         {describe_sites(sites)}")
    counts = {action: sum(item.action is action for item in planned) for action in Action}
    shown = {action: action if action is Action.BLOCKED else f"to {action}" for action in Action}
    print(", ".join(f"{count} {shown[action]}" for action, count in counts.items() if count))
    return 1 if any(item.damage or item.lacks for item in planned) else 0


def _alike(planned: Sequence[Planned]) -> Iterator[list[Planned]]:
    """The partitions of one step with the same action, reason and cluster together; every other output by itself."""
    partitions: dict[tuple[Any, ...], list[Planned]] = {}

    def key(item: Planned) -> tuple[Any, ...]:
        site = item.site
        return item.node.step, item.action, item.reason, None if site is None else (site.cluster, site.why)

    for item in planned:
        if item.node.key is not None:
            partitions.setdefault(key(item), []).append(item)
    for item in planned:
        if item.node.key is None:
            yield [item]
        elif (found := partitions.pop(key(item), None)) is not None:
            yield found


def _listed(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - SHOWN_KEYS} more" if len(keys) > SHOWN_KEYS else ""
    return f"{len(keys)} partitions: {', '.join(keys[:SHOWN_KEYS])}{more}" if len(keys) > 1 else f"[{keys[0]}]"


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

    `of_job`: the job of the code location that they are, as which the run is shown.
    Returns the exit code. Raises a sentence for output paths that lie inside one another.
    """
    refuse_overlaps((store.locate(node.output), node.name) for node in graph)
    runs = chosen_runs(nodes, options.partition, options.partition_range)
    if options.dry_run:
        require_reachable(store.prefix)
        planned = plan_with_drift(graph, store, [node for run in runs for node in run.outputs()])
        lacks = lacks_of((item.node for item in planned if item.action is Action.RUN), store.prefix)
        planned = refuse(planned, lacks)
        fleet = fleet_from_env(None, store.prefix)
        return print_plan(planned if fleet is None else with_sites(planned, store, fleet))
    return _materialize(name, graph, runs, store, options, description, of_job)


def _materialize(
    name: str,
    graph: Graph,
    runs: Sequence[PartitionRun],
    store: Store,
    options: argparse.Namespace,
    description: str | None,
    of_job: LocationJob | None,
) -> int:
    # The late import breaks a weight: Dagster takes a second, and a dry run or a wrong option answers without it.
    from marin_assets.assets.run import run_graph

    home = ensure_dagster_home()
    try:
        require_reachable(store.prefix)
        path = write_experiment(name, graph, store, description)
    except UnavailableError as error:
        raise SettingError(f"The prefix {store.prefix!r} cannot be written: {error}") from error
    except OSError as error:
        raise SettingError(
            f"The prefix {store.prefix!r} cannot be written ({error}). Set MARIN_PREFIX to a folder of yours."
        ) from error
    print(f"experiment: {path}", file=sys.stderr)
    for run in runs:
        add_keys_of(run)
        ended = run_graph(
            name,
            graph,
            run.nodes,
            keys=run.keys,
            of_job=of_job,
            max_concurrent=options.max_concurrent,
            wait_for_others=not options.fail_if_held,
        )
        print(f"run: {ended.run_id} in {home} (make dev shows it)", file=sys.stderr)
        print(f"{ended.computed} computed, {ended.reused} reused, {len(ended.failures)} failed", file=sys.stderr)
        for sentence in (*ended.failures, *ended.failed_checks):
            print(sentence, file=sys.stderr)
        if ended.stopped:
            return 130
        if ended.failures or ended.failed_checks:
            return 1
    return 0


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
        action="append",
        default=[],
        metavar="PATTERN",
        help="part of a step's name, with all that the step needs",
    )
    options = parser.parse_args()
    options.max_concurrent = max_concurrent or options.max_concurrent
    return options


def add_run_options(parser: argparse.ArgumentParser) -> None:
    add_partition_options(parser)
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="print what would run and why, run nothing")
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
