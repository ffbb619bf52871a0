"""Run an experiment to its end, in a process with a Dagster home of its own.

In:  a module that ends in executor_main(…), the arguments of its command line, a time limit.
Out: its lines on stdout as they come; how it ended, and how many outputs it computed.
"""

from __future__ import annotations

import importlib.util
import io
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from marin_resources.ray_tpu.sidecar import start_sidecar

COUNTS = re.compile(r"(?P<computed>\d+) computed, (?P<reused>\d+) reused, (?P<failed>\d+) failed")
"""A line that executor_main prints, once for each of its runs."""
KEPT_LINES = 40
GRACE_S = 45.0
"""Seconds for the process, and all that it started, to end by themselves. The remains of a Ray may take 30 s."""
DRAINED_S = 10.0
"""Seconds for the last lines. A process that cannot be killed holds the pipe."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The end of an experiment's process."""

    code: int | None
    """None: it had not ended by its time limit, and was stopped."""
    took_s: float
    computed: int | None
    """Outputs; None if it printed no counts."""
    reused: int | None
    last_lines: tuple[str, ...]


@dataclass(frozen=True)
class Module:
    """A module, and the folder that it is imported from."""

    name: str
    folder: str


def find_module(name: str) -> Module:
    """The module where this process finds it now: Dagster has a working directory on the path only while it loads.

    Raises ModuleNotFoundError with a sentence if it is not there.
    """
    try:
        spec = importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):  # of a package above it; a name such as ".x"
        spec = None
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(
            f"There is no module {name!r}. Name that of an experiment, such as 'marin_assets.experiments.quickstart'."
        )
    folder = os.path.dirname(os.path.abspath(spec.origin))
    for _ in range(name.count(".") + (spec.submodule_search_locations is not None)):
        folder = os.path.dirname(folder)
    return Module(name, folder)


def run_experiment(module: Module, arguments: Sequence[str], timeout_s: float, *, grace_s: float = GRACE_S) -> Ended:
    """Run `python -m module arguments`. Whatever ends this call, or this process, ends that process too, with what it
    started."""
    began_s, lines, counts = time.monotonic(), deque[str](maxlen=KEPT_LINES), list[tuple[int, int]]()
    home = tempfile.mkdtemp(prefix="marin-experiment-")
    parent = start_sidecar(
        "marin_sensors.experiment_process.parent",
        [home, os.getcwd(), grace_s, sys.executable, "-m", module.name, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(module, home),
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    reader = threading.Thread(target=_pass_on, args=[parent.stdout, lines, counts], daemon=True)
    reader.start()
    try:
        code: int | None = parent.wait(timeout_s)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        parent.stdin.close()
        parent.wait()
    reader.join(DRAINED_S)
    return Ended(
        code=code,
        took_s=time.monotonic() - began_s,
        computed=sum(computed for computed, _ in counts) if counts else None,
        reused=sum(reused for _, reused in counts) if counts else None,
        last_lines=tuple(lines),
    )


def _environment(module: Module, home: str) -> dict[str, str]:
    """This process's variables, so that the experiment uses the same cluster, and a home for its runs alone."""
    inherited = os.environ.get("PYTHONPATH", "")
    installed = module.folder in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    paths = inherited if installed else os.pathsep.join(filter(None, [inherited, module.folder]))
    own = {"DAGSTER_HOME": home, "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **own, **({"PYTHONPATH": paths} if paths else {})}


def _pass_on(stream: IO[bytes], lines: deque[str], counts: list[tuple[int, int]]) -> None:
    """Print each line, and keep the last ones and the counts."""
    for line in io.TextIOWrapper(stream, errors="replace"):
        sys.stdout.write(line)
        sys.stdout.flush()
        lines.append(line.rstrip())
        if match := COUNTS.fullmatch(line.strip()):
            counts.append((int(match["computed"]), int(match["reused"])))
