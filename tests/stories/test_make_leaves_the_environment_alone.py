"""`make` installs what has changed, and nothing under the services of a rehearsal: on a project of no packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import ROOT

UV = ROOT / ".tools/bin/uv"
PROJECT = """
[project]
name = "tiny"
version = "1"
requires-python = ">=3.11,<3.13"
optional-dependencies = {curate = [], language = [], train = [], evaluate = []}

[dependency-groups]
rehearsal = []
"""
SHIM = """#!/bin/sh
exec "{python}" "$@"
"""
DEPLOYMENT = "import sys; print('asked for', sys.argv[1:])"

pytestmark = pytest.mark.skipif(not UV.exists(), reason="`make init` has not installed uv.")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout whose Pythons on PATH are shims, as pyenv has them."""
    project = tmp_path / "a checkout"
    (project / ".tools/bin").mkdir(parents=True)
    (project / ".tools/bin/uv").symlink_to(UV)
    shutil.copy(ROOT / "Makefile", project)
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "deploy/local").mkdir(parents=True)
    (project / "deploy/local/local_deployment.py").write_text(DEPLOYMENT)
    subprocess.run(
        [UV, "lock", "--quiet", "--python", sys.executable], cwd=project, check=True, env=environment(project)
    )
    shims = project / "shims"
    shims.mkdir()
    for name in ("python3.11", "python3.12", "python3"):
        (shims / name).write_text(SHIM.format(python=sys.executable))
        (shims / name).chmod(0o755)
    return project


def environment(project: Path) -> dict[str, str]:
    ours = ("VIRTUAL_ENV", "PYTHON", "MAKEFLAGS", "MAKELEVEL", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return {**kept, "PATH": f"{project / 'shims'}:/usr/bin:/bin", "UV_OFFLINE": "1"}


def make(project: Path, *words: str) -> str:
    command, env = ["make", *words], environment(project)
    ended = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, check=True)
    return ended.stdout + ended.stderr


def change(project: Path) -> None:
    """As another commit that is checked out."""
    after_ns = (
        project / ".venv/.synced"
    ).stat().st_mtime_ns + 10_000_000  # more than a tick of the file system's clock
    os.utime(project / "uv.lock", ns=(after_ns, after_ns))


def test_another_sync_keeps_the_environment_though_python_is_a_shim(project: Path) -> None:
    assert "Creating virtual environment" in make(project, "init")
    of_somebody = project / ".venv/of-somebody"
    of_somebody.touch()
    for words in (["init"], ["rehearsal"], ["init", f"PYTHON={project}/shims/python3.11"]):
        change(project)
        said = make(project, *words)
        assert "sync" in said
        assert "virtual environment" not in said
    assert of_somebody.exists()


def test_to_end_a_rehearsal_nothing_is_installed(project: Path) -> None:
    make(project, "rehearsal")
    change(project)
    said = make(project, "deploy-local-down")
    assert said.strip() == "asked for ['down']"
    assert "--group rehearsal" in make(project, "init"), "or init removes what the services run on"


@pytest.mark.parametrize("python", ["python2.7-of-nobody", "/bin/false"])
def test_a_python_that_is_none_is_one_sentence(project: Path, python: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        make(project, "init", f"PYTHON={python}")
    assert f"Python 3.11 or 3.12 is required, and PYTHON={python} cannot be run." in failed.value.stderr
