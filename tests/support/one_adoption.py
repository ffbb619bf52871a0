"""Data made by hand that are adopted as the one output, in this process or in one of its own that may be killed."""

from __future__ import annotations

import multiprocessing
import os

from one_output import X, write

from marin_resources.storage import fault_points
from marin_resources.storage.adoption.adopt import adopt
from marin_resources.storage.adoption.source import Source, find_source
from marin_resources.storage.adoption.undo import undo
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Output

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["one_adoption", "google_crc32c", "gcsfs", "s3fs"])


def by_hand(store: Store, name: str = "mine") -> str:
    path = join(store.prefix, name)
    write(path, "a/data.txt", "by hand")
    return path


def adopt_it(store: Store, given: str, what: Output = X, why: str = "renamed") -> Source:
    source = find_source(given, store, what, checksums=False)
    adopt(store, what, source, {"name": what.name}, why=why, by="me")
    return source


def take_back(store: Store, what: Output = X) -> None:
    undo(store, what, by="me")


def compute(store: Store) -> None:
    claim = store.claim(X, attempt=1, resumable=False, run_id=None)
    write_bytes(join(claim.path, "data.txt"), b"data")
    store.publish(claim, {"name": X.name}, {"documents": 3})


def start(store: Store, verb: str, die_at: str = "") -> multiprocessing.context.ForkServerProcess:
    process = _processes.Process(target=_run, args=(store.prefix, verb, {**os.environ, fault_points.VARIABLE: die_at}))
    process.start()
    return process


def in_a_process(store: Store, verb: str, die_at: str = "") -> int | None:
    """Adopt, undo or compute in a process of its own, which may be killed at a fault point; return its exit code."""
    process = start(store, verb, die_at)
    process.join(120)
    return process.exitcode


def _run(prefix: str, verb: str, env: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(env)
    store = Store(prefix)
    if verb == "adopt":
        adopt_it(store, "mine")
    elif verb == "undo":
        take_back(store)
    else:
        compute(store)
