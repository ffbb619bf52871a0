"""Redirect the output of this process to a file descriptor: stdout, stderr, and log records from INFO on."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def redirect_process_output(fd: int, variables: Mapping[str, str]) -> Iterator[None]:
    """Redirect to `fd` while the block runs, also the output of C libraries and children. Set `variables` for them."""
    _flush()
    saved = [os.dup(1), os.dup(2)]
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.environ.update(variables)
    root, stream = logging.getLogger(), os.fdopen(os.dup(2), "w", buffering=1)
    level, handler = root.level, _handler(stream)
    root.addHandler(handler)
    root.setLevel(min(level or logging.WARNING, logging.INFO))
    try:
        yield
    finally:
        _flush()
        root.removeHandler(handler)
        root.setLevel(level)
        stream.close()
        for variable in variables:
            del os.environ[variable]
        for standard, old in zip((1, 2), saved, strict=True):
            os.dup2(old, standard)
            os.close(old)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def _handler(stream: TextIO) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S"))
    return handler
