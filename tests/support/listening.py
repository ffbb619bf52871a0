"""Where processes listen."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import psutil


def listening(processes: Iterable[psutil.Process]) -> list[tuple[str, int, str]]:
    """Address, port and command of each socket that takes connections; an IPv4 address in its own form."""
    found = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            command = " ".join(process.cmdline())[:200]
            sockets = process.net_connections("tcp")
            found += [
                (one.laddr.ip.removeprefix("::ffff:"), one.laddr.port, command)
                for one in sockets
                if one.status == psutil.CONN_LISTEN
            ]
    return sorted(found)
