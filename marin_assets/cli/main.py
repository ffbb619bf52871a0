"""`marin <verb> …`: find the verb's file, read its options, run it.

A verb is a module with `add_options(parser)` and `run(options) -> exit code`, or a package with `VERBS` of its own.
It is imported when it is asked for, so that no verb waits for what another one needs.

Exit codes: 0 all is well, 1 the verb found something wrong, 2 wrong arguments or settings, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence

import marin_assets
from marin_assets.cli.entry_point import SENTENCES
from marin_assets.cli.options import OptionError, OptionParser
from marin_assets.cli.output import tell, warn
from marin_resources.storage.control.protocol import UnavailableError

VERBS = {
    "cluster": "the Ray cluster: its jobs, their logs, a local one",
    "verify": "compare the files of complete outputs with their manifests",
}
"""Name of the verb, and of its file -> what it does."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code. What is wrong with it is said in one sentence on stderr."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments == ["--version"]:
        sys.stdout.write(f"marin {marin_assets.__version__}\n")
        return 0
    try:
        return _run(arguments)
    except (OptionError, *SENTENCES) as error:
        warn(str(error))
        return 2
    except UnavailableError as error:
        warn(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


def _run(
    arguments: list[str], said: str = "marin", verbs: Mapping[str, str] = VERBS, package: str = "marin_assets.cli"
) -> int:
    if arguments and arguments[0] in ("-h", "--help"):
        tell(_usage(said, verbs))
        return 0
    verb = arguments[0] if arguments else ""
    if verb not in verbs:
        got = f"got {verb!r} as the verb" if verb else "got no verb"
        raise OptionError(f"{said}: {got}, expected {_one_of(verbs)}. See '{said} --help'.")
    module = importlib.import_module(f"{package}.{verb.replace('-', '_')}")
    if hasattr(module, "VERBS"):
        return _run(arguments[1:], f"{said} {verb}", module.VERBS, module.__name__)
    parser = OptionParser(prog=f"{said} {verb}", description=module.__doc__)
    module.add_options(parser)
    try:
        options = parser.parse(arguments[1:])
    except SystemExit as ended:  # after --help
        return int(ended.code or 0)
    return int(module.run(options))


def _usage(said: str, verbs: Mapping[str, str]) -> str:
    return "\n".join([f"{said} <verb> …", *(f"    {verb:10} {does}" for verb, does in verbs.items())])


def _one_of(names: Mapping[str, str]) -> str:
    return "one of " * (len(names) > 1) + ", ".join(map(repr, names))


if __name__ == "__main__":
    raise SystemExit(main())
