"""The process that ends the services of `marin dev` if it is killed.

`dagster dev` ends its webserver, its daemon and its code servers itself, unless it is killed (kill -9, out of memory):
then they would keep the port and the locks of the daemon.

In:  stdin, a pipe that ends with `dagster dev`.   Out: its services have ended; runs end or detach as with Ctrl-C.
"""

from __future__ import annotations

import contextlib
import select

import psutil

FIRST_POLL_S, LAST_POLL_S, SLOWER = 0.2, 10.0, 1.1
"""`dagster dev` starts its services in the first seconds. A look reads all processes of the machine."""
TERMINATED_S = 60.0
"""Dagster's own time limit for services that end."""
PIPE = 0


def main(dev: str) -> None:
    services = services_until_end(int(dev))
    for service in services:
        with contextlib.suppress(psutil.NoSuchProcess):
            service.terminate()
    _, remaining = psutil.wait_procs(services, timeout=TERMINATED_S)
    for service in remaining:
        with contextlib.suppress(psutil.NoSuchProcess):
            service.kill()


def services_until_end(dev: int) -> list[psutil.Process]:
    """Wait until `dagster dev` has ended; return its children that have not."""
    services: dict[int, psutil.Process] = {}
    ended, poll_s = False, FIRST_POLL_S
    while not ended:
        ended = bool(select.select([PIPE], [], [], poll_s)[0])
        before = len(services)
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(dev).children()
            services |= {child.pid: child for child in children if child != psutil.Process()}
        more_may_come = len(services) != before or not services
        poll_s = FIRST_POLL_S if more_may_come else min(SLOWER * poll_s, LAST_POLL_S)
    return [service for service in services.values() if service.is_running()]
