"""Dagster's daemon, which kills itself (SIGKILL) at two moments: after a sensor's runs are launched, before its cursor
is kept; and while a run is launched, after it has the status STARTING, before it has a process. At the latter it can
kill the code server instead.

python daemon_killed_once.py FLAG run -w workspace.yaml     FLAG: a file; while it exists, the first kill is due
                                                            FLAG.launch: a file, likewise for the second
                                                            FLAG.code: likewise, with the pid of the code server
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from dagster._core.scheduler.instigation import TickStatus
from dagster._daemon.cli import main
from dagster._daemon.sensor import SensorLaunchContext

from marin_resources.dagster_fixes.run_launcher import LocalRunLauncher


def arm(flag: Path) -> None:
    keep, launch = SensorLaunchContext.update_state, LocalRunLauncher.launch_run

    def update_state(self: SensorLaunchContext, status: TickStatus, **more: Any) -> None:
        if status is TickStatus.SUCCESS and self.run_count and flag.exists():
            die(flag)
        keep(self, status, **more)

    def launch_run(self: LocalRunLauncher, context: Any) -> None:
        if flag.with_suffix(".launch").exists():
            die(flag.with_suffix(".launch"))
        code = flag.with_suffix(".code")
        if code.exists():
            os.kill(int(code.read_text()), signal.SIGKILL)
            code.unlink()
        launch(self, context)

    SensorLaunchContext.update_state = update_state  # type: ignore[method-assign]
    LocalRunLauncher.launch_run = launch_run  # type: ignore[method-assign]


def die(flag: Path) -> None:
    flag.unlink()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    arm(Path(sys.argv.pop(1)))
    sys.argv[0] = "dagster-daemon"
    main()
