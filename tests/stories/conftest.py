"""One tiny quickstart, and one of full size, made once for all the stories that look at them."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster_homes import new_home
from quickstart_runs import FullRun, run_full
from running import run_steps

from marin_assets import Step
from marin_assets.experiments.quickstart import steps


@dataclass(frozen=True)
class Finished:
    steps: list[Step]
    prefix: Path
    instance: dg.DagsterInstance
    result: Any

    def again(self) -> Any:
        return self.rerun(self.steps)

    def rerun(self, steps: list[Step]) -> Any:
        before = os.environ.get("MARIN_PREFIX")
        os.environ["MARIN_PREFIX"] = str(self.prefix)
        try:
            return run_steps(steps, self.instance)
        finally:
            os.environ.pop("MARIN_PREFIX") if before is None else os.environ.update(MARIN_PREFIX=before)

    def output(self, name: str) -> Path:
        [path] = self.prefix.glob(f"{name}-??????")
        return path


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """A file that steps wait at while it exists."""
    gate = tmp_path / "gate"
    gate.touch()
    yield gate
    gate.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def full_quickstart(tmp_path_factory: pytest.TempPathFactory) -> FullRun:
    """At its full size, once for all that look at it."""
    root = tmp_path_factory.mktemp("full")
    home, prefix = new_home(root / "dagster"), root / "prefix"
    env = {**os.environ, "DAGSTER_HOME": str(home), "MARIN_PREFIX": str(prefix)}
    return FullRun(prefix, env, *run_full(env))


@pytest.fixture(scope="session")
def tiny_quickstart(tmp_path_factory: pytest.TempPathFactory, shared_ray: None) -> Iterator[Finished]:
    root = tmp_path_factory.mktemp("quickstart")
    (root / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(str(root / "dagster"), overrides={"telemetry": {"enabled": False}}) as instance:
        finished = Finished(steps("tiny"), root / "prefix", instance, None)
        yield Finished(finished.steps, finished.prefix, instance, finished.again())
