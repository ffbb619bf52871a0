"""Modules of tests are rewritten once for all processes of pytest-xdist.

pytest rewrites the asserts of each module that it collects, and keeps the result in `__pycache__`. Every process
collects every module: in a fresh checkout three of them rewrite the same 500, at 8 s of CPU each.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from _pytest.assertion.rewrite import PYC_TAIL, _rewrite_test, _write_pyc, get_cache_dir, try_makedirs

MANY = 50
"""Fewer are rewritten sooner by the processes themselves than a pool starts."""


def rewrite_once(config: pytest.Config, tests: Path) -> int:
    """Rewrite the modules below the folder that no process has rewritten; return how many.

    Nothing is done in a session of one process, in a worker, or where Python may not write bytecode.
    """
    if sys.dont_write_bytecode or hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        return 0
    modules = [*tests.rglob("test_*.py"), *tests.rglob("conftest.py")]
    files = [file for file in modules if not _rewritten(file).exists()]
    if len(files) < MANY:
        return 0
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        return sum(pool.map(_rewrite, files, chunksize=8))


def _rewritten(file: Path) -> Path:
    return get_cache_dir(file) / f"{file.stem}{PYC_TAIL}"


def _rewrite(file: Path) -> bool:
    """Whether it could be written: pytest does without."""
    if not try_makedirs(get_cache_dir(file)):
        return False
    digest, code = _rewrite_test(file, None)  # type: ignore[arg-type]  # of its options all are default
    state = SimpleNamespace(trace=lambda message: None)
    return _write_pyc(state, code, digest, _rewritten(file))  # type: ignore[arg-type]
