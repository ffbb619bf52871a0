"""The full quickstart after installation: seconds and peak memory of the first run, seconds of the second.

Limits on two cores: 200 s and 4 GB for the first, 12 s and no step computed for the second. Memory is the sum over all
processes of their proportional set size (PSS), sampled once a second: shared pages are counted once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

COMMAND = [sys.executable, "-m", "marin_assets.experiments.quickstart"]
FIRST_LIMIT_S, SECOND_LIMIT_S, MEMORY_LIMIT_BYTES = 200, 12, 4e9


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "dagster").mkdir()
        env = {**os.environ, "MARIN_PREFIX": f"{folder}/prefix", "DAGSTER_HOME": f"{folder}/dagster"}
        first_s, peak, _ = run(env)
        second_s, _, output = run(env)
    computed = "0 computed, 22 reused" in output
    print(f"first run   {first_s:6.1f} s   ratio to its limit {first_s / FIRST_LIMIT_S:.2f}")
    print(f"peak memory {peak / 1e9:6.2f} GB  ratio to its limit {peak / MEMORY_LIMIT_BYTES:.2f}")
    print(f"second run  {second_s:6.1f} s   ratio {second_s / SECOND_LIMIT_S:.2f}   no step computed: {computed}")
    good = first_s <= FIRST_LIMIT_S and second_s <= SECOND_LIMIT_S and peak <= MEMORY_LIMIT_BYTES and computed
    return 0 if good else 1


def run(env: dict[str, str]) -> tuple[float, int, str]:
    """Seconds, peak bytes and what was printed."""
    began, peak = time.monotonic(), 0
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(COMMAND, env=env, stdout=out, stderr=subprocess.STDOUT)
        while process.poll() is None:
            peak = max(peak, memory(process.pid))
            time.sleep(1)
        seconds = time.monotonic() - began
        out.seek(0)
        output = out.read()
    if process.returncode != 0:
        raise SystemExit(output)
    return seconds, peak, output


def memory(pid: int) -> int:
    """PSS of a process and all below it, in bytes."""
    total = 0
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for process in family:
        try:
            total += process.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it ended between the listing and the look
    return total


if __name__ == "__main__":
    raise SystemExit(main())
