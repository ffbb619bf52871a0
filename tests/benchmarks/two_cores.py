"""Each curation stage on one core and on two: how many times as fast.

    python tests/benchmarks/two_cores.py [stage ...]

Limit: 1.7. The documents are this Python's own sources, cut and numbered, some 240 MB in 16 shards. Every stage runs as
it does in a run, its shards as Ray tasks, on a Ray of one core and on one of two that have loaded what the stage needs;
the rounds alternate. Training a classifier is left out: to be reproducible to the byte it has one thread.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "sides"))

from curation import prepare, run, stages

LIMIT, ROUNDS, MEGABYTES = 1.7, 3, 240


def main(names: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder, MEGABYTES)
        prepare(f"{folder}/small", MEGABYTES / 200)
        names = names or list(stages(folder))
        seconds: dict[str, dict[int, list[float]]] = {name: {1: [], 2: []} for name in names}
        for _ in range(ROUNDS):
            for cores in (1, 2):
                for name, taken in measure(folder, cores, names).items():
                    seconds[name][cores].append(taken)
    missed = 0
    for name, taken in seconds.items():
        one, two = (statistics.median(taken[cores]) for cores in (1, 2))
        missed += one / two < LIMIT
        print(f"{name:22} {one:6.2f} s on one core, {two:6.2f} s on two: ratio {one / two:.2f} (limit {LIMIT})")
    return 1 if missed else 0


def measure(folder: str, cores: int, names: list[str]) -> dict[str, float]:
    """Seconds of each stage on a Ray of so many cores, in a process of its own."""
    command = [sys.executable, __file__, "--side", folder, str(cores), *names]
    env = {**os.environ, "RAY_AUTH_MODE": "disabled", "TOKENIZERS_PARALLELISM": "false"}
    out = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if out.returncode:
        raise SystemExit(out.stderr)
    return json.loads(out.stdout.splitlines()[-1])


def side(folder: str, cores: int, names: list[str]) -> int:
    import ray

    ray.init(num_cpus=cores, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    seconds = {}
    for name in names:
        run(f"{folder}/small", name, f"{folder}/out")  # workers start and import
        shutil.rmtree(f"{folder}/out")
        seconds[name] = run(folder, name, f"{folder}/out")
        shutil.rmtree(f"{folder}/out")
    print(json.dumps(seconds))
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--side"]:
        raise SystemExit(side(sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
    raise SystemExit(main(sys.argv[1:]))
