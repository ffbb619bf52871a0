"""A command on a cluster that needs secrets by name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = "marin_resources.ray_tpu.job.command"


def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environ}
    return subprocess.run([sys.executable, "-m", MODULE, *words], capture_output=True, text=True, env=env, check=False)


def test_the_command_sees_its_secrets(tmp_path: Path) -> None:
    (tmp_path / "FIRST_SECRET").write_text("one\n")
    (tmp_path / "SECOND_SECRET").write_text("two\n")
    names = ("--env", "FIRST_SECRET", "--env", "SECOND_SECRET")
    done = run(*names, "--", "sh", "-c", 'echo "$FIRST_SECRET $SECOND_SECRET"; exit 7', MARIN_SECRETS_DIR=str(tmp_path))
    assert (done.stdout, done.stderr, done.returncode) == ("one two\n", "", 7)


def test_the_commands_own_words_are_left_alone() -> None:
    assert run("--", "echo", "--env", "--", "x").stdout == "--env -- x\n"


def test_a_secret_that_is_missing_is_one_sentence_and_nothing_runs(tmp_path: Path) -> None:
    done = run("--env", "NO_SUCH_SECRET", "--", "echo", "ran", MARIN_SECRETS_DIR=str(tmp_path))
    assert done.stdout == ""
    assert done.stderr.startswith("The variable 'NO_SUCH_SECRET' is not set on this node")
    assert done.stderr.count("\n") == 1
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--env", "A"), 2, "'--env A' has no '--' before the command."),
        (("--environ", "A", "--", "x"), 2, "'--environ' is not a known option."),
        (("--",), 2, "The command after '--' is missing."),
        (("--", "no-such-command"), 127, "The command 'no-such-command' is not on this node's PATH."),
        (("--", "/etc"), 126, "The command '/etc' cannot be started (Permission denied)."),
    ],
)
def test_words_that_are_no_command_are_one_sentence(words: tuple[str, ...], code: int, says: str) -> None:
    done = run(*words)
    assert done.stderr.startswith(says)
    assert done.stderr.count("\n") == 1
    assert done.returncode == code
