"""The wheel in an environment of its own, in folders that know nothing of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import uv
from running import ROOT

EXTRAS = "curate,train,evaluate"
SCRIPT = """
from dataclasses import dataclass
from marin_assets import Step, THIS_OUTPUT_PATH, executor_main

@dataclass(frozen=True)
class Config:
    output_path: str = THIS_OUTPUT_PATH

def make(config):
    open(f"{config.output_path}/a.txt", "w").close()

if __name__ == "__main__":
    executor_main([Step(name="raw/a", fn=make, config=Config(), extras=EXTRAS)])
"""
FOREIGN = """
[project]
name = "somebodys-project"
version = "1"
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([uv.find_uv_bin(), "build", "--quiet", "--wheel", "--out-dir", folder, ROOT], check=True)
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel, without extras."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([uv.find_uv_bin(), "pip", "install", "--quiet", "--python", python, wheel], check=True)
    return python


@pytest.fixture
def run(python: Path, tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """Run that Python in a folder with a foreign project; return exit code, stdout and stderr."""
    (tmp_path / "pyproject.toml").write_text(FOREIGN)
    own = {"MARIN_PREFIX", "DAGSTER_HOME", "PYTHONPATH", "VIRTUAL_ENV"}

    def run_there(*arguments: str, extras: tuple[str, ...] = ()) -> tuple[int, str, str]:
        (tmp_path / "my_experiment.py").write_text(SCRIPT.replace("EXTRAS", repr(extras)))
        environ = {name: value for name, value in os.environ.items() if name not in own}
        ended = subprocess.run(
            [python, *arguments], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=800
        )
        return ended.returncode, ended.stdout, ended.stderr

    return run_there


@pytest.mark.long
def test_a_script_runs_there_with_the_settings_of_a_laptop(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    code, _, err = run("my_experiment.py")
    assert code == 0, err
    assert "1 computed, 0 reused, 0 failed" in err
    [output] = tmp_path.glob("outputs/raw/a-*")
    assert (output / ".executor_status").read_text() == "SUCCESS"
    settings = (ROOT / ".dagster" / "dagster.yaml").read_text()
    assert (tmp_path / ".dagster" / "dagster.yaml").read_text() == settings
    code, _, err = run("my_experiment.py")
    assert (code, "0 computed, 1 reused, 0 failed" in err) == (0, True)


@pytest.mark.long
def test_extras_are_those_of_the_wheel_and_pip_brings_them(
    run: Callable[..., tuple[int, str, str]], python: Path, wheel: Path
) -> None:
    code, out, _ = run("my_experiment.py", "--dry-run", extras=("train",))
    assert code == 1
    assert "marin-levanter" in out
    assert f"which are not installed. Run: {python} -m pip install 'marin-dagster[train]'" in out
    _, out, _ = run("my_experiment.py", "--dry-run", extras=("trian",))
    assert "requests the extra 'trian', which marin-dagster does not have. Expected some of curate, deploy, " in out


@pytest.mark.long
def test_the_commands_are_there(run: Callable[..., tuple[int, str, str]]) -> None:
    assert run("-m", "marin_assets.cli", "--version")[:2] == (0, "marin 0.1.0\n")
    code, out, err = run("-m", "marin_assets.cli", "materialize", "--dry-run", "+two_steps/stats")
    assert (code, out.endswith("2 to run\n")) == (0, True), err
    code, out, err = run(
        "-c", "from marin_assets.cli.verbs.dev import workspace; print(workspace().read_text(), end='')"
    )
    assert (code, out) == (0, (ROOT / "workspace.yaml").read_text()), err


@pytest.mark.long
def test_a_project_of_ones_own_is_made_and_computed_there(
    run: Callable[..., tuple[int, str, str]], python: Path, tmp_path: Path
) -> None:
    assert run("-m", "marin_assets.cli", "init", "my_lab/work")[0] == 0
    words = [python, "-m", "marin_assets.cli", "run", "first"]
    own = {"MARIN_PREFIX", "DAGSTER_HOME", "PYTHONPATH", "VIRTUAL_ENV"}
    environ = {name: value for name, value in os.environ.items() if name not in own}
    ended = subprocess.run(words, cwd=tmp_path / "my_lab/work", env=environ, capture_output=True, text=True)
    assert "2 computed, 0 reused, 0 failed" in ended.stderr
    assert list(tmp_path.glob("my_lab/work/outputs/documents/first-*/words.json"))


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_pip_finds_versions_for_all_extras_that_fit_together(python: Path, wheel: Path) -> None:
    command = [python, "-m", "pip", "install", "--quiet", "--dry-run", f"{wheel}[{EXTRAS}]"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
