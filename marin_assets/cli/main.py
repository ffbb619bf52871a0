"""`marin <verb> …`: find the verb's module, parse its options, run it.

A verb is a module with `add_options(parser)` and `run(options) -> exit code`, or a package with its own `VERBS`.
It is imported only when it is called, so no verb waits for the imports of another.

Exit codes: 0 success, 1 the verb found something wrong, 2 wrong arguments or settings, 3 `verify` could not compare
everything, 130 stopped by Ctrl-C, 141 nobody reads the output any more. With `--json` an error is an object on stdout
too: `{"error": "<sentence>", "exit_code": 2}`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import marin_assets
from marin_assets.cli.parsers import PACKAGE, module_of
from marin_assets.cli.verb_groups import VERBS, unknown, usage, usage_of_group
from marin_assets.run.options import OptionError, OptionParser
from marin_assets.run.output import ReaderGoneError, print_error, print_line
from marin_resources.configuration.check import load_settings
from marin_resources.types.errors import InvalidInputError, MarinError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; return the exit code. An error is one sentence on stderr, with --json also on stdout."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments == ["--version"]:
        sys.stdout.write(f"marin {marin_assets.__version__}\n")
        return 0
    try:
        return _run_in_sentences(arguments)
    except ReaderGoneError:
        return 141  # 128 + SIGPIPE, as a shell has it


def _run_in_sentences(arguments: list[str]) -> int:
    as_json = "--json" in arguments[: arguments.index("--")] if "--" in arguments else "--json" in arguments
    try:
        return _run(arguments)
    except MarinError as error:
        return print_error(error.with_place(), 2 if isinstance(error, InvalidInputError) else 1, as_json=as_json)
    except KeyboardInterrupt:
        return print_error("Stopped by Ctrl-C.", 130, as_json=as_json)


def _run(arguments: list[str], command: str = "marin", verbs: Mapping[str, str] = VERBS, package: str = PACKAGE) -> int:
    if arguments and arguments[0] in ("-h", "--help"):
        print_line(usage() if verbs is VERBS else usage_of_group(command, verbs))
        return 0
    verb = arguments[0] if arguments else ""
    if verb not in verbs:
        raise OptionError(unknown(command, verb, verbs))
    module = module_of(package, verb)
    if command == "marin":
        load_settings(check=verb != "doctor")  # doctor itself reports what is wrong with each
    if hasattr(module, "VERBS"):
        return _run(arguments[1:], f"{command} {verb}", module.VERBS, module.__name__)
    parser = OptionParser(prog=f"{command} {verb}", description=module.__doc__)
    module.add_options(parser)
    try:
        options = parser.parse(arguments[1:])
    except SystemExit as exited:  # after --help
        return int(exited.code or 0)
    return int(module.run(options))


if __name__ == "__main__":
    raise SystemExit(main())
