"""Write the page of speedruns, which needs neither a script nor the network, and print its path.

    marin speedrun page [FOLDER …] [--output DIR]

The entries are those of the files below each FOLDER, such as submitted ones or Marin's; without one, and with --prefix,
those of the outputs of this prefix: the newest of each step "speedruns/…". It computes nothing else.
"""

from __future__ import annotations

import argparse
import dataclasses
import math

from marin_assets.cli.render.page_file import output_folder, write_page
from marin_assets.run.options import OptionError, add_prefix, prefix_of
from marin_assets.run.output import print_line
from marin_assets.stages.report.speedruns.board import PAGE, SpeedrunBoardConfig, board_of, check_board
from marin_assets.stages.report.speedruns.entry import RESULTS
from marin_assets.stages.report.speedruns.read import Read, SpeedrunError, read_entries
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.environment.extras import missing_in_environment
from marin_resources.ray_tpu.requirements import Requirements
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.paths import join

KIND = "speedruns/"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="folders with files of entries")
    parser.add_argument("--metric", default="eval/bpb", metavar="NAME", help="the ranked metric (default: eval/bpb)")
    parser.add_argument("--goal", default="min", metavar="GOAL", help="min or max (default: min)")
    parser.add_argument(
        "--target", action="append", default=[], metavar="TRACK=VALUE", help="a track: a value of the metric to reach"
    )
    parser.add_argument("--baseline", metavar="LABEL", help="the recipe that others are compared with; needs --floor")
    parser.add_argument("--floor", type=float, metavar="LOSS", help="the loss that no compute goes below")
    parser.add_argument("--forecast", type=float, metavar="FLOPS", help="forecast the loss of recipes there: 1e22")
    parser.add_argument("--output", default=".", metavar="DIR", help=f"folder of {PAGE} (default: the current one)")
    add_prefix(parser)


def run(options: argparse.Namespace) -> int:
    for missing in missing_in_environment([Requirements(step="", extras=("evaluate",))]).values():
        raise OptionError(f"marin speedrun page {missing[0].phrase}")
    config = unwrap_versioned_value(
        SpeedrunBoardConfig(
            folders={folder: folder for folder in options.folders} or {"": "the prefix"},
            output_path=options.output,
            metric=options.metric,
            goal=options.goal,
            targets=dict(map(_target, options.target)),
            baseline=options.baseline,
            floor=options.floor,
            forecast_flops=options.forecast,
        )
    )
    check_board(config)
    folder = output_folder(options.output, "marin speedrun page")
    reads = [read for folder in options.folders for read in read_entries(folder)]
    if options.prefix is not None or not options.folders:
        reads += _of_prefix(prefix_of(options))
    page, _, _ = board_of(config, reads)
    print_line(write_page(folder, PAGE, page))
    return 0


def _of_prefix(prefix: str) -> list[Read]:
    """The entries of the newest version of each step "speedruns/…"."""
    require_reachable(prefix)
    outputs = CompleteOutputs(prefix, writes=False)
    names = sorted(name for name in outputs.by_name if name.startswith(KIND))
    if not names:
        raise SpeedrunError(
            f"The prefix {prefix!r} has no complete output of a step {KIND + '<name>'!r}. Compute one of "
            "default_speedrun, or pass a folder of files."
        )
    reads = []
    for name in names:
        path = join(prefix, f"{name}-{outputs.by_name[name][0].version}")
        reads += [dataclasses.replace(read, name=name.removeprefix(KIND)) for read in read_entries(join(path, RESULTS))]
    return reads


def _target(text: str) -> tuple[str, float]:
    name, equals, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not (equals and name.strip()) or not math.isfinite(number):
        raise OptionError(f"marin speedrun page: --target is {text!r}, expected a name and a number, as in 300m=1.104.")
    return name, number
