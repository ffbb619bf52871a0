"""The commit in a record is of the repository that holds the step's function, or the experiment's script."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from marin_assets import Step, __version__
from marin_assets.plan.record_facts.facts import describe_node, resolved_config
from marin_assets.step.graph import build_graph
from marin_resources.configuration.settings import project_root
from marin_resources.drift import provenance as module
from marin_resources.drift.provenance import provenance
from marin_resources.storage.output.store import Store

OF_THIS_PROJECT = "marin_resources.configuration.settings:project_root"
SCRIPT = """
from dataclasses import dataclass

@dataclass(frozen=True, kw_only=True)
class Config:
    n: int = 1

def count(config): return {}
"""
NOTHING = {"commit": None, "dirty": None}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """A process asks git once for each repository: forget what other tests have asked."""
    module._git.cache_clear()
    yield
    module._git.cache_clear()


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script in a folder of a repository, committed."""
    path = tmp_path / "theirs/experiments/words.py"
    path.parent.mkdir(parents=True)
    path.write_text(SCRIPT)
    git(tmp_path / "theirs", "init", "-q")
    git(tmp_path / "theirs", "add", ".")
    git(tmp_path / "theirs", "commit", "-q", "-m", "first")
    return path


def commit_of(script: Path) -> str:
    return git(script.parent, "rev-parse", "HEAD")


def test_the_commit_is_of_the_functions_repository_and_the_projects_own_is_beside_it(script: Path) -> None:
    found = provenance(f"{script}:count")
    assert found["git"] == {"commit": commit_of(script), "dirty": False}
    assert found["project"]["version"] == __version__
    assert found["project"]["commit"] == git(project_root(), "rev-parse", "HEAD") != found["git"]["commit"]


@pytest.mark.parametrize("name", ["words.py", "not_added.txt"])
def test_an_edit_and_a_new_file_are_dirty(script: Path, name: str) -> None:
    (script.parent / name).write_text("def count(config): return 1\n")
    assert provenance(f"{script}:count")["git"] == {"commit": commit_of(script), "dirty": True}


def test_the_cache_of_an_import_is_not_dirty(script: Path) -> None:
    (script.parent / "__pycache__").mkdir()
    (script.parent / "__pycache__/words.cpython-311.pyc").write_bytes(b"code")
    assert provenance(f"{script}:count")["git"]["dirty"] is False


def test_a_stage_of_this_project_has_the_commit_of_the_script_that_was_started(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(script), raising=False)
    assert provenance(OF_THIS_PROJECT)["git"]["commit"] == commit_of(script)
    assert provenance("packaging.version:parse")["git"]["commit"] == commit_of(script)
    assert provenance()["git"]["commit"] == commit_of(script)


def test_without_a_script_in_a_repository_a_stage_has_the_projects_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = git(project_root(), "rev-parse", "HEAD")
    assert provenance(OF_THIS_PROJECT)["git"]["commit"] == own
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "words.py"), raising=False)
    assert provenance(OF_THIS_PROJECT)["git"]["commit"] == own


def test_a_function_outside_of_repositories_has_no_commit(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text("def count(config): return {}\n")
    assert provenance(f"{tmp_path}/words.py:count")["git"] == NOTHING


def test_a_repository_without_a_commit_and_one_that_is_damaged_have_none(tmp_path: Path) -> None:
    for name in ("new", "damaged"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "words.py").write_text("")
    git(tmp_path / "new", "init", "-q")
    (tmp_path / "damaged/.git").write_text("gitdir: /nowhere\n")
    assert provenance(f"{tmp_path}/new/words.py:count")["git"] == {"commit": None, "dirty": True}
    assert provenance(f"{tmp_path}/damaged/words.py:count")["git"] == NOTHING


def test_without_git_there_is_no_commit(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    found = provenance(f"{script}:count")
    assert (found["git"], found["project"]) == (NOTHING, {"version": __version__, **NOTHING})


def test_a_run_inside_a_hook_of_git_reads_the_right_repository(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(project_root() / ".git"))
    found = provenance(f"{script}:count")["git"]["commit"]
    monkeypatch.delenv("GIT_DIR")
    assert found == commit_of(script)


def test_git_is_asked_once_for_each_repository(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which("git")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text(f'#!/bin/sh\necho "$2" >> {tmp_path}/asked\nexec {real} "$@"\n')
    (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    (script.parents[1] / "other.py").write_text("")
    for _ in range(3):
        provenance(f"{script}:count")
        provenance(f"{script.parents[1]}/other.py:count")
        provenance(OF_THIS_PROJECT)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert sorted(asked) == sorted([str(script.parents[1]), str(project_root())])


def test_the_record_of_a_step_holds_the_commit_of_its_function(
    script: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(script.parent))
    words = import_module("words")
    step = Step(name="words", fn=words.count, config=words.Config())
    graph, store = build_graph([step]), Store(str(prefix))
    [node] = graph
    facts = describe_node(node, store, resolved_config(node, graph, store), {}, None)
    sys.modules.pop("words")
    assert facts["git"] == {"commit": commit_of(script), "dirty": False}
    assert facts["project"]["version"] == __version__
