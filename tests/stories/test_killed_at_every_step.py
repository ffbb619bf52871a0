"""`kill -9` of the whole quickstart at each of its steps in turn: it ends as if nothing had happened."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from running import start_script, wait_until

from marin_resources.storage.files import list_files

SCRIPT = "from marin_assets import executor_main\nfrom marin_assets.experiments.quickstart import steps\n"
VOLATILE = ("metrics.jsonl", "loss.png", "curves.png", "report.html", "eval_metrics.jsonl")
"""Files that hold times or rates."""


def data_files(prefix: Path, step_path: Path) -> dict[str, bytes]:
    files = (Path(name) for name in list_files(str(step_path)))
    return {
        str(file.relative_to(prefix)): file.read_bytes()
        for file in files
        if file.name not in VOLATILE and "checkpoints" not in file.relative_to(step_path).parts
    }


@pytest.mark.long
@pytest.mark.timeout(5400)  # 23 starts of the quickstart, each of which waits no longer than its own limit
def test_the_outcome_is_the_same(tiny_quickstart, tmp_path: Path, dagster_home: Path) -> None:
    prefix = tmp_path / "prefix"
    script = tmp_path / "killed.py"
    script.write_text(SCRIPT + 'executor_main(steps("tiny"))\n')
    env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(dagster_home)}
    for step in tiny_quickstart.steps:
        run = start_script(script, env=env)
        begun = wait_until(
            lambda name=step.name: list(prefix.glob(f"{name}-*/.marin/attempts/1.json")), step.name, timeout_s=600
        )
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        assert begun
    last = start_script(script, env=env)
    output, _ = last.communicate(timeout=1800)
    assert last.returncode == 0, output
    for step in tiny_quickstart.steps:
        [killed] = prefix.glob(f"{step.name}-??????")
        undisturbed = tiny_quickstart.output(step.name)
        assert data_files(prefix, killed) == data_files(tiny_quickstart.prefix, undisturbed), step.name


@pytest.mark.long
def test_training_goes_on_from_its_last_checkpoint(tiny_quickstart, tmp_path: Path, dagster_home: Path) -> None:
    prefix = tmp_path / "prefix"
    shutil.copytree(tiny_quickstart.prefix, prefix)
    [trained] = prefix.glob("checkpoints/quickstart-tiny-??????")
    for name in ("checkpoints", "evaluation", "generated", "report"):
        shutil.rmtree(prefix / name)
    script = tmp_path / "killed.py"
    script.write_text(SCRIPT + 'executor_main(steps("tiny"), max_concurrent=1)\n')
    env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(dagster_home)}
    run = start_script(script, env=env)
    wait_until(lambda: list(trained.glob("checkpoints/step-4/metadata.json")), "a checkpoint", timeout_s=300)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    output, _ = start_script(script, env=env).communicate(timeout=1200)
    assert "4 computed, 18 reused, 0 failed" in output
    assert json.loads((trained / ".executor_info").read_text())["result"]["resumed_from_step"] >= 4
    undisturbed = tiny_quickstart.output("checkpoints/quickstart-tiny")
    assert (trained / "hf/model.safetensors").read_bytes() == (undisturbed / "hf/model.safetensors").read_bytes()
