"""`marin diff`: experiments, their records, and commits of git."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from location import Location
from one_sentence import one_sentence

import marin_assets.experiments
from marin_assets.assets.runs.experiment_record import write_experiment
from marin_assets.step.graph import build_graph

Marin = Callable[..., tuple[int, str, str]]


@pytest.fixture
def commits(location: Location) -> list[str]:
    """Two commits of the folder with the experiment; the first has another value of a step, and is not the checkout."""
    [folder] = map(Path, marin_assets.experiments.__path__)
    file = folder / f"{location.name}.py"
    text = file.read_text()
    found = []
    git(folder, "init", "-q")
    for content in (text.replace('toy("data")', 'toy("data", value=7)'), text):
        file.write_text(content)
        git(folder, "add", ".")
        git(folder, "-c", "user.name=x", "-c", "user.email=x@x.org", "commit", "-qm", "x")
        found.append(git(folder, "rev-parse", "HEAD"))
    return found


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("disk_or_gcs_prefix", ["disk"], indirect=True)
def test_a_commit_is_compared_with_the_experiment_of_the_code_and_the_checkout_is_not_touched(
    location: Location, commits: list[str], marin: Marin
) -> None:
    [folder] = map(Path, marin_assets.experiments.__path__)
    code, out, _ = marin("diff", "git:HEAD~1", location.name, "--json")
    found = json.loads(out)
    assert code == 0
    assert [each["name"] for each in found["changed"]] == ["toy/data"]
    assert found["changed"][0]["fields"] == [{"field": "value", "was": 7, "now": 1}]
    assert [each["name"] for each in found["because_of_inputs"]] == ["toy/tokens", "toy/model"]
    assert found["same"] == ["toy/database"]
    assert found["not_computed"] == {"a": ["toy/model"], "b": ["toy/model"]}
    assert git(folder, "status", "--porcelain") == ""
    code, out, _ = marin("diff", commits[0][:12], commits[1], "--experiment", location.name)
    assert "    value: 7 -> 1" in out.splitlines()
    code, _, err = marin("diff", "HEAD", "HEAD~1", "--experiment", "other")
    assert (code, "has no experiment 'other'" in one_sentence(ValueError(err.strip()))) == (2, True)


@pytest.mark.parametrize("disk_or_gcs_prefix", ["disk"], indirect=True)
def test_an_experiment_that_was_in_a_folder_is_compared_by_its_name(
    location: Location, commits: list[str], marin: Marin
) -> None:
    [folder] = map(Path, marin_assets.experiments.__path__)
    (folder / "apart").mkdir()
    (folder / "apart/__init__.py").touch()
    git(folder, "mv", f"{location.name}.py", f"apart/{location.name}.py")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=x", "-c", "user.email=x@x.org", "commit", "-qm", "x")
    code, out, _ = marin("diff", commits[0], "HEAD", "--experiment", location.name)
    assert (code, "    value: 7 -> 1" in out.splitlines()) == (0, True)


def test_an_experiment_is_compared_with_its_record_below_the_prefix(location: Location, marin: Marin) -> None:
    path = write_experiment(location.name, location.graph, location.store, None)
    older = [node.step for node in location.graph if node.name == "toy/database"]
    other = write_experiment("other", build_graph(older), location.store, None)
    for text in (path, Path(path).stem, Path(path).name):
        code, out, _ = marin("diff", text, location.name)
        assert code == 0
        assert "A and B are the same 4 steps" in out
    code, out, _ = marin("diff", other, location.name)
    assert "only in B: toy/data, toy/tokens, toy/model" in out
    assert "1 step the same" in out


@pytest.mark.parametrize("disk_or_gcs_prefix", ["disk"], indirect=True)
@pytest.mark.parametrize("text", ["nonsense", "run:99999999", "git:nonsense", "other-123456", "99999999"])
def test_what_names_nothing_is_one_sentence(location: Location, dagster_home: Path, marin: Marin, text: str) -> None:
    code, out, err = marin("diff", text, location.name)
    assert (code, out) == (2, "")
    assert f"got {text!r}, expected an experiment ({location.name})" in one_sentence(ValueError(err.strip()))
