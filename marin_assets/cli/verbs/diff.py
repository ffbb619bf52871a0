"""Compare two experiments, runs or commits: the steps that differ themselves, their fields, then the scores.

A and B are each one of

    quickstart              an experiment of the code
    quickstart-1a2b3c       a record below <prefix>/experiments/, or the path of one
    run:1905a43a            a run of Dagster, by its id or the first eight digits of it; `run:` may be left out
    git:main~3              a commit: the experiments of the folder as they were; `git:` may be left out

Steps are compared by name. It computes nothing.
"""

from __future__ import annotations

import argparse
import json

from marin_assets.catalog.experiments_folder import Experiments, load_experiments
from marin_assets.inspection.compare.commit_side import commit_of, side_of_commit
from marin_assets.inspection.compare.compare import compare
from marin_assets.inspection.compare.experiment_side import side_of_experiment, side_of_record
from marin_assets.inspection.compare.lines import lines_of
from marin_assets.inspection.compare.run_side import side_of_recorded_run, side_of_run
from marin_assets.inspection.compare.scores import scores_of
from marin_assets.inspection.compare.side import Side
from marin_assets.inspection.compare.to_json import to_json
from marin_assets.inspection.explain.materializations import RUN
from marin_assets.run.options import OptionError, add_prefix, prefix_of
from marin_assets.run.output import print_line
from marin_assets.step.values import ConfigError
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.output.store import Store

OF_RUN, OF_GIT = "run:", "git:"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="what was before")
    parser.add_argument("b", metavar="B", help="what is compared with it")
    parser.add_argument(
        "--experiment", metavar="NAME", help="of a commit: this experiment; else the one it is compared with, or all"
    )
    add_prefix(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    store, loaded = store_at(prefix_of(options)), load_experiments()
    require_reachable(store.prefix)
    # a commit that is compared with an experiment of the code is that experiment, unless --experiment names one
    experiment = options.experiment or next((text for text in (options.a, options.b) if text in loaded.steps), None)
    a, b = (_side(text, experiment, loaded, store) for text in (options.a, options.b))
    comparison = compare(a, b)
    scores = scores_of(comparison, store.prefix)
    if options.json:
        print_line(json.dumps(to_json(comparison, scores), indent=2))
    else:
        for line in lines_of(comparison, scores):
            print_line(line)
    return 0


def _side(text: str, experiment: str | None, loaded: Experiments, store: Store) -> Side:
    """Raises OptionError for a text that names nothing, ConfigError for an experiment that cannot be built."""
    run_id, ref = text.removeprefix(OF_RUN), text.removeprefix(OF_GIT)
    if text in loaded.left_out:
        raise ConfigError(loaded.left_out[text])
    if text in loaded.steps:
        return side_of_experiment(text, loaded.steps[text], store)
    if (record := side_of_record(text, store.prefix)) is not None:
        return record
    if not text.startswith(OF_GIT) and RUN.fullmatch(run_id) and (of_run := _of_run(run_id, store)) is not None:
        return of_run
    if not text.startswith(OF_RUN) and (commit := commit_of(ref)) is not None:
        return side_of_commit(ref, commit, experiment, store.prefix)
    names = ", ".join(sorted(loaded.steps)) or "none"
    raise OptionError(
        f"marin diff: got {text!r}, expected an experiment ({names}), a record below {store.prefix}/experiments/, the "
        "id of a Dagster run, or a commit of git."
    )


def _of_run(run_id: str, store: Store) -> Side | None:
    # late, for its weight: Dagster takes a second
    from marin_assets.assets.runs.outputs_of_run import outputs_of_run, run_with
    from marin_resources.configuration.settings import ensure_dagster_home
    from marin_resources.dagster_fixes.databases import open_instance

    ensure_dagster_home()
    with open_instance() as instance:
        whole = run_with(instance, run_id)
        outputs = outputs_of_run(instance, whole) if whole is not None else None
    if outputs is not None and outputs.paths:
        return side_of_run(outputs.run_id, outputs.paths, store.prefix)
    return side_of_recorded_run(run_id, store.prefix)
