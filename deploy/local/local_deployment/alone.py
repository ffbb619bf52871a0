"""`python -m local_deployment.alone NAME COMMAND…`: end what a killed service has left, then become its command.

systemd ends all processes of a service before it starts the service again. supervisord knows only the one that it has
started, and Apache's children outlive a parent that is killed, at its port.
"""

from __future__ import annotations

import os
import sys

import psutil

from local_deployment.layout import ID_VARIABLE

VARIABLE = "MARIN_LOCAL_SERVICE"
"""Environment variable of a service's processes, with its name."""


def main(name: str, *command: str) -> None:
    ours = {ID_VARIABLE: os.environ[ID_VARIABLE], VARIABLE: name}
    remains = [process for process in psutil.process_iter() if _has(process, ours)]
    for process in remains:
        process.kill()
    psutil.wait_procs(remains, timeout=20)
    os.environ[VARIABLE] = name
    os.execv(command[0], command)


def _has(process: psutil.Process, variables: dict[str, str]) -> bool:
    try:
        return variables.items() <= process.environ().items() and process.pid != os.getpid()
    except (psutil.NoSuchProcess, psutil.AccessDenied):  # or another user's
        return False


if __name__ == "__main__":
    main(*sys.argv[1:])
