"""Resources that a step requires of its machine: `cpu()`, `gpu()`, `tpu()`.

Pure data. Resources never enter a version: the same recipe on other hardware is the same output.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from marin_resources.hardware.catalogue import (
    SliceType,
    find_gpu_type,
    find_slice_type,
    near_gpu_types,
    near_slice_types,
)
from marin_resources.types.errors import MarinError

GIB = 1024**3


class ResourceError(MarinError, ValueError):
    """Resources that no machine can have: an unknown type, an amount that is no number."""


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
    """The fewest slices."""
    more_slices: tuple[int, ...] = ()
    """Further numbers of slices that it may take, each more than `slices`."""

    def __post_init__(self) -> None:
        _require_positive("cpus", self.cpus)
        _require_positive("slices", self.slices)
        if self.memory_bytes is not None:
            _require_positive("memory_bytes", self.memory_bytes)
        if self.gpu is not None:
            _require_positive("gpu count", self.gpu.count)

    @staticmethod
    def with_cpu(cpu: float = 1, *, ram: str | None = None) -> Resources:
        """Marin's form of `cpu()`. `ram`: "512m", "16g" or "1t", in binary units."""
        return Resources(cpus=cpu, memory_bytes=_ram(ram))

    @staticmethod
    def with_gpu(gpu_type: str = "auto", count: int = 1, *, cpu: float = 1, ram: str | None = None) -> Resources:
        """Marin's form of `gpu()`; "auto" is any model."""
        devices = gpu(None if gpu_type == "auto" else gpu_type, count, cpus=cpu)
        return dataclasses.replace(devices, memory_bytes=_ram(ram))

    @staticmethod
    def with_tpu(
        tpu_type: str, *, slice_count: int | Sequence[int] = 1, cpu: float = 1, ram: str | None = None
    ) -> Resources:
        """Marin's form of `tpu()`."""
        return dataclasses.replace(tpu(tpu_type, slices=slice_count, cpus=cpu), memory_bytes=_ram(ram))

    @property
    def pool(self) -> str | None:
        """A name for the devices, by which Dagster limits the number of steps that take them; None without a device."""
        if self.tpu is not None:
            return pool_name("tpu", self.tpu.kind)
        if self.gpu is not None:
            return pool_name("gpu", self.gpu.kind)
        return None

    @property
    def devices(self) -> int:
        """GPUs, or chips of TPUs in the fewest slices; 0 without a device."""
        return self.devices_of(self.slices)

    @property
    def peak_flops(self) -> float | None:
        """Operations a second of all devices in bfloat16, by the catalogue; None without a device, or for one whose
        peak is not in it."""
        if self.tpu is not None:
            tflops: float | None = slice_type(self.tpu.kind).bf16_tflops
        else:
            gpu_type = find_gpu_type(self.gpu.kind) if self.gpu is not None and self.gpu.kind is not None else None
            tflops = None if gpu_type is None else gpu_type.bf16_tflops
        return None if tflops is None else self.devices * tflops * 1e12

    def devices_of(self, slices: int) -> int:
        """GPUs, or chips of TPUs in this number of slices; 0 without a device."""
        if self.tpu is not None:
            return slices * slice_type(self.tpu.kind).chips
        return self.gpu.count if self.gpu is not None else 0

    def describe(self) -> str:
        """One phrase for people: "2 CPU, 4.0 GiB memory, 1 GPU"."""
        parts = [f"{self.cpus:g} CPU"]
        if self.memory_bytes:
            parts.append(f"{self.memory_bytes / GIB:.1f} GiB memory")
        if self.gpu:
            parts.append(f"{self.gpu.count} {self.gpu.kind or ''} GPU".replace("  ", " "))
        if self.tpu:
            slices = " or ".join(map(str, (self.slices, *self.more_slices)))
            parts.append(f"{slices} slice(s) of TPU {self.tpu.kind}")
        return ", ".join(parts)


def cpu(cpus: float = 1, *, memory_gib: float | None = None) -> Resources:
    """CPU cores, and memory in GiB to reserve; None reserves none."""
    return Resources(cpus=cpus, memory_bytes=_gib(memory_gib))


def gpu(kind: str | None = None, count: int = 1, *, cpus: float = 1, memory_gib: float | None = None) -> Resources:
    """GPUs of one host: `gpu("H100", 8)`, or `gpu(count=8)` of any model.

    Raises ResourceError for a name that is not in the catalogue.
    """
    if kind is not None and not isinstance(kind, str):
        raise ResourceError(f"gpu() got kind={kind!r}, expected a name: gpu('H100', 8), or gpu(count=8) of any model.")
    if kind is not None and find_gpu_type(kind) is None:
        raise ResourceError(_unknown("GPU", kind, near_gpu_types(kind)))
    return Resources(cpus=cpus, memory_bytes=_gib(memory_gib), gpu=Gpu(count=count, kind=kind))


def tpu(kind: str, *, slices: int | Sequence[int] = 1, cpus: float = 1, memory_gib: float | None = None) -> Resources:
    """Whole slices of TPU pods, for example `tpu("v5p-32", slices=2)`. The CPUs and the memory are those of each host.

    With several numbers, as in `slices=(1, 2, 4)`, the step takes the most that are free, and at least the smallest
    number. When more get free later, it continues with them from its next checkpoint.

    Raises ResourceError for a name that is not in the catalogue.
    """
    tpu_type = Tpu(kind=slice_type(kind).kind)
    fewest, *more = _slice_counts(slices)
    return Resources(cpus=cpus, memory_bytes=_gib(memory_gib), tpu=tpu_type, slices=fewest, more_slices=tuple(more))


def _slice_counts(slices: int | Sequence[int]) -> list[int]:
    """The numbers of slices, smallest first."""
    counts = list(slices) if isinstance(slices, Sequence) and not isinstance(slices, str) else [slices]
    if not counts or any(isinstance(count, bool) or not isinstance(count, int) or count < 1 for count in counts):
        raise ResourceError(
            f"Resources got slices={slices!r}, expected a positive number of whole slices, or several: (1, 2, 4)."
        )
    return sorted(set(counts))


def slice_type(kind: str) -> SliceType:
    """The catalogue's entry of a type of slice. Raises ResourceError, with names near it, if it has not that type."""
    if not isinstance(kind, str):
        raise ResourceError(f"tpu() got kind={kind!r}, expected a name: tpu('v5p-32').")
    catalogued = find_slice_type(kind)
    if catalogued is None:
        raise ResourceError(_unknown("TPU", kind, near_slice_types(kind)))
    return catalogued


def _unknown(device: str, kind: str, near: Sequence[str]) -> str:
    return f"The catalogue has no {device} {kind!r}; near it are {', '.join(map(repr, near))}. Correct the name."


def pool_name(device: str, kind: str | None) -> str:
    """The pool of a kind of "tpu" or "gpu". Dagster takes letters, digits, "_" and "/" in the name of a pool."""
    return device if kind is None else f"{device}_{re.sub(r'[^A-Za-z0-9]', '_', kind)}"


def _gib(memory_gib: float | None) -> int | None:
    if memory_gib is None:
        return None
    _require_positive("memory_gib", memory_gib)
    return int(memory_gib * GIB)


def _ram(text: str | None) -> int | None:
    """The bytes of Marin's text for memory; None: none to reserve. Raises ResourceError."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([mgt])(?:i?b)?", text.strip().lower()) if isinstance(text, str) else None
    if match is None:
        raise ResourceError(f"Resources got ram={text!r}, expected a number with m, g or t, such as '16g'.")
    return _gib(float(match[1]) * {"m": 1 / 1024, "g": 1, "t": 1024}[match[2]])


def _require_positive(field_name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ResourceError(f"Resources got {field_name}={value!r}, expected a positive number.")
