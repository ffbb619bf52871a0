"""Seconds from the command to the first step of a training: `marin run` and Dagster against Levanter by hand.

    JAX_PLATFORMS=cpu python tests/benchmarks/first_step.py

All are whole commands, in processes of their own, on one cache, one seed and one compilation cache of JAX, which is
warm on all sides. By hand: Python, Levanter's train_lm. Ours besides: the code location, a run, a lease, a local Ray,
a worker, an evaluation of the untrained model. Rounds alternate and swap their order; what counts is the difference of
the quickest of each side: what else runs on the machine can only add. Exits 1 above the limit.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from train_step import make_inputs

from marin_assets.stages.train.config import TrainLmConfig
from marin_resources.wire.config_json import encode

LIMIT_S = 5.0
ROUNDS = 3
STEPS = 40
FIRST_STEP = "First train step completed"
"""Levanter's log, when the first step's result is there."""
SIDES = Path(__file__).parent / "sides"
ROOT = Path(__file__).parents[2]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        config = dataclasses.replace(make_inputs(folder), num_train_steps=STEPS)
        sides: dict[str, Callable[[TrainLmConfig, str, str], float]] = {
            "by hand": by_hand,
            "marin run": marin_run,
            "dagster asset materialize": materialize,
        }
        for name, side in sides.items():
            side(config, folder, f"warm-up-{name.replace(' ', '-')}")
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(ROUNDS):
            for name in sides if number % 2 == 0 else reversed(sides):
                seconds[name].append(sides[name](config, folder, f"round-{number}"))
    for name, of in seconds.items():
        print(f"{name:26}{min(of):8.2f} s    rounds {' '.join(f'{one:.2f}' for one in of)}")
    by_hand_s = min(seconds.pop("by hand"))
    over = {name: min(of) - by_hand_s for name, of in seconds.items()}
    for name, more in over.items():
        print(
            f"{name}: {more:.2f} s over Levanter by hand; limit {LIMIT_S:g} s: {'ok' if more <= LIMIT_S else 'ABOVE'}"
        )
    return 0 if max(over.values()) <= LIMIT_S else 1


def by_hand(config: TrainLmConfig, folder: str, name: str) -> float:
    """Seconds from the start of the process to its first step."""
    own = dataclasses.replace(config, output_path=f"{folder}/by-hand/{name}")
    path, log = Path(folder, f"by-hand-{name}.json"), Path(folder, f"by-hand-{name}.log")
    path.write_text(json.dumps(encode(own)))
    log.touch()
    command = [sys.executable, str(SIDES / "first_step_by_hand.py"), str(path), str(log)]
    return until(lambda: FIRST_STEP in log.read_text(), command, {})


def marin_run(config: TrainLmConfig, folder: str, name: str) -> float:
    """Seconds from the start of `marin run` to its first step."""
    return ours(["-m", "marin_assets.cli", "run", str(SIDES / "first_step_script.py")], config, folder, f"run-{name}")


def materialize(config: TrainLmConfig, folder: str, name: str) -> float:
    """Seconds from the start of `dagster asset materialize` to its first step."""
    command = ["-m", "dagster", "asset", "materialize", "-m", "first_step_ours", "--select", "*"]
    return ours(command, config, folder, f"materialize-{name}")


def ours(command: list[str], config: TrainLmConfig, folder: str, name: str) -> float:
    home, prefix = Path(folder, "dagster"), Path(folder, "outputs", name)
    home.mkdir(exist_ok=True)
    shutil.copy(ROOT / ".dagster/dagster.yaml", home)
    path = Path(folder, f"ours-{name}.json")
    path.write_text(json.dumps(encode(config)))
    environment = {
        "MARIN_PREFIX": str(prefix),
        "DAGSTER_HOME": str(home),
        "FIRST_STEP_CONFIG": str(path),
        "FIRST_STEP_NAME": name,
    }

    def is_there() -> bool:
        return any(FIRST_STEP in found.read_text() for found in prefix.glob("checkpoints/*/.marin/attempts/1.log"))

    return until(is_there, [sys.executable, *command], environment)


def until(is_there: Callable[[], bool], command: list[str], environment: dict[str, str]) -> float:
    """Seconds until it is there. The command is waited for, so that the next one has the machine."""
    python_path = os.pathsep.join(map(str, (SIDES, SIDES.parent, ROOT)))
    began = time.monotonic()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": python_path, **environment}, stdout=log, stderr=log
        )
        while not is_there():
            if process.poll() is not None:
                log.seek(0)
                raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {log.read()[-3000:]!r}")
            time.sleep(0.01)
        seconds = time.monotonic() - began
        process.wait()
    return seconds


if __name__ == "__main__":
    sys.exit(main())
