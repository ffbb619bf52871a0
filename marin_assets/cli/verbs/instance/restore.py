"""Put a back-up of `marin instance backup` in place at DAGSTER_HOME, which nothing may use meanwhile.

The file is checked first. With --replace, the instance that is there is moved to DAGSTER_HOME/replaced-<time>.
Afterwards `marin sync` shows Dagster the outputs that were completed since the back-up.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from marin_assets.cli.verbs.instance.dagster_instance import in_sentences, opened_instance
from marin_assets.run.output import print_line
from marin_resources.configuration.settings import dagster_home


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the file of the back-up")
    parser.add_argument("--replace", action="store_true", help="replace the instance that is there; it is kept aside")


def run(options: argparse.Namespace) -> int:
    # late, for their weight
    from marin_resources.instance.postgres import url_of_home
    from marin_resources.instance.restore import restore

    home = Path(dagster_home())
    with in_sentences():
        url = url_of_home(home)
    aside = restore(options.file.absolute(), home, url=url, replace=options.replace)
    with opened_instance() as (instance, _):
        runs = instance.get_runs_count()
    print_line(f"restored {runs} run{'s' * (runs != 1)} at {home}")
    if aside is not None:
        print_line(f"what was there is in {aside}")
    return 0
