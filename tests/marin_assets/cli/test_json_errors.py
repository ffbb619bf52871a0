"""With --json on the command line, an error is one object on stdout, and nothing else is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Marin = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["list", "--nonsense"], 2),
        (["list", "nowhere"], 2),
        (["list", "--script", "/nowhere.py"], 2),
        (["status", "--prefix", "nix://x"], 2),
        (["verify", "--sample", "0"], 2),
        (["verify"], 2),
        (["partitions", "toy/data"], 2),
        (["doctor", "nothing"], 2),
        (["materialize", "nowhere"], 2),  # which has no --json
        (["lits"], 2),
        (["cluster", "jobs", "--cluster", " "], 2),
        (["cluster", "jobs", "--cluster", "http://127.0.0.1:1"], 1),
        (["cluster", "status", "nowhere"], 2),
        (["status", "--prefix", "gs://nothing-answers/here"], 1),
    ],
)
def test_an_error_is_one_object_with_the_sentence_and_the_exit_code(
    experiment: str, prefix: Path, marin: Marin, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int
) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
    got, out, err = marin(*arguments, "--json")
    assert got == code
    assert json.loads(out) == {"error": err.removesuffix("\n"), "exit_code": code}
    assert marin(*arguments)[:2] == (code, "")


def test_the_json_of_a_command_after_two_dashes_is_not_ours(marin: Marin) -> None:
    assert marin("cluster", "submit", "--nonsense", "--", "true", "--json")[:2] == (2, "")


def test_a_setting_that_cannot_be_used_is_an_object_too(marin: Marin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_LEASE_TTL_S", "soon")
    code, out, _ = marin("list", "--json")
    assert (code, json.loads(out)["error"]) == (2, "MARIN_LEASE_TTL_S is 'soon', expected seconds above 0.")


def test_what_a_script_prints_is_not_in_the_result(marin: Marin, tmp_path: Path) -> None:
    script = tmp_path / "chatty.py"
    script.write_text('print("hello")\nraise ValueError("mine")\n')
    code, out, err = marin("list", "--script", str(script), "--json")
    assert (code, list(json.loads(out))) == (2, ["error", "exit_code"])
    assert err.startswith("hello\n")


def test_a_reader_that_has_gone_ends_the_command_without_a_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "marin_assets.cli", "list", "two_steps"]
    ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, "")
