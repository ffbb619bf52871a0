"""Peak memory of each curation stage on some documents, and on ten times as many in as many shards.

    python tests/benchmarks/flat_memory.py [stage ...]

Limit: 1.2 times the peak. Each stage runs in a process of its own, its shards one after the other in it; the peak is
the process's high-water mark (VmHWM). The documents are 12 and 120 MB of this Python's own sources, cut and numbered;
360 and 720 MB for a stage whose memory is that of a range of hashes, which less does not fill.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "sides"))

from curation import prepare, prepare_documents, run, stages

LIMIT, SMALL_MB, LARGE_MB = 1.2, 12, 120
BY_RANGES, FULL_MB = ("repeated_passages",), (360, 720)


def main(names: list[str]) -> int:
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        for size in (SMALL_MB, LARGE_MB):
            prepare(f"{folder}/{size}", size)
        names = names or list(stages(folder))
        for size in FULL_MB if set(names) & set(BY_RANGES) else ():
            prepare_documents(f"{folder}/{size}", size)
        for name in names:
            sizes = FULL_MB if name in BY_RANGES else (SMALL_MB, LARGE_MB)
            small, large = (peak_mb(f"{folder}/{size}", name) for size in sizes)
            missed += large / small > LIMIT
            print(f"{name:22} {small:6.1f} MB, {large:6.1f} MB: ratio {large / small:.2f} (limit {LIMIT})")
    return 1 if missed else 0


def peak_mb(folder: str, name: str) -> float:
    command = [sys.executable, __file__, "--side", folder, name]
    out = subprocess.run(command, capture_output=True, text=True, check=False)
    if out.returncode:
        raise SystemExit(out.stderr)
    return float(out.stdout.splitlines()[-1])


def side(folder: str, name: str) -> int:
    run(folder, name, f"{folder}/out-{name}")
    [kilobytes] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(int(kilobytes) / 1e3)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--side"]:
        raise SystemExit(side(*sys.argv[2:]))
    raise SystemExit(main(sys.argv[1:]))
