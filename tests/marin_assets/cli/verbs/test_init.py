"""`marin init`: the project that it makes is used by every command that starts in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from running import ROOT

Marin = Callable[..., tuple[int, str, str]]
OTHERS = {"MARIN_PREFIX", "DAGSTER_HOME", "MARIN_EXPERIMENTS", "MARIN_SENSORS"}


@pytest.fixture
def project(tmp_path: Path, marin: Marin) -> Path:
    code, out, _ = marin("init", str(tmp_path / "my-lab"))
    assert (code, out.startswith(f"made: {tmp_path}/my-lab, with the package my_lab.")) == (0, True)
    return tmp_path / "my-lab"


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A Python module's command, started in a folder as a person starts it."""
    environ = {name: value for name, value in os.environ.items() if name not in OTHERS} | {"PYTHONPATH": str(ROOT)}
    if words[0] == "dagster":
        environ["DAGSTER_HOME"] = str(folder / ".dagster")
    return subprocess.run([sys.executable, "-m", *words], cwd=folder, env=environ, capture_output=True, text=True)


@pytest.mark.long
def test_the_project_is_computed_once_below_its_own_folder(project: Path) -> None:
    first = command(project, "marin_assets.cli", "run", "first")
    assert "2 computed, 0 reused, 0 failed" in first.stderr
    [words] = project.glob("outputs/documents/first-*/words.json")
    assert json.loads(words.read_text())["of"] == 3
    assert "0 computed, 2 reused, 0 failed" in command(project, "marin_assets.cli", "run", "first").stderr
    as_a_script = command(project, "my_lab.experiments.first")
    assert "0 computed, 2 reused, 0 failed" in as_a_script.stderr


def test_each_command_has_the_experiments_and_sensors_of_the_project_alone(project: Path) -> None:
    (project / "my_lab/experiments/broken.py").write_text("import nothing_of_this_name\n")
    below = project / "my_lab"
    listed = command(below, "marin_assets.cli", "list", "--names")
    assert listed.stdout.splitlines() == ["raw/first", "documents/first"]
    assert "Experiment 'broken' is left out: ModuleNotFoundError" in listed.stderr
    (project / ".dagster").mkdir(exist_ok=True)
    schedules = command(project, "dagster", "schedule", "list", "-m", "marin_assets.definitions")
    names = [line.split()[1] for line in schedules.stdout.splitlines() if line.startswith("Schedule: ")]
    assert names == ["canary", "first_each_night", "weekly_report"], schedules.stderr


def test_two_files_of_one_name_are_told_and_the_first_is_loaded(project: Path) -> None:
    file = project / "pyproject.toml"
    file.write_text(file.read_text().replace('experiments"]', 'experiments", "marin_assets.experiments"]'))
    (project / "my_lab/experiments/quickstart.py").write_text("def steps():\n    return []\n")
    listed = command(project, "marin_assets.cli", "status", "first", "two_steps")
    assert "my_lab.experiments.quickstart has the same file name. Rename one of the two files." in listed.stderr
    assert "two_steps/data" in listed.stdout


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            '["my_lab.experiments"]',
            '["my_lab.experimets"]',
            "MARIN_EXPERIMENTS is 'my_lab.experimets', expected packages between commas, such as "
            "marin_assets.experiments: there is no package 'my_lab.experimets' for a process that starts in {project}. "
            "It is experiments in '{project}/pyproject.toml'.",
        ),
        (
            '["my_lab.experiments"]',
            '["my_lab.experiments.first"]',
            "'my_lab.experiments.first' is a module, not a package.",
        ),
        ('["my_lab.experiments"]', "7", "has experiments = 7, expected a list of names."),
        ("experiments =", "experiment =", "has the key 'experiment', which is no setting. Did you mean experiments?"),
        ("[tool.marin]  #", "[tool.marin  #", "cannot be read"),
    ],
)
def test_a_mistake_in_the_settings_is_one_sentence(project: Path, old: str, new: str, sentence: str) -> None:
    file = project / "pyproject.toml"
    file.write_text(file.read_text().replace(old, new))
    done = command(project, "marin_assets.cli", "list")
    if new.startswith("[tool.marin "):  # no table, so no project: the experiments are those of the checkout
        assert (done.returncode, "quickstart" in done.stdout) == (0, True)
        return
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert sentence.format(project=project) in done.stderr


def test_a_file_that_only_mentions_the_table_is_no_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("# settings would be in [tool.marin]\n[project]\nname = 'other'\n")
    (tmp_path / "below/pyproject.toml").mkdir(parents=True)
    done = command(tmp_path / "below", "marin_assets.cli", "list", "--names")
    assert (done.returncode, done.stderr, "two_steps/data" in done.stdout) == (0, "", True)


def test_a_table_within_a_text_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nreadme = """\n[tool.marin]\n"""\n')
    done = command(tmp_path, "marin_assets.cli", "list")
    assert (done.returncode, done.stderr) == (
        2,
        f"'{tmp_path}/pyproject.toml' has no table [tool.marin] of settings. Add it, or name another file.\n",
    )


@pytest.mark.parametrize("name", ["9lab", "-x.y", "é"])
def test_a_name_that_no_package_can_have_is_one_sentence(tmp_path: Path, marin: Marin, name: str) -> None:
    code, out, err = marin("init", f"{tmp_path}/{name}")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "expected a name that begins with a letter, such as my_lab" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["json", "Marin-Assets"])
def test_a_name_that_would_hide_a_package_is_one_sentence(tmp_path: Path, marin: Marin, name: str) -> None:
    code, _, err = marin("init", f"{tmp_path}/{name}")
    assert (code, list(tmp_path.iterdir())) == (2, [])
    package = name.lower().replace("-", "_")
    assert err == f"marin init: got {name!r}, and a package {package!r} exists. Choose another name.\n"


def test_a_folder_with_files_is_left_as_it_is(project: Path, marin: Marin) -> None:
    code, _, err = marin("init", str(project))
    assert (code, err) == (2, f"marin init: '{project}' exists, and is no empty folder. Name a new one.\n")
    assert (project / "README.md").read_text().startswith("# my-lab")
