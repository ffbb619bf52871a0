"""The options of a recipe: a scale, a slice, and data of one's own. The rest of the command line is executor_main's."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from marin_assets.step.step import Step
from marin_resources.hardware.resources import ResourceError, Resources, tpu

Build = Callable[[str, Mapping[str, str] | None, Resources | None], Sequence[Step]]


def take_recipe_options(build: Build, *, scales: Iterable[str], sources: Sequence[str]) -> list[Step]:
    """Take `--scale`, `--tpu` and an option for each source off the command line, and return the steps that
    `build(scale, sources, resources)` returns.

    Sources are given all or none (None). The first scale is the default. Exits with 2 and a sentence for a mistake,
    also for a ValueError of `build`.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    names = list(scales)
    parser.add_argument("--scale", choices=names, default=names[0])
    parser.add_argument("--tpu", metavar="TYPE")
    for source in sources:
        parser.add_argument(f"--{source}", metavar="URL")
    options, sys.argv[1:] = parser.parse_known_args()
    given = {source: getattr(options, source) for source in sources if getattr(options, source) is not None}
    missing = [f"--{source}" for source in sources if source not in given]
    if given and missing:
        parser.error(
            f"{', '.join(missing)} missing: give all of {', '.join(f'--{source}' for source in sources)}, or none"
        )
    try:
        return list(build(options.scale, given or None, None if options.tpu is None else tpu(options.tpu)))
    except (ResourceError, ValueError) as error:
        parser.error(str(error))


def take_source_option(build: Callable[[str | None], Sequence[Step]], option: str, default: str | None) -> list[Step]:
    """Take `option`, such as "--crawl", off the command line, and return the steps that `build(its value)` returns.

    Exits with 2 and a sentence for a mistake, also for a ValueError of `build`.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(option, metavar="PATH", default=default, dest="source")
    options, sys.argv[1:] = parser.parse_known_args()
    if options.source is not None and not options.source.strip():
        parser.error(f"{option} is {options.source!r}, expected a path or an address")
    try:
        return list(build(options.source))
    except ValueError as error:
        parser.error(str(error))
