"""Resources that a step requires of its machine: `cpu()`, `gpu()`, `tpu()`.

Pure data. Resources never enter a version: the same recipe on other hardware is the same output.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

GIB = 1024**3
TWO_CORES_A_CHIP = ("v2", "v3", "v4", "v5p")
"""Generations of TPUs whose names count cores."""


class ResourceError(ValueError):
    """Resources that no machine can have, or that are not a number."""


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """GPUs on one host."""

    count: int
    kind: str | None = None
    """Ray's name, for example "H100"; None accepts any."""


@dataclass(frozen=True, kw_only=True)
class Tpu:
    """One slice of a TPU pod."""

    kind: str
    """Google's name, for example "v5p-32"."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The resources of one step. Build them with `cpu()`, `gpu()` or `tpu()`."""

    cpus: float = 1
    memory_bytes: int | None = None
    """Memory to reserve; None reserves none."""
    gpu: Gpu | None = None
    tpu: Tpu | None = None
    slices: int = 1

    def __post_init__(self) -> None:
        _require_positive("cpus", self.cpus)
        _require_positive("slices", self.slices)
        if self.memory_bytes is not None:
            _require_positive("memory_bytes", self.memory_bytes)
        if self.gpu is not None:
            _require_positive("gpu count", self.gpu.count)

    @property
    def pool(self) -> str | None:
        """A name for the devices, by which Dagster limits how many steps take them; None without a device."""
        if self.tpu is not None:
            return _pool_name("tpu", self.tpu.kind)
        if self.gpu is not None:
            return _pool_name("gpu", self.gpu.kind)
        return None

    @property
    def devices(self) -> int:
        """GPUs, or chips of TPUs in all slices; 0 without a device."""
        if self.tpu is not None:
            return self.slices * chips_of(self.tpu.kind)
        return self.gpu.count if self.gpu is not None else 0

    def describe(self) -> str:
        """One phrase for people: "2 CPU, 4.0 GiB memory, 1 GPU"."""
        parts = [f"{self.cpus:g} CPU"]
        if self.memory_bytes:
            parts.append(f"{self.memory_bytes / GIB:.1f} GiB memory")
        if self.gpu:
            parts.append(f"{self.gpu.count} {self.gpu.kind or ''} GPU".replace("  ", " "))
        if self.tpu:
            parts.append(f"{self.slices} slice(s) of TPU {self.tpu.kind}")
        return ", ".join(parts)


def cpu(cpus: float = 1, *, memory_gib: float | None = None) -> Resources:
    """CPU cores, and memory in GiB to reserve; None reserves none."""
    return Resources(cpus=cpus, memory_bytes=_gib(memory_gib))


def gpu(count: int = 1, kind: str | None = None, *, cpus: float = 1, memory_gib: float | None = None) -> Resources:
    """GPUs of one host."""
    return Resources(cpus=cpus, memory_bytes=_gib(memory_gib), gpu=Gpu(count=count, kind=kind))


def tpu(kind: str, *, slices: int = 1, cpus: float = 1, memory_gib: float | None = None) -> Resources:
    """Whole slices of TPU pods, for example `tpu("v5p-32", slices=2)`."""
    return Resources(cpus=cpus, memory_bytes=_gib(memory_gib), tpu=Tpu(kind=kind), slices=slices)


def chips_of(kind: str) -> int:
    """Chips of one slice: 4 of "v2-8", 16 of "v5p-32", 16 of "v5litepod-16", 8 of "v6e-8".

    The number of v2, v3, v4 and v5p counts TensorCores, two on a chip; that of later kinds counts chips
    (https://cloud.google.com/tpu/docs/system-architecture-tpu-vm). A name without a number counts as one chip.
    """
    generation, _, number = kind.partition("-")
    count = int(number) if number.isascii() and number.isdecimal() else 1
    return max(1, count // 2) if generation in TWO_CORES_A_CHIP else max(1, count)


def _pool_name(device: str, kind: str | None) -> str:
    """Dagster takes letters, digits, "_" and "/" in the name of a pool."""
    return device if kind is None else f"{device}_{re.sub(r'[^A-Za-z0-9]', '_', kind)}"


def _gib(memory_gib: float | None) -> int | None:
    if memory_gib is None:
        return None
    _require_positive("memory_gib", memory_gib)
    return int(memory_gib * GIB)


def _require_positive(what: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ResourceError(f"Resources got {what}={value!r}, expected a positive number.")
