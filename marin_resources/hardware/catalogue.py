"""The catalogue of accelerators: catalogue.toml, read once. That file has the figures and their sources."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("catalogue.toml")
NEAR = 3
"""Known names that the sentence about an unknown one has at most."""


@dataclass(frozen=True, kw_only=True)
class SliceType:
    """A type of slice of a TPU pod: "v5p-32"."""

    kind: str
    """Google's name, by which Ray's resources are named too."""
    generation: str
    ray_type: str
    """Ray's accelerator type: "TPU-V5P"."""
    topology: str
    """Chips along each axis: "2x2x4"."""
    chips: int
    hosts: int
    chips_per_host: int
    memory_gb: float
    """High-bandwidth memory of one chip, in 10^9 bytes."""
    bf16_tflops: float
    """Peak of one chip, in 10^12 operations a second."""
    zones: tuple[str, ...]
    """Zones of Google Cloud that have the generation."""
    runtime: str
    """The software of a host, by Google's name."""


@dataclass(frozen=True, kw_only=True)
class GpuType:
    """A model of GPU, by Ray's name: "H100"."""

    kind: str
    memory_gb: float | None
    """In 10^9 bytes; None if models of one name differ."""
    most_memory_gb: float | None
    """Memory of the largest model of that name; None if it is not known."""
    bf16_tflops: float | None
    """Peak without structured sparsity, in 10^12 operations a second; None if it is not known."""


def find_slice_type(kind: str) -> SliceType | None:
    """The type of that name, or of an alias such as "v5e-16"; None if it is not in the catalogue."""
    return _slice_types().get(kind)


def slice_types() -> list[SliceType]:
    """All types, each once, by generation and then by the number of chips."""
    return list({slice_type.kind: slice_type for slice_type in _slice_types().values()}.values())


def find_gpu_type(kind: str) -> GpuType | None:
    """The model of that name; None if it is not in the catalogue."""
    return _gpu_types().get(kind)


def find_generation(name: str) -> str | None:
    """The generation of TPUs of that name or alias: "v5litepod" of "v5e"; None if it is not in the catalogue."""
    return next((key for key, fields in _read()["tpu"].items() if name in (key, *fields.get("aliases", ()))), None)


def near_slice_types(kind: str) -> list[str]:
    """Known names near this one: of the same generation the next sizes, or names that are spelled alike."""
    generation, _, number = kind.lower().partition("-")
    sizes = [int(name.partition("-")[2]) for name in _slice_types() if name.partition("-")[0] == generation]
    if not sizes:
        return _alike(kind, list(_slice_types()))
    requested = int(number) if number.isascii() and number.isdecimal() else min(sizes)
    near = sorted(sizes, key=lambda size: abs(math.log2(size) - math.log2(max(requested, 1))))[:NEAR]
    return [f"{generation}-{size}" for size in sorted(near)]


def near_gpu_types(kind: str) -> list[str]:
    """Known names that are spelled like this one."""
    return _alike(kind, list(_gpu_types()))


def near_devices(name: str) -> list[str]:
    """Known generations of TPUs and models of GPUs that are spelled like this one."""
    return _alike(name, [*_read()["tpu"], *_gpu_types()])


def _alike(kind: str, names: Sequence[str]) -> list[str]:
    """The nearest of the known names; the first ones if none is near."""
    by_lower_case = {name.lower(): name for name in names}
    matches = difflib.get_close_matches(kind.lower(), list(by_lower_case), n=NEAR, cutoff=0.5)
    return [by_lower_case[name] for name in matches] or list(names[:NEAR])


@cache
def _slice_types() -> Mapping[str, SliceType]:
    """Name -> type. An alias names the type of its generation."""
    types = {}
    for generation, fields in _read()["tpu"].items():
        for number, topology in fields["slices"].items():
            slice_type = _slice_type(generation, f"{generation}-{number}", topology, fields)
            for name in (generation, *fields.get("aliases", ())):
                types[f"{name}-{number}"] = slice_type
    return types


def _slice_type(generation: str, kind: str, topology: str, fields: Mapping[str, Any]) -> SliceType:
    chips = math.prod(int(axis) for axis in topology.split("x"))
    per_host = fields["chips_per_host"]
    is_one_host = chips <= fields.get("chips_of_one_host", per_host)
    return SliceType(
        kind=kind,
        generation=generation,
        ray_type=fields["ray"],
        topology=topology,
        chips=chips,
        hosts=1 if is_one_host else chips // per_host,
        chips_per_host=chips if is_one_host else per_host,
        memory_gb=fields["memory_gb"],
        bf16_tflops=fields["bf16_tflops"],
        zones=tuple(fields["zones"]),
        runtime=fields["runtime"],
    )


@cache
def _gpu_types() -> Mapping[str, GpuType]:
    return {
        kind: GpuType(
            kind=kind,
            memory_gb=fields.get("memory_gb"),
            most_memory_gb=fields.get("most_memory_gb", fields.get("memory_gb")),
            bf16_tflops=fields.get("bf16_tflops"),
        )
        for kind, fields in _read()["gpu"].items()
    }


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))
