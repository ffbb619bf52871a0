"""Give a project of Google Cloud what the clusters of the catalogue need: `marin cluster project --dry-run`.

The network with its firewall, buckets, registries of images, the secret with a new token, service accounts with their
rights. What is there is left as it is: what differs is reported. So it may be repeated, and continues where it was
interrupted. infra/project.json has all of it, to be read.
"""

from __future__ import annotations

import argparse
import re

from marin_assets.cli.verbs.cluster.support.slices import in_sentences
from marin_assets.run.options import OptionError
from marin_assets.run.output import print_line, print_stderr

MEMBER = re.compile(r"(user|group|serviceAccount):[^@\s]+@[^@\s]+|domain:[^@\s]+")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--operator",
        action="append",
        default=[],
        metavar="MEMBER",
        help="who may bring clusters up and reach them, such as group:marin@example.org; may be repeated",
    )
    parser.add_argument("--yes", action="store_true", help="create what is missing")
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="only print what is missing")


def run(options: argparse.Namespace) -> int:
    if options.yes == options.dry_run:
        raise OptionError("marin cluster project: look with --dry-run, then create what is missing with --yes.")
    for member in options.operator:
        if not MEMBER.fullmatch(member):
            raise OptionError(
                f"marin cluster project: --operator is {member!r}, expected a member as IAM has it, such as "
                "group:marin@example.org or user:me@example.org."
            )
    return in_sentences(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    # late, for their weight
    from marin_resources.clusters.catalogue import read_catalogue
    from marin_resources.infra.google import Google
    from marin_resources.infra.project.apply import changes
    from marin_resources.infra.project.desired_state import wanted_project

    target = wanted_project(list(read_catalogue().values()), options.operator)
    created = differing = 0
    for change in changes(target, Google()):
        if change.apply is None:
            differing += 1
            print_stderr(f"{change.label} differs: {change.why}")
            continue
        created += 1
        print_line(f"{'create' if options.dry_run else 'creating'} {change.label}")
        if not options.dry_run:
            change.apply()
    outcome = "are missing" if options.dry_run else "created"
    print_line(f"{created} {outcome} in the project {target.project}, {differing} differ")
    return 1 if differing else 0
