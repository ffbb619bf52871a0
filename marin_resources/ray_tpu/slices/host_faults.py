"""The fault of a host that the error of a function shows: its devices cannot be used, or its memory is full.

It is decided on the host, by the type of the error and by its raiser. A text alone shows neither: a comment in a
traceback, the quota of a bucket, and a file that user code has locked use the same words.
"""

from __future__ import annotations

import enum
import errno
import re
from collections.abc import Iterator

ACCELERATOR_PACKAGES = frozenset({"jax", "jaxlib", "torch"})
OWN_SENTENCES = ("Unable to initialize backend '", "CUDA error: ")
"""Sentences of jax and torch, which raise them as plain RuntimeError; jax removes its own frames from the traceback."""
DEVICES = re.compile(
    r"Device or resource busy"  # another process holds the chip, as one that was killed and is not gone
    r"|TPU is already in use by process"  # libtpu's lock file
    r"|Unable to initialize backend '(tpu|cuda|gpu)'"  # jax, when libtpu or the driver fails
    r"|TPU initialization failed"  # libtpu
    r"|Failed to get global TPU topology"  # libtpu, when a host of the slice does not answer
    r"|CUDA_ERROR_(NOT_INITIALIZED|SYSTEM_DRIVER_MISMATCH|NO_DEVICE|UNKNOWN|ECC_UNCORRECTABLE)"
    r"|CUDA error: (CUDA-capable device\(s\) is/are busy|no CUDA-capable device|uncorrectable ECC|unknown error)"
)
NO_DRIVER = re.compile(r"Failed to open libtpu|libtpu[^ ]*: cannot open shared object")
"""The environment of the step has no libtpu: no other host helps."""
MEMORY = re.compile(
    r"RESOURCE_EXHAUSTED: .*(memory|allocat)"  # jax, when it compiles and when it runs
    r"|CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY",
    re.IGNORECASE | re.DOTALL,
)


class HostFault(enum.StrEnum):
    DEVICES = "devices"
    MEMORY = "memory"


def host_fault(error: BaseException) -> HostFault | None:
    """The fault of the host, by this error or one that it was raised from; None for an error of the function's own."""
    for cause in _chain(error):
        if isinstance(cause, MemoryError) or (isinstance(cause, OSError) and cause.errno == errno.ENOMEM):
            return HostFault.MEMORY
        text = str(cause)
        if not _is_of_accelerator(cause, text):
            continue
        if MEMORY.search(text):
            return HostFault.MEMORY
        if DEVICES.search(text) and not NO_DRIVER.search(text):
            return HostFault.DEVICES
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was explicitly raised from, and the members of groups. Not what was being handled: that was
    caught."""
    seen, pending = set[int](), [error]
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            pending += current.exceptions
        if current.__cause__ is not None:
            pending.append(current.__cause__)


def _is_of_accelerator(error: BaseException, text: str) -> bool:
    if _package(type(error).__module__) in ACCELERATOR_PACKAGES:
        return True
    if type(error) is RuntimeError and text.startswith(OWN_SENTENCES):
        return True
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    return frames is not None and _package(frames.tb_frame.f_globals.get("__name__", "")) in ACCELERATOR_PACKAGES


def _package(module: str) -> str:
    return module.partition(".")[0]
