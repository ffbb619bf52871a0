"""A mistake in an experiment's file is one sentence with its line, before anything runs, however the file starts."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mistaken_experiments import EXPERIMENTS
from mistaken_recipes import GRAPHS, PARTITIONS, RECIPES, SCRIPTS
from mistaken_scripts import CONFIGS, STEPS, Mistake
from running import ROOT

from marin_assets.cli.main import main
from marin_assets.run.exception_hook import shortened
from marin_assets.step.error_line import OURS

IN_ALL = (*STEPS, *CONFIGS, *GRAPHS, *PARTITIONS, *RECIPES)
KNOWN_LIMITS: dict[str, str] = {}
"""Mistake -> why it is not one sentence. None is known."""
IN_PROCESSES = ("Step(nmae=", "name='raw/' +", "executor_main(a)", "two steps of one name", "a cycle")

Started = Callable[[Path], tuple[int, str, str]]


@pytest.fixture
def as_a_command(capsys: pytest.CaptureFixture[str]) -> Started:
    """`marin plan my_experiment.py`, in this process."""

    def run(script: Path) -> tuple[int, str, str]:
        code = main(["plan", str(script)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def as_a_script(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Started:
    """`python my_experiment.py --dry-run`, in this process."""

    def run(script: Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", [str(script), "--dry-run"])
        try:
            runpy.run_path(str(script), run_name="__main__")
            code = 0
        except SystemExit as exited:
            code = int(exited.code or 0)
        except Exception as error:  # as the interpreter's last resort, which reports it and ends with 1
            shortened(sys.__excepthook__)(type(error), error, error.__traceback__)
            code = 1
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def parametrized(mistakes: tuple[Mistake, ...]) -> pytest.MarkDecorator:
    assert set(KNOWN_LIMITS) <= {mistake.name for mistake in IN_ALL}
    cases = [
        pytest.param(
            mistake,
            id=mistake.name,
            marks=[pytest.mark.xfail(strict=True, reason=why)] if (why := KNOWN_LIMITS.get(mistake.name)) else [],
        )
        for mistake in mistakes
    ]
    return pytest.mark.parametrize("mistake", cases)


def require_one_sentence(ended: tuple[int, str, str], line: str, says: tuple[str, ...]) -> str:
    """Return the sentence."""
    code, out, err = ended
    assert (code in (1, 2), out, err.count("\n")) == (True, "", 1), ended
    assert err.startswith(f"{line}: "), (line, err)
    sentence = err.removeprefix(f"{line}: ")
    assert [part for part in says if part not in sentence] == [], sentence
    assert "Traceback" not in sentence
    assert not any(folder in sentence for folder in OURS), sentence
    assert len(sentence) < 600
    return re.sub(r"0x[0-9a-f]+", "0x…", sentence)


@parametrized(IN_ALL)
def test_a_mistake_is_one_sentence_for_the_command_and_for_the_script(
    mistake: Mistake, tmp_path: Path, prefix: Path, as_a_command: Started, as_a_script: Started
) -> None:
    script = tmp_path / "my_experiment.py"
    script.write_text(mistake.script())
    line = f"{script}:{mistake.line}"
    sentence = require_one_sentence(as_a_command(script), line, mistake.says)
    assert require_one_sentence(as_a_script(script), line, mistake.says) == sentence
    assert not prefix.exists()


@parametrized(tuple(SCRIPTS))
def test_what_python_itself_refuses_is_one_sentence_for_the_command(
    mistake: Mistake, tmp_path: Path, prefix: Path, as_a_command: Started
) -> None:
    script = tmp_path / "my_experiment.py"
    script.write_text(mistake.script())
    require_one_sentence(as_a_command(script), f"{script}:{mistake.line}", mistake.says)
    assert not prefix.exists()


@pytest.mark.parametrize("mistake", EXPERIMENTS)
def test_a_mistake_in_the_folder_of_experiments_is_one_sentence(
    mistake: str,
    tmp_path: Path,
    prefix: Path,
    monkeypatch: pytest.MonkeyPatch,
    as_a_command: Started,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, number, says = EXPERIMENTS[mistake]
    folder = tmp_path / "experiments_of_mine"
    folder.mkdir()
    (folder / "mine.py").write_text(text)
    monkeypatch.setattr("marin_assets.experiments.__path__", [str(folder)])
    monkeypatch.delitem(sys.modules, "marin_assets.experiments.mine", raising=False)
    code = main(["plan", "mine"])
    said = capsys.readouterr()
    sentence = require_one_sentence((code, said.out, said.err), f"{folder / 'mine.py'}:{number}", says)
    assert sentence.startswith("Experiment 'mine' is left out: ")
    assert not prefix.exists()


def test_they_are_more_than_a_hundred_and_at_most_five_are_known_limits() -> None:
    names = [*(mistake.name for mistake in (*IN_ALL, *SCRIPTS)), *EXPERIMENTS]
    assert len(set(names)) == len(names) > 100
    assert len(KNOWN_LIMITS) <= 5


@pytest.mark.parametrize("start", [("{script}", "--dry-run"), ("-m", "marin_assets.cli", "plan", "{script}")])
@pytest.mark.parametrize(
    "beginning", [IN_PROCESSES[0], *(pytest.param(each, marks=pytest.mark.long) for each in IN_PROCESSES[1:])]
)
def test_a_process_says_the_same(
    beginning: str, start: tuple[str, ...], tmp_path: Path, prefix: Path, dagster_home: Path
) -> None:
    [mistake] = [one for one in IN_ALL if one.name.startswith(beginning)]
    script = tmp_path / "my_experiment.py"
    script.write_text(mistake.script())
    ended = subprocess.run(
        [sys.executable, *(word.format(script=script) for word in start)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    require_one_sentence((ended.returncode, ended.stdout, ended.stderr), f"{script}:{mistake.line}", mistake.says)
    assert not prefix.exists()
