"""Write one HTML page about an experiment, which can be published: no script, no network, nothing private.

    marin page EXPERIMENT | SCRIPT.py | FILE.json [SELECTION …] [--output DIR]

The experiment may be complete, running, failed, or never run. FILE.json is a record below <prefix>/experiments/, also
one of Marin's. The page has neither absolute paths nor names of users and hosts, addresses, or secrets. It computes
nothing, and prints the path of the page.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from marin_assets.catalog.code_location import select_nodes
from marin_assets.catalog.experiments_folder import experiment_names
from marin_assets.cli.render.page_file import output_folder, write_page
from marin_assets.experiment_page.from_graph import steps_of_graph
from marin_assets.experiment_page.from_record import steps_of_record
from marin_assets.experiment_page.page import page_of
from marin_assets.experiment_page.page_steps import PageSteps
from marin_assets.run.options import OptionError, add_prefix, prefix_of
from marin_assets.run.output import print_line
from marin_assets.run.plan_options import words_of
from marin_assets.step.graph import build_graph
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.types.near_names import expected_one_of


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar="EXPERIMENT | SCRIPT | FILE.json [SELECTION]",
        help="an experiment, a script or a record of an experiment; and steps of it",
    )
    parser.add_argument("--experiment", metavar="NAME", help="this experiment")
    parser.add_argument("--script", metavar="FILE", help="the experiment of this script")
    parser.add_argument("--output", default=".", metavar="DIR", help="folder of the page (default: the current one)")
    add_prefix(parser)


def run(options: argparse.Namespace) -> int:
    folder = output_folder(options.output, "marin page")
    experiment = _experiment(options)
    print_line(write_page(folder, f"{experiment.title}.html", page_of(experiment).encode()))
    return 0


def _experiment(options: argparse.Namespace) -> PageSteps:
    words = options.words
    if words and words[0].endswith(".json") and options.experiment is None and options.script is None:
        return steps_of_record(words[0], words[1:], options.prefix)
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    experiment, script, selections = words_of(options)
    if experiment is None and script is None:
        names = experiment_names()
        if not words:
            raise OptionError("marin page: got no experiment, expected its name, SCRIPT.py or FILE.json.")
        raise OptionError(f"marin page: there is no experiment {words[0]!r}, {expected_one_of(words[0], names)}")
    _, nodes = select_nodes(selections, experiment, script)
    graph = build_graph([node.step for node in nodes])
    title = Path(script).stem if script is not None else str(experiment)
    return steps_of_graph(title, graph, [graph[node.step] for node in nodes], store)
