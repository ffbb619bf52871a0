"""Write Dagster's runs, events, backfills, dynamic partitions and ticks at DAGSTER_HOME to one file.

It may be in use meanwhile. The outputs are not in the file: they are in the prefix. The file is for its owner alone, as
configs and printed lines may hold secrets.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from marin_assets.cli.verbs.instance.dagster_instance import opened_instance
from marin_assets.run.output import print_line


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the new file, such as dagster.tar.zst")
    parser.add_argument("--no-logs", "--no_logs", action="store_true", help="leave out what runs have printed")


def run(options: argparse.Namespace) -> int:
    # late, for their weight
    from tqdm import tqdm

    from marin_resources.instance.back_up import back_up

    with opened_instance() as (instance, home):
        runs = instance.get_runs_count()
        size = back_up(
            instance,
            home,
            options.file.absolute(),
            logs=not options.no_logs,
            progress=lambda names: tqdm(names, unit=" databases", disable=None, leave=False),
        )
    print_line(f"backed up {runs} run{'s' * (runs != 1)} of {home} to {options.file} ({size / 1e6:.1f} MB)")
    return 0
