"""Train in a process of its own, which records the sequences of each step: one line `step: [[row, token], …]` a step.

python recorded_training.py <config as JSON> <folder of the records>     the result is the last line

With KILL_AT_STEP, the process kills itself with SIGKILL when that step's data are there and a checkpoint is complete.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def main() -> None:
    import numpy as np
    from levanter.trainer import Trainer
    from running import wait_until

    from marin_assets.stages.train.checkpoints import last_checkpoint_step
    from marin_assets.stages.train.train_lm import train_lm
    from marin_resources.step_api.hosts import host_index
    from marin_resources.wire.config_json import decode

    config, folder = decode(json.loads(sys.argv[1])), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    train_step: Any = Trainer.train_step
    with (folder / f"host-{host_index()}-{os.getpid()}.jsonl").open("w", buffering=1) as file:

        def record(self: Any, state: Any, example: Any) -> Any:
            step = int(state.step)
            rows = []
            for shard in example.tokens.array.addressable_shards:
                tokens = np.asarray(shard.data)
                assert (tokens == tokens[:, :1]).all(), "a sequence is not whole"
                first = shard.index[0].start or 0
                rows += [[first + row, int(token)] for row, token in enumerate(tokens[:, 0])]
            file.write(json.dumps({"step": step, "rows": rows}) + "\n")
            if step == int(os.environ.get("KILL_AT_STEP", "-1")):
                is_saved = lambda: last_checkpoint_step(f"{config.output_path}/checkpoints") is not None  # noqa: E731
                wait_until(is_saved, "a checkpoint", 120)
                os.kill(os.getpid(), signal.SIGKILL)
            return train_step(self, state, example)

        Trainer.train_step = record  # type: ignore[method-assign]
        print("RESULT", json.dumps(train_lm(config)), flush=True)


def start_recorded(config: str, folder: Path, **environ: str) -> subprocess.Popen[str]:
    """Start one host."""
    return subprocess.Popen(
        [sys.executable, __file__, config, str(folder)],
        env={**os.environ, "JAX_PLATFORMS": "cpu", **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def start_two_hosts(config: str, folder: Path, **environ: str) -> list[subprocess.Popen[str]]:
    """Start two hosts of one training."""
    from marin_resources.step_api.hosts import COORDINATOR, COUNT, INDEX

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    return [
        start_recorded(config, folder, **{INDEX: str(index), COUNT: "2", COORDINATOR: address}, **environ)
        for index in (0, 1)
    ]


def results(processes: Sequence[subprocess.Popen[str]]) -> list[Any]:
    """What the hosts of one training returned, when all have ended well."""
    outputs = [process.communicate(timeout=1200)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), outputs
    return [json.loads(text.rpartition("RESULT ")[2].splitlines()[0]) for text in outputs]


def sequences_by_step(folder: Path) -> dict[int, list[int]]:
    """The tokens of the sequences of each step, in the order of the batch. What was recorded twice must be equal."""
    found: dict[int, dict[int, int]] = {}
    for path in sorted(folder.iterdir()):
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            rows = found.setdefault(entry["step"], {})
            for row, token in entry["rows"]:
                assert rows.setdefault(row, token) == token, f"step {entry['step']} has other data in {path.name}"
    return {step: [rows[row] for row in sorted(rows)] for step, rows in sorted(found.items())}


if __name__ == "__main__":
    main()
