"""The requirements of a process on its machine to use a TPU. The one place for it; images need nothing further.

lock file    libtpu locks /tmp/libtpu_lockfile. The lock ends with its process, but a file that another user has made
             cannot be opened: it is removed.
open files   TensorStore and the network between hosts hold thousands; many images allow 1,024.
locked       libtpu pins host memory for its transfers; containers allow 64 kB.
memory
huge pages   The runtime starts and stops much faster with transparent ones (jax warns where they are off). Setting them
             takes root.

TPU_WORKER_ID, TPU_NAME and the like are the image's or Ray's; jax gets its place explicitly (`host_env.py`).
"""

from __future__ import annotations

import logging
import os
import resource
from pathlib import Path

LOCK_FILE = Path("/tmp/libtpu_lockfile")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
LIMITS = {"open files": resource.RLIMIT_NOFILE, "locked memory": resource.RLIMIT_MEMLOCK}

log = logging.getLogger(__name__)


def prepare_for_tpu(lock_file: Path = LOCK_FILE, huge_pages: Path = HUGE_PAGES) -> None:
    """Prepare this process and its machine. What is not allowed is logged: the step runs without it, slower."""
    _remove_foreign(lock_file)
    for name, limit in LIMITS.items():
        _raise_to_hard_limit(name, limit)
    _enable(huge_pages)


def _remove_foreign(lock_file: Path) -> None:
    try:
        if lock_file.stat().st_uid != os.getuid():
            lock_file.unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("libtpu's lock file of another user cannot be removed, so libtpu may not start: %s", error)


def _raise_to_hard_limit(name: str, limit: int) -> None:
    soft, hard = resource.getrlimit(limit)
    if soft != hard:
        try:
            resource.setrlimit(limit, (hard, hard))
        except (OSError, ValueError) as error:
            log.warning("the limit of %s stays at %d: %s", name, soft, error)


def _enable(huge_pages: Path) -> None:
    try:
        if "[always]" not in huge_pages.read_text():
            huge_pages.write_text("always")
    except OSError as error:
        log.warning("transparent huge pages stay off, so the TPU starts and stops slowly: %s", error)
