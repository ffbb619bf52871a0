"""Upgrade Dagster's tables at DAGSTER_HOME to the installed release, after a back-up in DAGSTER_HOME/back-ups.

Nothing may use the instance meanwhile. If it goes wrong: marin instance restore FILE --replace.
"""

from __future__ import annotations

import argparse

from marin_assets.cli.verbs.instance.dagster_instance import opened_instance
from marin_assets.run.output import print_line


def add_options(parser: argparse.ArgumentParser) -> None:
    pass


def run(options: argparse.Namespace) -> int:
    from marin_resources.instance.upgrade import upgrade  # late, for its weight

    with opened_instance() as (instance, home):
        if upgrade(instance, home, print_line):
            print_line(f"upgraded {home}")
        else:
            print_line(f"{home} has the newest tables: nothing to do")
    return 0
