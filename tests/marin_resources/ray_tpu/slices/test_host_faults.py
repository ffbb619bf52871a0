"""What an error says of its host, by errors that are really raised: by Python, by jax, by user code."""

from __future__ import annotations

import errno
import fcntl
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from marin_resources.ray_tpu.slices.host_faults import HostFault, host_fault

BUSY = "Unable to initialize backend 'tpu': UNKNOWN: open(/dev/accel0): Device or resource busy"
NO_LIBTPU = (
    "Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open shared object file"
)


class OutOfMemoryError(RuntimeError):
    """As torch's: torch is not installed here."""

    __module__ = "torch"


def raised(fail: Callable[[], object]) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        fail()
    return caught.value


def throw(error: BaseException, cause: BaseException | None = None) -> None:
    raise error from cause


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (MemoryError(), HostFault.MEMORY),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), HostFault.MEMORY),
        (OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), HostFault.MEMORY),
        (RuntimeError(BUSY), HostFault.DEVICES),
        (RuntimeError("CUDA error: CUDA-capable device(s) is/are busy or unavailable"), HostFault.DEVICES),
        (RuntimeError(NO_LIBTPU), None),
        (RuntimeError("the cache is too small: Out of memory, said the doctor"), None),
        (OSError(errno.EBUSY, "Device or resource busy", "/mnt/scratch/shard-3"), None),
        (RuntimeError("429 RESOURCE_EXHAUSTED: quota of memory reads of the bucket"), None),
        (ValueError("'MemoryError' is not a name"), None),
    ],
)
def test_an_error_is_judged_by_its_type_and_its_raiser(error: BaseException, fault: HostFault | None) -> None:
    assert host_fault(raised(lambda: throw(error))) is fault
    assert host_fault(raised(lambda: throw(ValueError("the step failed"), error))) is fault
    assert host_fault(raised(lambda: throw(ExceptionGroup("two tasks", [KeyError("x"), error])))) is fault  # type: ignore[list-item]


def test_what_was_caught_before_an_error_is_not_its_reason() -> None:
    def fail() -> None:
        try:
            raise MemoryError
        except MemoryError:
            raise ValueError("the smaller batch has no field 'text'")  # noqa: B904

    assert host_fault(raised(fail)) is None


def test_a_comment_in_a_traceback_is_no_error(tmp_path: Path) -> None:
    script = tmp_path / "step.py"
    script.write_text("raise ValueError('no')  # else XLA has RESOURCE_EXHAUSTED: Out of memory\n")
    error = raised(lambda: exec(compile(script.read_text(), str(script), "exec"), {}))
    assert host_fault(error) is None


def test_a_file_that_user_code_has_locked_is_no_busy_device(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as first, path.open("w") as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        error = raised(lambda: fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB))
    assert host_fault(error) is None


def test_an_array_that_does_not_fit_is_out_of_memory() -> None:
    import jax
    import jax.numpy as jnp

    assert host_fault(raised(lambda: np.zeros(1 << 58, dtype=np.int8))) is HostFault.MEMORY
    assert host_fault(raised(lambda: jnp.zeros((1 << 46,)))) is HostFault.MEMORY
    in_jit = raised(lambda: jax.jit(lambda x: jnp.zeros((1 << 46,)) + x)(1.0))
    assert host_fault(in_jit) is HostFault.MEMORY
