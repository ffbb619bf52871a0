"""`marin <verb> …`: find the verb's module, parse its options, run it.

A verb is a module with `add_options(parser)` and `run(options) -> exit code`, or a package with its own `VERBS`.
It is imported only when it is called, so no verb waits for the imports of another.

Exit codes: 0 success, 1 the verb found something wrong, 2 wrong arguments or settings, 3 `verify` could not compare
everything, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence

import marin_assets
from marin_assets.cli.entry_point import SENTENCES
from marin_assets.cli.options import OptionError, OptionParser
from marin_assets.cli.output import print_line, print_stderr
from marin_resources.configuration.check import load_settings
from marin_resources.storage.control.protocol import UnavailableError

VERBS = {
    "backfill": "request a backfill of partitions from Dagster's daemon",
    "cluster": "the Ray cluster: its jobs, their logs, a local one",
    "dev": "serve Dagster's UI on this machine",
    "doctor": "look at the settings of this machine, and say what is wrong",
    "gc": "outputs that nothing needs: list, collect, restore, purge",
    "generate": "continue a text with a trained model",
    "instance": "back up, restore, prune and upgrade Dagster's runs and events",
    "list": "the selected steps and their paths",
    "materialize": "compute the selected outputs, or reuse them",
    "metrics": "serve numbers for Prometheus",
    "partitions": "the partitions of a step: state, size, error",
    "pin": "keep outputs, with a reason: marin gc leaves them",
    "status": "the state of the selected outputs",
    "sync": "show Dagster the complete outputs that it does not know",
    "verify": "compare the files of complete outputs with their manifests",
}
"""Name of the verb, and of its file -> its description."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; return the exit code. An error is one sentence on stderr."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments == ["--version"]:
        sys.stdout.write(f"marin {marin_assets.__version__}\n")
        return 0
    try:
        return _run(arguments)
    except (OptionError, *SENTENCES) as error:
        print_stderr(str(error))
        return 2
    except UnavailableError as error:
        print_stderr(str(error))
        return 1
    except KeyboardInterrupt:
        print_stderr("Stopped by Ctrl-C.")
        return 130


def _run(
    arguments: list[str], command: str = "marin", verbs: Mapping[str, str] = VERBS, package: str = "marin_assets.cli"
) -> int:
    if arguments and arguments[0] in ("-h", "--help"):
        print_line(_usage(command, verbs))
        return 0
    verb = arguments[0] if arguments else ""
    if verb not in verbs:
        got = f"got {verb!r} as the verb" if verb else "got no verb"
        raise OptionError(f"{command}: {got}, expected {_one_of(verbs)}. See '{command} --help'.")
    module = importlib.import_module(f"{package}.{verb.replace('-', '_')}")
    if command == "marin":
        load_settings(check=verb != "doctor")  # which says itself what is wrong with each
    if hasattr(module, "VERBS"):
        return _run(arguments[1:], f"{command} {verb}", module.VERBS, module.__name__)
    parser = OptionParser(prog=f"{command} {verb}", description=module.__doc__)
    module.add_options(parser)
    try:
        options = parser.parse(arguments[1:])
    except SystemExit as exited:  # after --help
        return int(exited.code or 0)
    return int(module.run(options))


def _usage(command: str, verbs: Mapping[str, str]) -> str:
    width = max(10, *map(len, verbs))
    lines = (f"    {verb:{width}} {description}" for verb, description in verbs.items())
    return "\n".join([f"{command} <verb> …", *lines])


def _one_of(names: Mapping[str, str]) -> str:
    return "one of " * (len(names) > 1) + ", ".join(map(repr, names))


if __name__ == "__main__":
    raise SystemExit(main())
