from __future__ import annotations

import itertools
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from marin_resources.configuration.settings import checkout, project_root
from marin_resources.ray_tpu.environment import extras as of_extras
from marin_resources.ray_tpu.environment.extras import (
    CONFLICTS,
    MissingRequirementError,
    check_environment,
    install_command,
    missing_in_environment,
    packages_of,
)
from marin_resources.ray_tpu.requirements import Requirements, describe_missing

UV = f"{Path(sys.executable).parent.relative_to(project_root())}/uv"


def sentences(*required: tuple[str, ...]) -> list[str]:
    """What steps "raw/0", "raw/1", … with these extras lack."""
    steps = [Requirements(step=f"raw/{n}", extras=extras) for n, extras in enumerate(required)]
    return describe_missing(missing_in_environment(steps))


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root())
    monkeypatch.setenv("PATH", "/nowhere")  # so that uv is that of this environment


@pytest.fixture
def uninstalled(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The packages that count as not installed."""
    names: set[str] = set()
    there = of_extras._installed
    monkeypatch.setattr(of_extras, "_installed", lambda name: name not in names and there(name))
    packages_of.cache_clear()  # what an extra stands for depends on what is installed
    yield names
    packages_of.cache_clear()


def test_a_step_that_asks_for_nothing_or_for_what_is_there_has_all_it_needs() -> None:
    assert sentences((), ("curate",), ("train", "evaluate")) == []


def test_an_unknown_extra_is_named_with_those_there_are() -> None:
    [sentence] = sentences(("trian",))
    assert sentence.startswith("Step 'raw/0' requests the extra 'trian', which marin-dagster does not have.")
    assert "Expected some of curate, deploy, evaluate" in sentence


def test_one_command_brings_what_all_steps_lack(uninstalled: set[str]) -> None:
    uninstalled.update({"jax", "lm-eval"})
    assert sentences(("train",), ("curate", "train"), ("evaluate",)) == [
        f"Steps 'raw/0' and 'raw/1' need jax, which is not installed. Run: {UV} sync --inexact --extra train "
        "--extra evaluate",
        f"Step 'raw/2' needs lm-eval, which is not installed. Run: {UV} sync --inexact --extra train --extra evaluate",
    ]


def test_an_extra_that_would_break_the_others_gets_an_environment_of_its_own(uninstalled: set[str]) -> None:
    [sentence] = sentences(("vllm",))
    assert "needs vllm, which is not installed. It cannot be installed beside curate, evaluate, train." in sentence
    assert sentence.endswith(f"UV_PROJECT_ENVIRONMENT=.venv-vllm {UV} sync --extra vllm")
    uninstalled.add("jax")
    of_train, of_vllm = sentences(("train",), ("vllm",))
    assert of_train.endswith(f"Run: {UV} sync --inexact --extra train")
    assert ".venv-vllm" in of_vllm


def test_extras_that_no_environment_can_have_are_refused() -> None:
    [sentence] = sentences(("train", "vllm"))
    assert "requests the extras train and vllm, which cannot be installed in one environment. Split it" in sentence


def test_the_conflicts_are_those_of_pyproject() -> None:
    lines = tomllib.loads((project_root() / "pyproject.toml").read_text())["tool"]["uv"]["conflicts"]
    pairs = (itertools.combinations([item["extra"] for item in line], 2) for line in lines)
    assert frozenset(frozenset(pair) for line in pairs for pair in line) == CONFLICTS


def test_jax_without_cuda_is_not_the_extra_gpu() -> None:
    assert "jax-cuda12-plugin" in packages_of("gpu")
    assert "jax-cuda12-plugin" in sentences(("gpu",))[0]


def test_the_command_names_another_folder_and_another_environment_than_the_checkouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "prefix", "/opt/my env")
    command = install_command(["train"])
    assert command.startswith("UV_PROJECT_ENVIRONMENT='/opt/my env' ")
    assert command.endswith(f"uv sync --project {checkout()} --inexact --extra train")


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    required = Requirements(step="raw/a", env=("A_TOKEN",))
    monkeypatch.setenv("A_TOKEN", "secret")
    check_environment(required)
    monkeypatch.delenv("A_TOKEN")
    with pytest.raises(MissingRequirementError, match="'raw/a' requires the variable 'A_TOKEN', which is not set"):
        check_environment(required)
