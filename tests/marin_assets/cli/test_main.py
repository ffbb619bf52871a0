"""Every wrong command line gives one sentence and exit code 2."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version

import pytest

from marin_assets.cli.verbs import verify
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.types.errors import InvalidInputError, MarinError

Marin = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "marin: got no verb, expected"),
        (["verfy"], "marin: got 'verfy' as the verb, did you mean 'verify'?"),
        (["materialize"], "marin materialize: got no selection, expected at least one. Pass names of steps"),
        (["materialize", "nowhere"], "The selection 'nowhere' finds none of the steps toy/data, toy/database, "),
        (["materialize", "--max-concurrent", "0", "toy"], "got '0', expected a whole number of 1 or more."),
        (["verify", "--nonsense"], "marin verify: unrecognized arguments: --nonsense."),
        (["verify", "--sample"], "marin verify: argument --sample: expected one argument."),
        (["verify", "--sample", "0"], "argument --sample: got '0', expected a share above 0 and up to 1."),
        (["verify", "--sample", "1.5"], "argument --sample: got '1.5', expected a share above 0 and up to 1."),
        (["verify", "--sample", "half"], "argument --sample: got 'half', expected a share"),
        (["verify", "--sample", "nan"], "argument --sample: got 'nan', expected a share"),
        (["verify", "--seed", "x"], "marin verify: argument --seed: invalid int value: 'x'."),
        (["verify", "nowhere"], "The selection 'nowhere' finds none of the steps toy/data, toy/database, "),
        (["verify", "["], "The selection '[' is not a pattern (unterminated character set at position 0)."),
        (["verify", "+"], "The selection '+' cannot be parsed as it ends too early"),
        (["verify", ""], "The selection '' cannot be parsed as it is empty"),
        (["verify", "--experiment", "other"], "There is no experiment 'other', expected "),
        (["verify", "--prefix", ""], "The prefix is empty. Set MARIN_PREFIX"),
        (["verify", "--prefix", "nix://x"], "The prefix 'nix://x' has the unknown scheme 'nix'."),
        (["verify", "--prefix", "memory://x"], "The prefix 'memory://x"),
        (
            ["verify", "--prefix", "/nowhere/at/all"],
            "None of the 4 selected outputs is complete at the prefix '/nowhere",
        ),
    ],
)
def test_a_wrong_command_line_is_one_line_on_stderr_and_code_2(
    experiment: str, marin: Marin, arguments: list[str], sentence: str
) -> None:
    code, out, err = marin(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert sentence in err


def test_the_help_of_a_verb_names_its_options(marin: Marin) -> None:
    code, out, _ = marin("verify", "--help")
    assert code == 0
    assert "--sample P" in out


def test_version_prints_the_version_of_the_distribution(marin: Marin) -> None:
    assert marin("--version") == (0, f"marin {version('marin-dagster')}\n", "")


def test_the_command_starts_without_dagster_and_ray() -> None:
    code = (
        "import sys; from marin_assets.cli.main import main; main(['verify', '--prefix', '/nowhere/at/all']); "
        "print({'dagster', 'ray', 'gcsfs', 'jax'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n", ended.stderr


def test_it_runs_as_a_module() -> None:
    for module in ("marin_assets.cli", "marin_assets.cli.main"):
        ended = subprocess.run([sys.executable, "-m", module, "verify", "x", "--seed"], capture_output=True, text=True)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr == "marin verify: argument --seed: expected one argument. See 'marin verify --help'.\n"


class _AnyError(MarinError):
    """A sentence of a kind that no boundary names."""


@pytest.mark.parametrize(("kind", "expected"), [(_AnyError, 1), (UnavailableError, 1), (InvalidInputError, 2)])
def test_an_error_that_is_a_sentence_is_one_line_and_its_kind_decides_the_exit_code(
    experiment: str, marin: Marin, monkeypatch: pytest.MonkeyPatch, kind: type[MarinError], expected: int
) -> None:
    def run(options: object) -> int:
        raise kind("The roof is open. Close it.")

    monkeypatch.setattr(verify, "run", run)
    assert marin("verify") == (expected, "", "The roof is open. Close it.\n")


def test_any_other_error_of_a_verb_is_a_bug_and_keeps_its_traceback(
    experiment: str, marin: Marin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(options: object) -> int:
        raise ValueError("a bug")

    monkeypatch.setattr(verify, "run", run)
    with pytest.raises(ValueError, match="a bug"):
        marin("verify")
