"""`python -m marin_resources.ray_tpu.job.command --env NAME … -- CMD …`: run a command that requires secrets by name.

The values are looked up as for a step. The command replaces this process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from marin_resources.ray_tpu.environment.secrets import SecretError, load_secrets
from marin_resources.types.errors import MarinError

USAGE = "python -m marin_resources.ray_tpu.job.command --env NAME … -- CMD …"


class UsageError(MarinError, ValueError):
    """Arguments that are not valid: one sentence."""


def main(arguments: Sequence[str]) -> int:
    """Replace this process by the command. If that fails, return an exit code as a shell does."""
    try:
        names, command = _parse(arguments)
        load_secrets(names)
    except (UsageError, SecretError) as error:
        return _fail(str(error), 2)
    try:
        os.execvp(command[0], command)
    except FileNotFoundError:
        return _fail(f"The command {command[0]!r} is not on this node's PATH. Fix its name, or install it.", 127)
    except OSError as error:
        return _fail(f"The command {command[0]!r} cannot be started ({error.strerror}). Check the file.", 126)


def _parse(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return names of variables, and the command. `--env` may be given once with many names, or repeatedly."""
    if "--" not in arguments:
        raise UsageError(f"{' '.join(arguments)!r} has no '--' before the command. Expected: {USAGE}")
    at = list(arguments).index("--")
    options, command = arguments[:at], list(arguments[at + 1 :])
    if options and options[0] != "--env":
        raise UsageError(f"{options[0]!r} is not a known option. Expected: {USAGE}")
    if not command:
        raise UsageError(f"The command after '--' is missing. Expected: {USAGE}")
    return [option for option in options if option != "--env"], command


def _fail(sentence: str, code: int) -> int:
    sys.stderr.write(f"{sentence}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
