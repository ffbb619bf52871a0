"""`python -m marin_resources.ray_tpu.job.command --env NAME … -- CMD …`: run a command that needs secrets by name.

The variables are found as those of a step are, and this process becomes the command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from marin_resources.ray_tpu.environment.secrets import SecretError, provide

USAGE = "python -m marin_resources.ray_tpu.job.command --env NAME … -- CMD …"


class UsageError(ValueError):
    """Words that are no command: one sentence."""


def main(words: Sequence[str]) -> int:
    """Does not return if the command starts; an exit code as a shell gives it, if it cannot."""
    try:
        names, command = _parse(words)
        provide(names)
    except (UsageError, SecretError) as error:
        return _fail(str(error), 2)
    try:
        os.execvp(command[0], command)
    except FileNotFoundError:
        return _fail(f"The command {command[0]!r} is not on this node's PATH. Mend its name, or add it.", 127)
    except OSError as error:
        return _fail(f"The command {command[0]!r} cannot be started ({error.strerror}). Look at the file.", 126)


def _parse(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names of variables, and the command. `--env` may be said once with many names, or often."""
    if "--" not in words:
        raise UsageError(f"{' '.join(words)!r} has no '--' before the command. Expected: {USAGE}")
    at = list(words).index("--")
    options, command = words[:at], list(words[at + 1 :])
    if options and options[0] != "--env":
        raise UsageError(f"{options[0]!r} is not known. Expected: {USAGE}")
    if not command:
        raise UsageError(f"There is no command after '--'. Expected: {USAGE}")
    return [word for word in options if word != "--env"], command


def _fail(sentence: str, code: int) -> int:
    sys.stderr.write(f"{sentence}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
