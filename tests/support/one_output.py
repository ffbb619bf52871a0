"""One output, its writers, and what lies in its folder: for tests of the store."""

from __future__ import annotations

import os
import subprocess
import sys

from marin_resources.storage import fault_points
from marin_resources.storage.control import control
from marin_resources.storage.files import read_bytes, sizes_below, write_bytes
from marin_resources.storage.lease import lease
from marin_resources.storage.output.store import Claim, Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Output


def output(identity: str = "a" * 64, override: str | None = None, partition: str | None = None) -> Output:
    return Output(name="raw/x", version="abc123", identity=identity, override=override, partition=partition)


X = output()


def claim(store: Store, attempt: int = 1, what: Output = X, resumable: bool = False, stale: str | None = None) -> Claim:
    return store.claim(what, attempt=attempt, resumable=resumable, run_id="run-1", stale_lease=stale)


def make(store: Store, what: Output = X, attempt: int = 1, stale: str | None = None) -> str:
    held = claim(store, attempt, what, stale=stale)
    write(held.path, "data.txt", "data")
    store.publish(held, {"name": what.name}, {"documents": 3})
    return held.path


def write(path: str, name: str, text: str) -> None:
    write_bytes(join(path, name), text.encode())


def read(path: str, name: str) -> str:
    return read_bytes(join(path, name)).decode()


def stale_lease(path: str) -> str | None:
    """The generation of a dead process's lease, as one who has watched it for its time to live would know it."""
    holder = lease.holder_of(path)
    return holder.generation if holder else None


def snapshot(folder: str) -> dict[str, control.Snapshot | None]:
    """Content and generation of every file."""
    return {name: control.read(join(folder, name)) for name in sizes_below(folder) if name != lease.NAME}


WORK = """
import sys
from marin_resources.types.output import Output
from marin_resources.storage import fault_points
from marin_resources.storage.paths import join
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.store import Store
store, attempt = Store(sys.argv[1]), int(sys.argv[2])
output = Output(name="raw/x", version="abc123", identity="a" * 64)
claim = store.claim(output, attempt=attempt, resumable=False, run_id=None)
write_bytes(join(claim.path, "data.txt"), b"data")
fault_points.reach("function returned")
store.publish(claim, {"name": "raw/x"}, {"documents": 3})
"""


def work(store: Store, attempt: int, die_at: str) -> int:
    env = {**os.environ, fault_points.VARIABLE: die_at}
    return subprocess.run([sys.executable, "-c", WORK, store.prefix, str(attempt)], check=False, env=env).returncode
